"""Insert-then-Weave (000 §6): items one at a time into the tree they weave best with, then merging of trees."""

from __future__ import annotations

from random import Random

from weft.optimize.loom import Loom, Partition
from weft.optimize.weave_share import weave


def insert_then_weave(loom: Loom, rng: Random) -> Partition:
    """Insert in the given order, into a new tree where no old one gains; merge what is left to gain."""
    loom.reset()
    loom.alive[:] = False
    for slot in range(len(loom.items)):
        trees = loom.trees
        loom.alive[slot] = True
        for _, partner in loom.best_partners(slot, trees):
            loom.weave(partner, slot)
    weave(loom, loom.trees)
    return loom.partition
