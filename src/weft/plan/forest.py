"""Which queries share what: a forest of trees, each with one slicing, one technique and one node."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

from weft.slicing.edge_rate import Rate
from weft.slicing.progression import Progression


@dataclass(frozen=True, slots=True)
class Tree:
    """Queries that share one slicing."""

    queries: tuple[str, ...]
    progressions: tuple[Progression, ...]
    """Where the tree cuts the stream."""
    edge_rate: Rate
    overlap: float
    """Ω: operations per edge with the tree's technique."""
    cost: float
    technique: str
    node: int = 0

    def as_json(self) -> dict[str, Any]:
        """What ``weft plan --json`` prints of a tree; the bounds of its edge rate only where that is not exact."""
        bounds = {} if self.edge_rate.exact else {"edge_rate_bounds": list(self.edge_rate.bounds_per_second)}
        return {
            "queries": list(self.queries),
            "edge_rate": self.edge_rate.per_second,
            "overlap": self.overlap,
            "cost": self.cost,
            "technique": self.technique,
            "node": self.node,
            **bounds,
        }


@dataclass(frozen=True, slots=True)
class Forest:
    """A whole plan: every query is in exactly one tree.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> from weft.optimize import optimize
    >>> second = 1_000_000
    >>> windows = {"a": (16, 4), "b": (10, 5), "c": (8, 4)}  # 000 ex. 3
    >>> queries = [(name, TimeWindow(range=r * second, slide=s * second)) for name, (r, s) in windows.items()]
    >>> forest = optimize(queries, rate=1.2, optimizer="weave-share", model="two-level")
    >>> [tree.queries for tree in forest.trees], round(forest.cost, 9)
    ([('a', 'c'), ('b',)], 4.3)
    """

    trees: tuple[Tree, ...]
    optimizer: str
    model: str
    levels: Literal[2, 3]
    """2: every tree cuts the rows itself. 3: rows are cut once, at all edges; trees assemble slices from those."""
    shared_cost: float = 0.0
    """What is paid once for all trees: nothing with two levels, the cut of the rows with three."""
    capacities: tuple[float, ...] = (1.0,)
    """One number a node: how fast it is, relative to the others."""

    @property
    def cost(self) -> float:
        """Cost of the whole plan, in the model's unit per second of stream."""
        return self.shared_cost + sum(tree.cost for tree in self.trees)

    @property
    def node_costs(self) -> tuple[float, ...]:
        """The cost of each node's trees."""
        costs: dict[int, float] = defaultdict(float)
        for tree in self.trees:
            costs[tree.node] += tree.cost
        return tuple(costs[node] for node in range(len(self.capacities)))

    @property
    def max_cost(self) -> float:
        """The dearest node's cost: its trees, and the shared cut without which it cannot begin."""
        return self.shared_cost + max(self.node_costs)

    @property
    def max_load(self) -> float:
        """The longest that a node takes, given its capacity: what balancing lowers."""
        return max(cost / capacity for cost, capacity in zip(self.node_costs, self.capacities, strict=True))

    @property
    def exact(self) -> bool:
        """Whether every edge rate is exact; otherwise some are the middle of a guaranteed interval."""
        return all(tree.edge_rate.exact for tree in self.trees)

    def as_json(self, seconds: float) -> dict[str, Any]:
        """What ``weft plan --json`` prints."""
        return {
            "optimizer": self.optimizer,
            "model": self.model,
            "cost": self.cost,
            "total_cost": self.cost,
            "max_cost": self.max_cost,
            "shared_cost": self.shared_cost,
            "seconds": seconds,
            "trees": [tree.as_json() for tree in self.trees],
        }
