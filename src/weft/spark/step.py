"""The step of a batch run: rows to slices, slices to answers in Arrow, answers to typed Parquet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.plan.cut_engine import CutEngine
from weft.plan.model import Plan
from weft.plan.placing import bucket_text, hash_text, node_text
from weft.spark.bucket_task import THREADS, BucketTask, Order
from weft.spark.fetching import TooLargeError, arrow_schema, observed_by
from weft.spark.kernel_cut import cut_into_buckets, cut_table, read_counts
from weft.spark.packed import packed, packing_of
from weft.spark.rows import slices
from weft.spark.sample import RowsAtHand
from weft.spark.scatter import Scattered
from weft.spark.sending import sendable
from weft.step.answer_files import AnswerFiles, Written, count_distinct
from weft.step.arriving import PackedRows
from weft.step.cutting import Counts, Cutter
from weft.step.new_slices import NewSlices
from weft.step.parts import AT_ONCE, HASH
from weft.step.state import GROUPING, NODE, State
from weft.step.step_plan import StepPlan, numbered_ids
from weft.step.turn import turn
from weft.store.folder import Folder

BUCKET = "__weft_bucket"
RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
SETTINGS = {
    RECORDS: "50000",
    # with any smaller limit Spark adds up the size of the whole batch after every row: a third of the way to Python
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # the small fast map before the real one pays for few groups only; slices are many
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    # wide aggregations are compiled too
    "spark.sql.codegen.maxFields": "2000",
    # nothing to adapt; and where nothing comes in, it would drop the node that counts the rows
    "spark.sql.adaptive.enabled": "false",
    # as for tasks that are not SQL: one set of Python workers for both, not two
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
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


@dataclass(frozen=True)
class Made:
    """What the two halves of a step made, whoever cut the rows."""

    rows: int
    without_time: int
    slices: int
    written: Written


def step(
    plan: Plan,
    rows: DataFrame,
    folder: Folder,
    buckets: int,
    cut: CutEngine = "jvm",
    at_hand: RowsAtHand | None = None,
) -> StepResult:
    """Answer all queries of ``plan`` over ``rows``; answers are written to ``folder``, a file a query and bucket.

    Parameters
    ----------
    cut
        Who cuts the rows, which has to be able to; the workers, if the driver is to and rows are too many for it.
    at_hand
        The rows that the planner looked at.
    """
    started = time.perf_counter()
    folder.make_folder("")
    prepared = StepPlan(plan, numbered_ids(plan))
    with tuned(rows.sparkSession):
        made = None
        if cut == "driver":
            with suppress(TooLargeError):
                made = answered_here(prepared, at_hand or RowsAtHand(rows, lambda _: cut), folder)
        if made is None:
            scattering = scattered_by_workers if cut != "jvm" else scattered_by_jvm
            with scattering(plan, rows, buckets) as (scattered, counts):
                made = answered_in_buckets(prepared, scattered, counts, folder)
    totals = Totals(
        rows_read=made.rows,
        rows_without_time=made.without_time,
        slices=made.slices,
        answers=made.written.rows,
        seconds=time.perf_counter() - started,
    )
    return StepResult(outcomes_of(plan, made.written), totals)


@contextmanager
def scattered_by_jvm(plan: Plan, rows: DataFrame, buckets: int) -> Iterator[tuple[Scattered, Counts]]:
    """Slices in their buckets, made by Spark's own aggregation, and the rows that were counted on the way."""
    # by name and not by an Observation: one whose job has failed leaves the next of its name waiting for ever
    observed = rows.observe(
        READ, F.count(F.lit(1)).alias("rows"), F.count(F.col(f"`{plan.event_time}`")).alias("timed")
    )
    with slices(observed, plan) as cut:
        placed = in_buckets(cut.frame, plan, buckets)
        packing = packing_of(placed)
        moved = packed(placed, packing).repartitionById(buckets, F.col(BUCKET))
        arrival = PackedRows(packing, arrow_schema(moved))
        scattered, counted = cut.counted(moved, lambda: Scattered.run(moved, arrival), READ)
        yield scattered, Counts(counted["rows"], counted["rows"] - counted["timed"])


@contextmanager
def scattered_by_workers(plan: Plan, rows: DataFrame, buckets: int) -> Iterator[tuple[Scattered, Counts]]:
    """The same, made by compiled kernels in the workers."""
    bundles, arrival = cut_into_buckets(rows, plan, buckets, READ)
    moved = bundles.repartitionById(buckets, F.col("bucket"))
    scattered = Scattered.run(moved, arrival)
    # a bundle is large already
    with set_for_a_while(rows.sparkSession, {RECORDS: "1"}):
        yield scattered, read_counts(observed_by(moved, READ))


def answered_in_buckets(plan: StepPlan, scattered: Scattered, counts: Counts, folder: Folder) -> Made:
    """Slices to answers in the workers, a task a bucket."""
    sent = scattered.frame.sparkSession.sparkContext.broadcast(sendable(plan))
    try:
        results = scattered.map(BucketTask(sent, Order(folder.root, at_once=AT_ONCE), scattered.arrival))
    finally:
        scattered.forget()
        sent.destroy()
    written = Written()
    for result in results:
        written.join(result.written)
    return Made(counts.rows, counts.without_time, sum(result.slices for result in results), written)


def answered_here(plan: StepPlan, rows: RowsAtHand, folder: Folder) -> Made:
    """Rows to answers in this process; Spark only evaluates what queries say."""
    cut = cut_table(rows.taken(plan.plan), Cutter(plan.plan))
    new = NewSlices.of_kernels(plan, cut.tables)
    # steps over several streams write to one folder
    prefix = f"here-{uuid4().hex[:12]}-"
    with AnswerFiles(plan, folder, prefix, sheet=f"{prefix}sheet.parquet", threads=THREADS) as files:
        files.take(turn(plan, new, State(), plan.emission(None, None), threads=THREADS).answers)
    return Made(cut.counts.rows, cut.counts.without_time, len(new), files.written)


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
    with set_for_a_while(spark, {**step_settings(spark), **tasks}):
        yield


@contextmanager
def set_for_a_while(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Spark settings for the time of a block."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
