"""Incremental Weave Share (000 §5.2): queries come and go, the forest follows, and is rebuilt only when it has drifted.

A new item is a new tree, woven with the others until nothing improves. An item that goes leaves its tree, which is then
compared with all others. The costs of forests built from scratch form the plan-cost curve; its last slope tells what a
fresh forest would cost now, and when the real one is dearer by more than the tolerance (Eq. 6) a reconstruction is due.
Whoever runs the plan decides when to do it: at once, or beside the running step and applied at the next batch boundary.
"""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np

from weft.optimize.loom import Loom, Partition
from weft.optimize.weave_share import weave

TOLERANCE = 0.2
"""000 §7.2 finds 20-30% a good balance of plan cost and overhead."""


class IncrementalWeaveShare:
    """A forest over some of a loom's items.

    Examples
    --------
    >>> from weft.optimize.cost import two_level
    >>> from weft.optimize.items import items_of
    >>> from weft.optimize.omega import TechniqueCode
    >>> from weft.slicing.time_window import TimeWindow
    >>> second = 1_000_000
    >>> windows = [("a", TimeWindow(16 * second, 4 * second)), ("b", TimeWindow(10 * second, 5 * second))]
    >>> forest = IncrementalWeaveShare(Loom(items_of(windows), two_level(rate=100), TechniqueCode.PANES))
    >>> forest.add(0), forest.add(1), forest.partition
    (None, None, [[0, 1]])
    >>> forest.remove(0), forest.partition
    (None, [[1]])
    """

    def __init__(self, loom: Loom, tolerance: float = TOLERANCE) -> None:
        self.loom = loom
        self.tolerance = tolerance
        self.reconstructions = 0
        self.curve: list[tuple[int, float]] = [(0, 0.0)]
        """Number of items and cost of the forests built from scratch."""
        self._home: dict[int, int] = {}
        loom.reset()
        loom.alive[:] = False

    @property
    def partition(self) -> Partition:
        """The trees."""
        return self.loom.partition

    def add(self, item: int) -> None:
        """Weave a new item in."""
        slot = int(np.flatnonzero(~self.loom.alive[:-1])[0])
        self.loom.alive[slot] = True
        self.loom.compose(slot, [item])
        self._weave([slot])

    def remove(self, item: int) -> None:
        """Take an item out, and see whether what is left of its tree weaves better with another."""
        slot = self._home.pop(item)
        self.loom.compose(slot, [member for member in self.loom.members[slot] if member != item])
        self._weave([slot] if self.loom.alive[slot] else [])

    @property
    def deviation(self) -> float:
        """How much dearer the forest is than one built from scratch is expected to be (000 Eq. 6)."""
        (fewer, less), (items, cost) = self.curve[-2:] if len(self.curve) > 1 else [(0, 0.0), *self.curve]
        slope = (cost - less) / (items - fewer) if items != fewer else 0.0
        expected = cost + slope * (len(self._home) - items)
        return self.loom.cost / expected - 1 if expected > 0 else inf

    @property
    def due(self) -> bool:
        """Whether the forest should be built anew: it drifted, or has twice the items that the curve knows of.

        The curve flattens as queries find more to share, so that a slope learned on few items excuses any drift.
        """
        if not self._home or self.tolerance == inf:
            return False
        return self.deviation > self.tolerance or len(self._home) >= 2 * self.curve[-1][0]

    def reconstruct(self) -> None:
        """Weave everything from scratch and learn what that costs."""
        items = sorted(self._home)
        self.loom.start_from([item] for item in items)
        self._weave(list(self.loom.trees))
        self.curve.append((len(items), self.loom.cost))
        self.reconstructions += 1

    def _weave(self, fresh: list[int]) -> None:
        weave(self.loom, fresh)
        self._home = {item: int(slot) for slot in self.loom.trees for item in self.loom.members[slot]}


def incremental_weave_share(loom: Loom, _: Random) -> Partition:
    """Add the items one at a time, reconstructing whenever that is due."""
    forest = IncrementalWeaveShare(loom)
    for item in range(len(loom.items)):
        forest.add(item)
        if forest.due:
            forest.reconstruct()
    return forest.partition
