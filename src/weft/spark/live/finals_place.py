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
from weft.plan.model import Grouping, Plan
from weft.plan.record import GroupingRecord, PlanRecord, restored_grouping
from weft.spark.bind import Bound, Stream
from weft.spark.failures import fault
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
    every = (grouping_from(one, bound) for one in record.groupings)
    groupings = tuple(grouping for grouping in every if grouping.placing_columns)
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
    groupings = tuple(
        one
        if one.placing is not None
        else replace(one, placing=tuple(sorted(grouping_from(one, bound).placing_columns)))
        for one in record.groupings
    )
    return replace(record, groupings=groupings, buckets=buckets)


def grouping_from(record: GroupingRecord, bound: Mapping[str, Bound]) -> Grouping:
    """A grouping as it is recorded."""
    return restored_grouping(record, [bound[name].query for name in record.queries])


def bucket_text(live: LivePlan) -> str:
    """The bucket of a slice as one native Spark expression; by its grouping alone where that has no key for it."""
    choices = []
    nodes = max((one.node + 1 for one in live.record.groupings if one.node is not None), default=1)
    share = max(live.record.buckets // nodes, 1)
    for number, one in enumerate(live.record.groupings):
        slots = {name: slot for slot, name in live.names[one.id].items()}
        keys = ", ".join([f"'{one.id}'", *(slots[name] for name in one.placing or ())])
        if one.node is None:
            bucket = f"pmod(hash({keys}), {live.record.buckets})"
        else:
            bucket = f"{one.node * share} + pmod(hash({keys}), {share})"
        choices.append(f"WHEN {number} THEN {bucket}")
    return f"CAST(CASE {GROUPING} {' '.join(choices)} END AS INT)"
