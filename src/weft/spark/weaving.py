"""Which queries share slices on this data, and which node has which: a plan becomes a forest that the step runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame

from weft.algebra.numbers import Array
from weft.optimize.nodes.spread import spread
from weft.optimize.registry import NODE_OPTIMIZERS
from weft.optimize.weaving import Weaving, nested, weave
from weft.plan.model import Plan
from weft.slicing.progression import Progression
from weft.spark.sample import Sampled, depends_on_data, joined, look, with_groupings

FEW_SLICES = 0.05
"""At most so many slices a row, and copying them for several nodes costs next to nothing."""
FEW_WINDOWS = 4
"""So few different windows are one tree: no sample needed."""
KEYS_A_PARTITION = 8
"""With fewer keys than this a partition is left with too little to do."""


def adapt_woven(plan: Plan, rows: DataFrame, weaving: Weaving, partitions: int) -> Plan:
    """Fit the plan to the data, weave its queries into trees, and say which node has which."""
    if not (depends_on_data(plan) or forest_depends_on_data(plan, weaving)):
        unseen = [Sampled.unseen(grouping) for grouping in plan.groupings]
        return place(unseen, replace(plan, groupings=tuple(one.grouping for one in unseen)), weaving, partitions)
    sample = [tree for one in joined(look(plan, rows)) for tree in woven(one, weaving)]
    return place(sample, with_groupings(plan, sample), weaving, partitions)


def forest_depends_on_data(plan: Plan, weaving: Weaving) -> bool:
    """Whether one tree a grouping is not good enough for sure."""
    if not weaving.is_default:
        return True
    return any(len(grouping.windows) > FEW_WINDOWS and not nested(grouping) for grouping in plan.groupings)


def woven(sampled: Sampled, weaving: Weaving) -> list[Sampled]:
    """The grouping as a forest, a tree that cuts the rows itself as a grouping of its own."""
    trees = weave(sampled.grouping, sampled.seen, weaving)
    return [replace(sampled, grouping=tree, starts=last_edge(sampled.starts, tree.progressions)) for tree in trees]


def last_edge(instants: Array, progressions: Sequence[Progression]) -> Array:
    """The last edge at or before each instant.

    Examples
    --------
    >>> last_edge(np.array([4, 9, 15]), [Progression(7, 2), Progression(10)]).tolist()
    [2, 9, 10]
    """
    last: Array = np.maximum.reduce([instants - (instants - edge.offset) % edge.step for edge in progressions])
    return last


def place(sample: Sequence[Sampled], plan: Plan, weaving: Weaving, partitions: int) -> Plan:
    """Say where slices go: to nodes if there are any, or if keys are too few to keep all cores busy."""
    if weaving.optimizer in NODE_OPTIMIZERS:
        placed = tuple(replace(grouping, placed=True) for grouping in plan.groupings)
        return replace(plan, groupings=placed, nodes=len(weaving.capacities) or 1)
    capacities = weaving.capacities
    if not capacities and partitions > 1 and not any(splits_by_key(one, partitions) for one in sample):
        capacities = (1.0,) * partitions
    if len(capacities) > 1:
        return replace(plan, groupings=spread(plan.groupings, capacities), nodes=len(capacities))
    return plan


def splits_by_key(sampled: Sampled, partitions: int) -> bool:
    """Whether there are keys enough to divide the work by."""
    if sampled.slices > FEW_SLICES * len(sampled.starts):
        return True  # copies of the slices for every node would cost more than an idle core
    if not sampled.grouping.placing_columns:
        return False
    return not len(sampled.keys) or sampled.seen.groups >= KEYS_A_PARTITION * partitions
