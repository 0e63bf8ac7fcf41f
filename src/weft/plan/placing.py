"""Which bucket a slice goes to: buckets of equal work, also where some groupings cannot be split by a key."""

from __future__ import annotations

from collections.abc import Iterable

from weft.plan.layout import layouts
from weft.plan.model import Plan

PARTS = 1 << 16
"""In so many equal parts keys are hashed."""


def node_text(plan: Plan, grouping_column: str) -> str | None:
    """The nodes that a slice goes to, an array as one native Spark expression; None if trees are not placed."""
    placed = {number: grouping.nodes for number, grouping in enumerate(plan.groupings) if grouping.placed}
    if not placed:
        return None
    choices = [f"WHEN {number} THEN array({_numbers(nodes)})" for number, nodes in placed.items()]
    return f"CASE {grouping_column} {' '.join(choices)} ELSE array(0L) END"


def _numbers(nodes: Iterable[int]) -> str:
    return ", ".join(f"{node}L" for node in nodes)


def hash_text(plan: Plan, grouping_column: str) -> str:
    """A number below ``PARTS`` as one native Spark expression: equal for slices that have to meet in one bucket."""
    columns = layouts(plan)
    choices = []
    for number, grouping in enumerate(plan.groupings):
        own = {name: slot for slot, name in columns[number].names(number, grouping).items()}
        keys = [own[name] for name in grouping.placing_columns]
        choices.append(f"WHEN {number} THEN pmod(hash({', '.join([str(number), *keys])}), {PARTS})")
    return f"CAST(CASE {grouping_column} {' '.join(choices)} END AS BIGINT)"


def bucket_text(plan: Plan, buckets: int, grouping_column: str, hash_column: str, node_column: str = "") -> str:
    """The bucket of a slice as one native Spark expression, by the keys that all queries of its grouping have.

    Where trees are placed, each node has its own share of the buckets.
    """
    whole = whole_groupings(plan, buckets)
    cuts = enumerate(hash_cuts(plan, whole, buckets)[:-1])
    steps = " ".join(f"WHEN {hash_column} < {cut} THEN {bucket}" for bucket, cut in cuts)
    hashed = f"CASE {steps} ELSE {buckets - 1} END" if steps else "0"
    share = max(buckets // plan.nodes, 1)
    choices = [f"WHEN {number} THEN {bucket}" for number, bucket in whole.items()]
    choices += [
        f"WHEN {number} THEN {node_column} * {share} + {hash_column} % {share}"
        for number, grouping in enumerate(plan.groupings)
        if grouping.placed
    ]
    return f"CASE {grouping_column} {' '.join(choices)} ELSE {hashed} END" if choices else hashed


def loads_of(plan: Plan) -> tuple[float, ...]:
    """How much work each grouping is, as far as it is known."""
    return plan.loads or (1.0,) * len(plan.groupings)


def placed_loads(plan: Plan, buckets: int) -> list[float]:
    """The work that each bucket has from trees that are placed on its node."""
    work = [0.0] * buckets
    share = max(buckets // plan.nodes, 1)
    for grouping, load in zip(plan.groupings, loads_of(plan), strict=True):
        total = sum(tree.cost for tree in grouping.trees) or 1.0
        for tree in grouping.trees if grouping.placed else ():
            for bucket in range(tree.node * share, (tree.node + 1) * share):
                work[bucket] += load * tree.cost / total / share
    return work


def whole_groupings(plan: Plan, buckets: int) -> dict[int, int]:
    """Groupings without a key that all their queries share, and the bucket of each: heaviest first, to the least."""
    loads = loads_of(plan)
    work = placed_loads(plan, buckets)
    placed: dict[int, int] = {}
    unsplit = [
        number for number, grouping in enumerate(plan.groupings) if not grouping.placing_columns and not grouping.placed
    ]
    for number in sorted(unsplit, key=lambda number: -loads[number]):
        bucket = min(range(buckets), key=lambda bucket: work[bucket])
        work[bucket] += loads[number]
        placed[number] = bucket
    return placed


def hash_cuts(plan: Plan, whole: dict[int, int], buckets: int) -> list[int]:
    """Up to which hash each bucket takes keys: less where it has whole groupings to do already."""
    loads = loads_of(plan)
    work = placed_loads(plan, buckets)
    for number, bucket in whole.items():
        work[bucket] += loads[number]
    room = [max(sum(loads) / buckets - done, 0.0) for done in work]
    total = sum(room) or 1.0
    return [round(PARTS * sum(room[: bucket + 1]) / total) for bucket in range(buckets)]
