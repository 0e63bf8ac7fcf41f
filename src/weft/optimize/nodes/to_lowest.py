"""To lowest (004 Alg. 4): dearest items first, each to the node with the least to do."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from weft.optimize.loom import Loom
from weft.optimize.nodes.placement import Category, Placed, Placement, dearest_first


def to_lowest(loom: Loom, capacities: Sequence[float], _: Random, category: Category) -> Placed:
    """Group there, weave into the node's tree, or whichever of the two is cheaper with the node's cheapest tree."""
    loom.reset()
    order = dearest_first(loom)
    placement = Placement(loom, capacities)
    for slot in order:
        node = placement.lowest
        if category is Category.GROUP:
            placement.group(slot, node)
        elif category is Category.WEAVE:
            placement.weave_or_group(slot, node)
        else:
            _cheaper(placement, slot, node)
    return placement.placed


def _cheaper(placement: Placement, slot: int, node: int) -> None:
    loom, trees = placement.loom, placement.trees(node)
    if trees.size:
        cheapest = trees[[int(np.argmin(loom.costs[trees]))]]
        if loom.woven_costs(slot, cheapest)[0] <= loom.costs[cheapest[0]] + loom.costs[slot]:
            placement.weave(slot, int(cheapest[0]))
            return
    placement.group(slot, node)
