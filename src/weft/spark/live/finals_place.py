"""Where finals run, in the driver's process or on the executors; and, there, which bucket a slice belongs to.

A bucket keeps the state of its keys for the life of a checkpoint. So what places a slice is written down with its
grouping, and only queries that have those keys may join it later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, get_args

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.errors import WeftError
from weft.job.records import PlanRecord
from weft.plan.model import Plan
from weft.spark.bind import Bound, Stream
from weft.spark.failures import fault
from weft.spark.live.changes import tree_of
from weft.spark.live.planning import LivePlan
from weft.spark.rows import prepare
from weft.step.state import GROUPING

FinalsPlace = Literal["auto", "driver", "executors"]
MANY_SLICES = 600_000
"""From so many slices a batch on that can be split, finals run on the executors if nobody says where (decision 14)."""


def check_place(finals: str) -> None:
    """Refuse what is no place."""
    if finals not in get_args(FinalsPlace):
        raise WeftError(f"finals cannot run on {finals!r}: there are {', '.join(get_args(FinalsPlace))}")


def is_for_executors(
    finals: FinalsPlace, stream: Stream, record: PlanRecord, bound: Mapping[str, Bound], rows: DataFrame | None
) -> bool:
    """Whether the finals of a new plan run on the executors, as it is wished, or as its first rows tell."""
    if finals != "auto":
        return finals == "executors"
    if rows is None or not record.groupings or rows.count() * len(record.groupings) < MANY_SLICES:
        return False
    try:
        return estimated_slices(stream, record, bound, rows) >= MANY_SLICES
    except Exception as error:
        if fault(error) is None:
            raise
        return False  # the batch will leave out the queries that stop it; nobody knows what is left of them


def estimated_slices(stream: Stream, record: PlanRecord, bound: Mapping[str, Bound], rows: DataFrame) -> int:
    """About how many slices, by key and shard, some rows make in groupings that can be split into buckets."""
    trees = (tree_of(described, bound) for described in record.groupings)
    groupings = tuple(tree for tree in trees if tree.placing_columns)
    if not groupings:
        return 0
    queries = tuple(query for grouping in groupings for query in grouping.queries)
    plan = Plan(stream.name, stream.event_time, queries, groupings)
    columns = []
    for grouping in groupings:
        names = [grouping.slice_column, *grouping.key_columns, *(name for name, _ in grouping.signatures)]
        columns.append(F.approx_count_distinct(F.xxhash64(*names)))
    found = prepare(rows, plan).agg(*columns).first()
    return sum(found) if found is not None else 0


def in_buckets(record: PlanRecord, buckets: int, bound: Mapping[str, Bound]) -> PlanRecord:
    """The plan with its state in so many buckets; groupings that are placed already stay where they are."""
    if not buckets:
        return record
    groupings = [
        described
        if "placing" in described
        else {**described, "placing": sorted(tree_of(described, bound).placing_columns)}
        for described in record.groupings
    ]
    return replace(record, groupings=groupings, buckets=buckets)


def bucket_text(live: LivePlan) -> str:
    """The bucket of a slice as one native Spark expression; by its grouping alone where that has no key for it."""
    choices = []
    for number, described in enumerate(live.record.groupings):
        slots = {name: slot for slot, name in live.names[described["id"]].items()}
        keys = [f"'{described['id']}'", *(slots[name] for name in described["placing"])]
        choices.append(f"WHEN {number} THEN pmod(hash({', '.join(keys)}), {live.record.buckets})")
    return f"CAST(CASE {GROUPING} {' '.join(choices)} END AS INT)"
