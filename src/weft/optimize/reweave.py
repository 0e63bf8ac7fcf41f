"""Ours, called ``weft``: Weave Share, then moves, splits and merges until none of them helps.

A greedy merge is never taken back, so Weave Share keeps items in trees that have since become wrong for them. Here
every item may leave for another tree or for one of its own; every tree may fall apart and be woven anew; trees may be
merged again. Weave Share's own forest stays in the race to the end, so that the result is never worse.
"""

from __future__ import annotations

from random import Random

import numpy as np

from weft.optimize.loom import Loom, Partition
from weft.optimize.moves import EPSILON, homes, move, move_gain
from weft.optimize.weave_share import weave, weave_share

EFFORT = 20_000_000
"""Pairs of trees that improvement may look at: seconds, however many the items."""
_FEW_ENOUGH = 500


def reweave(loom: Loom, rng: Random) -> Partition:
    """Weave Share's forest improved, or the single shared tree improved, or Weave Share's as it is."""
    woven = weave_share(loom, rng)
    found = [woven]
    for start in (woven, [list(range(len(loom.items)))]):
        if len(found) == 1 or len(loom.items) <= _FEW_ENOUGH:
            loom.start_from(start)
            _improve(loom, loom.comparisons + EFFORT)
            found.append(loom.partition)
    return min(found, key=lambda partition: sum(loom.finished(items).cost for items in partition))


def _improve(loom: Loom, until: int) -> None:
    cost = np.inf
    while loom.cost < cost * (1 - EPSILON) and loom.comparisons < until:
        cost = loom.cost
        _move_items(loom, until)
        _split_trees(loom, until)
        weave(loom, loom.trees)


def _move_items(loom: Loom, until: int) -> None:
    where = homes(loom)
    for item in range(len(loom.items)):
        if loom.comparisons >= until:
            return
        gain, target = move_gain(loom, item, where[item], loom.trees)
        if gain > EPSILON * loom.cost:
            where[item] = move(loom, item, where[item], target)


def _split_trees(loom: Loom, until: int) -> None:
    """Let each tree's items be woven anew among themselves; keep that if it is cheaper."""
    for slot in loom.trees:
        items = loom.members[slot]
        if len(items) < 3 or loom.comparisons + len(items) ** 2 > until:
            continue
        parts = _rewoven(loom, items)
        cost = 0.0
        for part in parts:
            loom.compose(len(loom.items), part)
            cost += float(loom.costs[-1])
        if cost < loom.costs[slot] * (1 - EPSILON):
            free = [int(slot), *np.flatnonzero(~loom.alive[:-1])[: len(parts) - 1]]
            for target, part in zip(free, parts, strict=True):
                loom.alive[target] = True
                loom.compose(target, part)


def _rewoven(loom: Loom, items: list[int]) -> Partition:
    apart = loom.only(items)
    weave(apart, apart.trees)
    loom.comparisons = apart.comparisons
    return [[items[index] for index in tree] for tree in apart.partition]
