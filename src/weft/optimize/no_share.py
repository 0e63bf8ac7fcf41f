"""No sharing: a tree for every item. Cheap to plan, dear to run where rows are many."""

from __future__ import annotations

from random import Random

from weft.optimize.loom import Loom, Partition


def no_share(loom: Loom, _: Random) -> Partition:
    """Every item by itself."""
    return [[index] for index in range(len(loom.items))]
