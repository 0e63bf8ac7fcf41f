"""Inserted (004 Alg. 6): Insert-then-Weave for nodes. Each item goes where the node is then the cheapest."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from weft.optimize.loom import Loom
from weft.optimize.nodes.placement import Category, Placed, Placement


def inserted(loom: Loom, capacities: Sequence[float], rng: Random, category: Category) -> Placed:
    """Start every node with a random item; weave each of the others into the tree whose node ends up least loaded.

    Weave and group: or make it a tree of its own on the least loaded node, where that leaves less load.
    """
    placement = Placement(loom, capacities)
    order = rng.sample(range(len(loom.items)), len(loom.items))
    for node, slot in enumerate(order[: placement.nodes]):
        placement.group(slot, node)
    for slot in order[placement.nodes :]:
        _insert(placement, slot, category)
    return placement.placed


def _insert(placement: Placement, slot: int, category: Category) -> None:
    loom, trees = placement.loom, placement.loom.trees
    nodes = placement.node[trees]
    growth = loom.woven_costs(slot, trees) - loom.costs[trees]
    loads = (placement.costs[nodes] + growth) / placement.capacities[nodes]
    best = int(np.argmin(loads))
    if category is Category.WEAVE_AND_GROUP:
        node = placement.lowest
        if (placement.costs[node] + loom.costs[slot]) / placement.capacities[node] < loads[best]:
            placement.group(slot, node)
            return
    placement.weave(slot, int(trees[best]))
