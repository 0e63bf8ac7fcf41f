"""Single moves between trees: take an item out, put it where the forest becomes cheapest."""

from __future__ import annotations

import numpy as np

from weft.optimize.loom import Loom

EPSILON = 1e-12


def move_gain(loom: Loom, item: int, home: int, trees: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[float, int]:
    """What the best move of ``item`` out of ``home`` saves, and where it goes; -1 for a tree of its own.

    Uses the spare slot for what is left of ``home``, and leaves the item's lone tree there.
    """
    spare = len(loom.items)
    left = [member for member in loom.members[home] if member != item]
    before = float(loom.costs[home])
    remaining = 0.0
    if left:
        loom.compose(spare, left)
        remaining = float(loom.costs[spare])
    loom.compose(spare, [item])
    best, target = (before - remaining - float(loom.costs[spare]), -1) if left else (0.0, home)
    others = trees[trees != home]
    if others.size:
        savings = before - remaining + loom.costs[others] - loom.woven_costs(spare, others)
        at = int(np.argmax(savings))
        if savings[at] > best:
            best, target = float(savings[at]), int(others[at])
    return best, target


def move(loom: Loom, item: int, home: int, target: int) -> int:
    """Move ``item`` from ``home`` to ``target``, or to a new tree if that is -1; returns the slot it went to."""
    loom.compose(home, [member for member in loom.members[home] if member != item])
    if target < 0:
        target = int(np.flatnonzero(~loom.alive[:-1])[0])
        loom.alive[target] = True
        loom.compose(target, [item])
    else:
        loom.compose(target, [*loom.members[target], item])
    return target


def homes(loom: Loom) -> list[int]:
    """The tree of every item."""
    where = [0] * len(loom.items)
    for slot in loom.trees:
        for item in loom.members[slot]:
            where[item] = int(slot)
    return where
