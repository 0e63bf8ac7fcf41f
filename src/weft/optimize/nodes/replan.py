"""Nodes join and leave: move few trees. Beyond 004, which plans for a fixed set of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.plan.forest import Forest

SLACK = 0.05
"""A move must lower the highest load by this share, or it is not worth moving a tree's state."""


def replan(forest: Forest, capacities: Sequence[float], kept: Sequence[int | None] | None = None) -> Forest:
    """The same trees on other nodes, moving only those that must, or that relieve the most loaded node.

    Parameters
    ----------
    forest
        The running plan.
    capacities
        Of the nodes there are from now on.
    kept
        For each old node its number from now on, None if it left; by default nodes joined or left at the end.

    Examples
    --------
    >>> from weft.optimize import optimize
    >>> from weft.slicing.time_window import TimeWindow
    >>> queries = [(str(slide), TimeWindow(slide * 10**7, slide * 10**6)) for slide in (7, 11, 13, 17)]
    >>> forest = optimize(queries, rate=1, optimizer="no-share", model="two-level", nodes=[1, 1])
    >>> [tree.node for tree in replan(forest, [1.0]).trees]
    [0, 0, 0, 0]
    """
    old = len(forest.capacities)
    number = list(kept) if kept is not None else [node if node < len(capacities) else None for node in range(old)]
    speed = np.array(capacities, dtype=float)
    costs = np.array([tree.cost for tree in forest.trees])
    where = [number[tree.node] for tree in forest.trees]
    loads = np.zeros(speed.size)
    for cost, node in zip(costs, where, strict=True):
        if node is not None:
            loads[node] += cost
    for tree in sorted((at for at, node in enumerate(where) if node is None), key=lambda at: -costs[at]):
        target = int(np.argmin((loads + costs[tree]) / speed))
        loads[target] += costs[tree]
        where[tree] = target
    nodes = np.array(where, dtype=np.int64)
    while _relieve(costs, nodes, loads, speed):
        pass
    trees = tuple(replace(tree, node=int(node)) for tree, node in zip(forest.trees, nodes, strict=True))
    return replace(forest, trees=trees, capacities=tuple(float(one) for one in capacities))


def _relieve(
    costs: np.ndarray[tuple[int], np.dtype[np.float64]],
    nodes: np.ndarray[tuple[int], np.dtype[np.int64]],
    loads: np.ndarray[tuple[int], np.dtype[np.float64]],
    speed: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> bool:
    """Move the one tree off the most loaded node that lowers the highest load of the two nodes most."""
    busiest = int(np.argmax(loads / speed))
    trees = np.flatnonzero(nodes == busiest)
    if not trees.size:
        return False
    left = (loads[busiest] - costs[trees]) / speed[busiest]
    there = (loads[None, :] + costs[trees][:, None]) / speed[None, :]
    there[:, busiest] = np.inf
    after = np.maximum(left, there.min(axis=1))
    best = int(np.argmin(after))
    if after[best] >= (1 - SLACK) * loads[busiest] / speed[busiest]:
        return False
    target = int(np.argmin(there[best]))
    loads[busiest] -= costs[trees[best]]
    loads[target] += costs[trees[best]]
    nodes[trees[best]] = target
    return True
