"""The step of a batch run: rows to slices, slices to answers in Arrow, answers to typed Parquet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.plan.model import Plan
from weft.plan.placing import bucket_text, hash_text, node_text
from weft.spark.bucket_task import BucketTask, Order, sendable
from weft.spark.packed import packed, packing_of
from weft.spark.rows import slices
from weft.spark.scatter import Scattered
from weft.step.answer_files import Written, count_distinct
from weft.step.parts import AT_ONCE, HASH
from weft.step.state import GROUPING, NODE
from weft.step.step_plan import StepPlan, numbered_ids
from weft.store.folder import Folder

BUCKET = "__weft_bucket"
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # with any smaller limit Spark adds up the size of the whole batch after every row: a third of the way to Python
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # the small fast map before the real one pays for few groups only; slices are many
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    # wide aggregations are compiled too
    "spark.sql.codegen.maxFields": "2000",
    # nothing to adapt; and where nothing comes in, it would drop the node that counts the rows
    "spark.sql.adaptive.enabled": "false",
}
EXCLUDED = "spark.sql.optimizer.excludedRules"
EMPTYING = tuple(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in ("PropagateEmptyRelation", "PruneFilters")
)
"""Rules by which Spark drops what lies below a filter that lets nothing through, and so the node that counts."""
READ = "read"
"""The name under which Spark counts rows on their way."""


@dataclass
class Outcome:
    """What came out for one query."""

    files: list[str] = field(default_factory=list)
    rows: int = 0
    windows: int = 0
    failure: str | None = None


@dataclass(frozen=True)
class Totals:
    """What a run did."""

    rows_read: int = 0
    rows_without_time: int = 0
    """Rows whose event time is NULL: dropped, as Spark's ``window`` does."""
    slices: int = 0
    answers: int = 0
    seconds: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        sums = (getattr(self, item.name) + getattr(other, item.name) for item in fields(self))
        return Totals(*sums)


@dataclass
class StepResult:
    """The outcome of every query of a step."""

    outcomes: dict[str, Outcome]
    totals: Totals


def step(plan: Plan, rows: DataFrame, folder: Folder, buckets: int) -> StepResult:
    """Answer all queries of ``plan`` over ``rows``; answers are written to ``folder``, a file a query and bucket."""
    started = time.perf_counter()
    spark = rows.sparkSession
    folder.make_folder("")
    # by name and not by an Observation: one whose job has failed leaves the next of its name waiting for ever
    observed = rows.observe(
        READ, F.count(F.lit(1)).alias("rows"), F.count(F.col(f"`{plan.event_time}`")).alias("timed")
    )
    with tuned(spark), slices(observed, plan) as cut:
        placed = in_buckets(cut.frame, plan, buckets)
        packing = packing_of(placed)
        moved = packed(placed, packing).repartitionById(buckets, F.col(BUCKET))
        scattered, counted = cut.counted(moved, lambda: Scattered.run(moved), READ)
        sent = spark.sparkContext.broadcast(sendable(StepPlan(plan, numbered_ids(plan), packing)))
        try:
            results = scattered.map(BucketTask(sent, Order(folder.root, at_once=AT_ONCE), scattered.schema))
        finally:
            scattered.forget()
            sent.destroy()
    written = Written()
    for result in results:
        written.join(result.written)
    totals = Totals(
        rows_read=counted["rows"],
        rows_without_time=counted["rows"] - counted["timed"],
        slices=sum(result.slices for result in results),
        answers=written.rows,
        seconds=time.perf_counter() - started,
    )
    return StepResult(outcomes_of(plan, written), totals)


def in_buckets(slices: DataFrame, plan: Plan, buckets: int) -> DataFrame:
    """Slices with the bucket that each goes to; those that several nodes need come once for each."""
    nodes = node_text(plan, GROUPING)
    copied = slices if nodes is None else slices.selectExpr("*", f"explode({nodes}) AS {NODE}")
    hashed = copied.selectExpr("*", f"{hash_text(plan, GROUPING)} AS {HASH}")
    bucket = f"CAST({bucket_text(plan, buckets, GROUPING, HASH, NODE)} AS INT)"
    return hashed.selectExpr("*", f"{bucket} AS {BUCKET}")


def outcomes_of(plan: Plan, written: Written) -> dict[str, Outcome]:
    """What all buckets wrote, query by query."""
    outcomes = gathered([query.name for query in plan.queries], written)
    for outcome in outcomes.values():
        # each bucket has kept to the limit, and all of them together may have gone beyond it
        beyond = plan.limits.beyond("answers", outcome.rows, f"it gives {outcome.rows:,} answers")
        outcome.failure = outcome.failure or beyond
    return outcomes


def gathered(names: Iterable[str], written: Written) -> dict[str, Outcome]:
    """What was written of some queries."""
    return {
        name: Outcome(
            written.files.get(name, []),
            written.counts.get(name, 0),
            count_distinct(written.windows.get(name, [])),
            written.failed.get(name),
        )
        for name in names
    }


def step_settings(spark: SparkSession) -> dict[str, str]:
    """Spark settings for the shared pass in a session."""
    excluded = [rule for rule in (spark.conf.get(EXCLUDED, "") or "").split(",") if rule and rule not in EMPTYING]
    return {**SETTINGS, EXCLUDED: ",".join((*excluded, *EMPTYING))}


@contextmanager
def tuned(spark: SparkSession) -> Iterator[None]:
    """Spark settings that suit the shared pass, for the time of a block."""
    cores = spark.sparkContext.defaultParallelism
    # several tasks a core, so that the cores end together
    tasks = {"spark.sql.files.minPartitionNum": str(4 * cores), "spark.sql.shuffle.partitions": str(2 * cores)}
    values = {**step_settings(spark), **tasks}
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
