"""No sharing: a tree for every single query, also for those with equal edges. What 000 compares everything with.

The only optimizer that takes queries apart which are one item for all others, so it works on windows, not on a loom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from weft.optimize.cost import CostModel
from weft.optimize.items import Item
from weft.optimize.omega import TechniqueCode, overlap
from weft.plan.forest import Tree
from weft.slicing.edge_rate import Rate


def no_share(
    items: Sequence[Item], model: CostModel, technique: TechniqueCode, capacities: Sequence[float]
) -> tuple[Tree, ...]:
    """Every query by itself, dearest first to the node with the least to do."""
    loads, speed = np.zeros(len(capacities)), np.array(capacities)
    trees = []
    for item, names, rate, per_edge, cost in sorted(_alone(items, model, technique), key=lambda one: -one[-1]):
        for name in names:
            node = int(np.argmin((loads + cost) / speed))
            loads[node] += cost
            trees.append(Tree((name,), item.progressions, rate, per_edge, cost, technique.label, node))
    return tuple(trees)


def _alone(
    items: Sequence[Item], model: CostModel, technique: TechniqueCode
) -> Iterator[tuple[Item, tuple[str, ...], Rate, float, float]]:
    for item in items:
        exact = Fraction(len(item.progressions), item.progressions[0].step)
        rate = Rate(exact, exact)
        for window, names in item.windows:
            alone = 1.0 if technique is TechniqueCode.BULK else window.overlap
            per_edge = overlap(technique, alone, [window.length], float(exact))
            cost = model.tree(rate.per_second, per_edge, window.per_second)
            yield item, names, rate, per_edge, cost
