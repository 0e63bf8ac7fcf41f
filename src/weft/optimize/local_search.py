"""Local search (000 §6): from a starting forest, move single items while it helps, for a bounded number of moves.

The paper bounds the moves by 2, 5 or 10 times the merges that Weave Share needed on the same items, and starts from no
sharing or from a random forest; it found no-share with ten times to be the best.
"""

from __future__ import annotations

from random import Random

from weft.optimize.loom import Loom, Partition
from weft.optimize.moves import EPSILON, homes, move, move_gain
from weft.optimize.random_groups import random_groups
from weft.optimize.weave_share import weave

TIMES = 10


def local_search(loom: Loom, rng: Random) -> Partition:
    """From no sharing."""
    return search(loom, rng, [[item] for item in range(len(loom.items))])


def local_search_from_random(loom: Loom, rng: Random) -> Partition:
    """From a random forest."""
    return search(loom, rng, random_groups(loom, rng))


def search(loom: Loom, rng: Random, start: Partition, times: int = TIMES) -> Partition:
    """Try items in random order and take each one's best move, until no item moves or the bound is reached."""
    loom.reset()
    moves_left = times * max(1, weave(loom, loom.trees))
    loom.start_from(start)
    where = homes(loom)
    improved = True
    while improved and moves_left > 0:
        improved = False
        for item in rng.sample(range(len(loom.items)), len(loom.items)):
            gain, target = move_gain(loom, item, where[item], loom.trees)
            if gain > EPSILON * loom.cost:
                where[item] = move(loom, item, where[item], target)
                improved = True
                moves_left -= 1
                if moves_left == 0:
                    break
    return loom.partition
