"""Random grouping: the baseline of 000 §6. Each item goes to one of m trees, m random too."""

from __future__ import annotations

from random import Random

from weft.optimize.loom import Loom, Partition


def random_groups(loom: Loom, rng: Random) -> Partition:
    """Items in random trees."""
    trees: Partition = [[] for _ in range(rng.randint(1, len(loom.items)))]
    for index in range(len(loom.items)):
        rng.choice(trees).append(index)
    return [tree for tree in trees if tree]
