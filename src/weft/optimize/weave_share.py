"""Weave Share (000 §5.1): merge the two trees whose merging saves most, until nothing saves.

Same plans as the paper's O(n^3) loop, found without it. Its cost lookup (§8.1) becomes a heap with one entry a tree:
the best partner among the trees that are *older*. So every pair is looked at from one side only, a new tree needs one
row of comparisons, and an entry whose partner is gone is recomputed only when it comes to the top, because what a tree
can save with the remaining partners is never more than what it could save before.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from random import Random

import numpy as np

from weft.optimize.loom import Loom, Partition

Entry = tuple[float, int, int, int]
"""Minus the saving, the age of the younger tree, the age of the older, the slot of the younger."""


def weave_share(loom: Loom, _: Random) -> Partition:
    """Weave all items from scratch."""
    loom.reset()
    weave(loom, loom.trees)
    return loom.partition


def weave(loom: Loom, fresh: Iterable[int], fewest: int = 1, most: int | None = None) -> int:
    """Merge greedily and return how many merges were done.

    Parameters
    ----------
    loom
        Trees so far.
    fresh
        Slots of the trees to compare with all others; the rest is known not to gain among itself.
    fewest
        Stop when so few trees are left, although another merge would save.
    most
        Go on until at most so many trees are left, although no merge saves: the least harmful first (004 Alg. 5).
    """
    queue = _Queue(loom, fresh, floor=0.0 if most is None else -np.inf)
    merges = 0
    while (trees := int(loom.alive.sum())) > fewest:
        found = queue.pop()
        if found is None or (found[0] <= 0.0 and trees <= (most or trees)):
            break
        _, slot, other = found
        loom.weave(slot, other)
        queue.renew(slot)
        merges += 1
    return merges


class _Queue:
    """Trees by what the best merge with an older tree saves; entries may be out of date until they reach the top."""

    def __init__(self, loom: Loom, fresh: Iterable[int], floor: float) -> None:
        self.loom = loom
        self.floor = floor
        self.ages = count(len(loom.alive))
        self.age = np.arange(len(loom.alive))
        self.heap: list[Entry] = []
        slots = list(fresh)
        for slot in slots:  # what is fresh is younger than what is not
            self.age[slot] = next(self.ages)
        for slot in slots:
            self._push(slot)
        heapify(self.heap)

    def pop(self) -> tuple[float, int, int] | None:
        """The best saving, and the two trees; None if nothing is left to merge."""
        while self.heap:
            saving, younger, older, slot = heappop(self.heap)
            if not self.loom.alive[slot] or self.age[slot] != younger:
                continue
            partner = np.flatnonzero(self.age == older)
            if partner.size and self.loom.alive[partner[0]]:
                return -saving, slot, int(partner[0])
            self._push(slot)
        return None

    def renew(self, slot: int) -> None:
        """The tree in ``slot`` is a new one."""
        self.age[slot] = next(self.ages)
        self._push(slot)

    def _push(self, slot: int) -> None:
        older = np.flatnonzero(self.loom.alive & (self.age < self.age[slot]))
        saving, partner = self.loom.best_partner(slot, older, self.floor)
        if partner >= 0:
            heappush(self.heap, (-saving, int(self.age[slot]), int(self.age[partner]), slot))
