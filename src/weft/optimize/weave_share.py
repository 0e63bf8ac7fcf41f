"""Weave Share (000 §5.1): merge the two trees whose merging saves most, until nothing saves.

Same plans as the paper's O(n^3) loop, found without it. Its cost lookup (§8.1) becomes a heap with one entry a tree:
the best partner among the trees that are *older*. So every pair is looked at from one side only, a new tree needs one
row of comparisons, and an entry whose partner is gone is recomputed only when it comes to the top, because what a tree
can save with the remaining partners is never more than what it could save before.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from random import Random

import numpy as np

from weft.optimize.loom import Loom, Partition

Entry = tuple[float, int, int]
"""Minus the saving, the age of the tree, its slot."""

Partner = tuple[float, int, int]
"""The saving, the slot and the age of a possible partner."""

_PARTNERS = 5
"""Partners remembered for each tree, so that it need not look again when the best one is woven elsewhere."""


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
        # cheap trees save most, as a rule: met first, they spare a closer look at the others
        self.cheapest_first = np.argsort(loom.costs, kind="stable")
        self.heap: list[Entry] = []
        self.partners: dict[int, list[Partner]] = {}
        self.more: dict[int, bool] = {}
        """Whether a tree may have partners that save something beyond those remembered."""
        slots = list(fresh)
        for slot in slots:  # what is fresh is younger than what is not
            self.age[slot] = next(self.ages)
        for slot in slots:
            self._look_for_partners(slot)

    def pop(self) -> tuple[float, int, int] | None:
        """The best saving, and the two trees; None if nothing is left to merge."""
        while self.heap:
            saving, age, slot = heappop(self.heap)
            if self._gone(slot, age):
                continue
            partners = self.partners[slot]
            if not partners:
                self._look_for_partners(slot)
            elif self._gone(*partners[0][1:]):
                self._forget_gone(slot, age)
            else:
                return -saving, slot, partners[0][1]
        return None

    def renew(self, slot: int) -> None:
        """The tree in ``slot`` is a new one."""
        self.age[slot] = next(self.ages)
        self._look_for_partners(slot)

    def _forget_gone(self, slot: int, age: int) -> None:
        """Go on to the next partner; where none is left, the last one's saving bounds what looking again can find."""
        known = self.partners[slot]
        left = [one for one in known if not self._gone(*one[1:])]
        self.partners[slot] = left
        if left:
            heappush(self.heap, (-left[0][0], age, slot))
        elif self.more[slot]:
            heappush(self.heap, (-known[-1][0], age, slot))

    def _gone(self, slot: int, age: int) -> bool:
        return not self.loom.alive[slot] or bool(self.age[slot] != age)

    def _look_for_partners(self, slot: int) -> None:
        older = self.cheapest_first[(self.loom.alive & (self.age < self.age[slot]))[self.cheapest_first]]
        found = self.loom.best_partners(slot, older, self.floor, _PARTNERS)
        self.more[slot] = len(found) == _PARTNERS
        if found:
            self.partners[slot] = [(saving, partner, int(self.age[partner])) for saving, partner in found]
            heappush(self.heap, (-found[0][0], int(self.age[slot]), slot))
