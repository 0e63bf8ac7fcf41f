"""Trees on nodes while a plan is being made."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from weft.optimize.kernels import Ints
from weft.optimize.loom import Loom

Placed = list[tuple[list[int], int]]
"""Items of each tree, and its node."""


class Category(Enum):
    """What may be done with a query that comes to a node (004 Table 7)."""

    GROUP = "g"
    WEAVE = "w"
    WEAVE_AND_GROUP = "wg"


class Placement:
    """A loom whose trees are on nodes; at first there are no trees. Slots are items' numbers until woven."""

    def __init__(self, loom: Loom, capacities: Sequence[float]) -> None:
        loom.reset()
        loom.alive[:] = False
        self.loom = loom
        self.capacities = np.array(capacities)
        self.node = np.full(len(loom.items), -1)
        self.costs = np.zeros(len(capacities))
        """Cost by node."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.capacities)

    @property
    def lowest(self) -> int:
        """The node with the least to do for its capacity."""
        return int(np.argmin(self.costs / self.capacities))

    def trees(self, node: int) -> Ints:
        """Slots of a node's trees."""
        return np.flatnonzero(self.loom.alive[:-1] & (self.node == node))

    def group(self, slot: int, node: int) -> None:
        """Put the tree in ``slot`` on a node, as it is."""
        self.loom.alive[slot] = True
        self.node[slot] = node
        self.costs[node] += self.loom.costs[slot]

    def weave(self, slot: int, tree: int) -> None:
        """Weave the tree in ``slot``, which is on no node yet, into ``tree``."""
        node = self.node[tree]
        self.costs[node] -= self.loom.costs[tree]
        self.loom.weave(tree, slot)
        self.costs[node] += self.loom.costs[tree]

    def weave_or_group(self, slot: int, node: int) -> None:
        """Weave into the node's only tree, or begin it."""
        trees = self.trees(node)
        if trees.size:
            self.weave(slot, int(trees[0]))
        else:
            self.group(slot, node)

    @property
    def placed(self) -> Placed:
        """The result."""
        return [(sorted(self.loom.members[slot]), int(self.node[slot])) for slot in self.loom.trees]


def dearest_first(loom: Loom) -> list[int]:
    """Slots of the loom's trees, the most expensive first."""
    trees = loom.trees
    return [int(slot) for slot in trees[np.argsort(-loom.costs[trees], kind="stable")]]


def balance(loom: Loom, capacities: Sequence[float]) -> Placed:
    """Place finished trees, dearest first, each where the load is then lowest."""
    loads = np.zeros(len(capacities))
    speed = np.array(capacities)
    placed: Placed = []
    for slot in dearest_first(loom):
        node = int(np.argmin((loads + loom.costs[slot]) / speed))
        loads[node] += loom.costs[slot]
        placed.append((sorted(loom.members[slot]), node))
    return placed
