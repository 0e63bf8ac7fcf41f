"""Trees of all groupings on nodes: each node ends up with about the same to do, also where there are fewer trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from weft.plan.forest import Tree
from weft.plan.model import Grouping

SLACK = 0.1
"""A tree may be so much more than a node's share before its queries are divided."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some queries of a tree, and which grouping it is of."""

    grouping: int
    tree: Tree
    load: float


def spread(groupings: Sequence[Grouping], capacities: Sequence[float]) -> tuple[Grouping, ...]:
    """Place every tree on a node, the largest first, each where the node ends up least loaded.

    A tree that is more than a node's share is divided: its queries go to several nodes, each with a copy of the slices.
    """
    parts = [part for whole in _whole_trees(groupings) for part in _divide(whole, 1 / len(capacities))]
    loads = [0.0] * len(capacities)
    trees: list[list[Tree]] = [[] for _ in groupings]
    for part in sorted(parts, key=lambda part: -part.load):
        node = min(range(len(loads)), key=lambda node: (loads[node] + part.load) / capacities[node])
        loads[node] += part.load
        trees[part.grouping].append(replace(part.tree, node=node))
    return tuple(
        replace(grouping, trees=tuple(some), placed=True) for grouping, some in zip(groupings, trees, strict=True)
    )


def _whole_trees(groupings: Sequence[Grouping]) -> list[_Part]:
    """Each tree with its share of all work: half by its cost, half by its queries, as each has a file to write."""
    trees = [(at, tree) for at, grouping in enumerate(groupings) for tree in grouping.trees]
    cost = sum(tree.cost for _, tree in trees) or 1.0
    queries = sum(len(tree.queries) for _, tree in trees)
    return [_Part(at, tree, (tree.cost / cost + len(tree.queries) / queries) / 2) for at, tree in trees]


def _divide(whole: _Part, share: float) -> Iterable[_Part]:
    count = min(ceil(whole.load / share - SLACK), len(whole.tree.queries))
    if count <= 1:
        return [whole]
    # every count-th query: neighbours are alike, and so are then the parts
    names = [whole.tree.queries[at::count] for at in range(count)]
    portions = [len(some) / len(whole.tree.queries) for some in names]
    return [
        _Part(whole.grouping, replace(whole.tree, queries=some, cost=whole.tree.cost * portion), whole.load * portion)
        for some, portion in zip(names, portions, strict=True)
    ]
