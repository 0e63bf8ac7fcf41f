"""The one path of data: rows to slices in the JVM, slices to answers in Arrow, answers to typed Parquet."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.algebra.numbers import Array
from weft.plan.model import Plan
from weft.plan.placing import bucket_text, hash_text, node_text
from weft.spark.fetching import brought
from weft.spark.packed import packed, packing_of
from weft.spark.rows import slices
from weft.step.answers import Answer
from weft.step.parquet import parquet_options, write_parquet
from weft.step.parts import AT_ONCE, HASH, Parts
from weft.step.state import GROUPING, NODE, unretained
from weft.step.step_plan import StepPlan, numbered_ids
from weft.step.turn import turn_once
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
SHEETS = "sheets"
"""The folder for what Spark has yet to compute select lists from."""
SUMMARY = "query string, file string, rows bigint, windows binary, failure string, slices bigint"
SUMMARY_TYPES = pa.schema(
    [
        ("query", pa.string()),
        ("file", pa.string()),
        ("rows", pa.int64()),
        ("windows", pa.binary()),
        ("failure", pa.string()),
        ("slices", pa.int64()),
    ]
)


@dataclass
class Outcome:
    """What came out for one query."""

    files: list[str] = field(default_factory=list)
    rows: int = 0
    windows: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What a task wrote of one query, or why it could not; or, without a query, how many slices it had."""

    query: str | None
    file: str | None = None
    rows: int = 0
    windows: bytes = b""
    failure: str | None = None
    slices: int = 0


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
    for query in plan.queries:
        if query.direct:
            folder.make(query.name)
    folder.make_folder(SHEETS)
    # by name and not by an Observation: one whose job has failed leaves the next of its name waiting for ever
    observed = rows.observe(
        READ, F.count(F.lit(1)).alias("rows"), F.count(F.col(f"`{plan.event_time}`")).alias("timed")
    )
    with tuned(spark), slices(observed, plan) as cut:
        nodes = node_text(plan, GROUPING)
        copied = cut.frame if nodes is None else cut.frame.selectExpr("*", f"explode({nodes}) AS {NODE}")
        hashed = copied.selectExpr("*", f"{hash_text(plan, GROUPING)} AS {HASH}")
        packing = packing_of(hashed)
        bucket = f"CAST({bucket_text(plan, buckets, GROUPING, HASH, NODE)} AS INT)"
        placed = hashed.selectExpr("*", f"{bucket} AS {BUCKET}")
        bucketed = placed.repartitionById(buckets, F.col(BUCKET)).drop(BUCKET)
        task = bucket_task(StepPlan(plan, numbered_ids(plan), packing), folder, AT_ONCE)
        answered = packed(bucketed, packing).mapInArrow(task, SUMMARY)
        summary, counted = cut.counted(answered, lambda: brought(answered), READ)
    totals = Totals(
        rows_read=counted["rows"],
        rows_without_time=counted["rows"] - counted["timed"],
        slices=pc.sum(summary.column("slices")).as_py() or 0,
        answers=pc.sum(summary.column("rows")).as_py() or 0,
        seconds=time.perf_counter() - started,
    )
    outcomes = gather([query.name for query in plan.queries], summary)
    for outcome in outcomes.values():
        # each bucket has kept to the limit, and all of them together may have gone beyond it
        beyond = plan.limits.beyond("answers", outcome.rows, f"it gives {outcome.rows:,} answers")
        outcome.failure = outcome.failure or beyond
    return StepResult(outcomes, totals)


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


def bucket_task(
    plan: StepPlan, folder: Folder, at_once: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Spark task does with one bucket's slices."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        slices, written = 0, []
        with Parts(plan.packing, at_once) as parts, AnswerWriter(plan, folder) as writer:
            for batch in batches:
                parts.add(pa.Table.from_batches([batch]))
            for table in parts.tables():
                slices += len(table)
                answers = turn_once(plan, unretained(plan, table), plan.emission(None, None))
                written += [writer.write(answer) for answer in answers]
        if slices:
            yield summary_batch([Written(None, slices=slices), *written])

    return run


class AnswerWriter:
    """Writes the answers of one bucket; files are named by the attempt, so that a repeated task harms nothing."""

    def __init__(self, plan: StepPlan, folder: Folder) -> None:
        self._attempt = uuid.uuid4().hex[:12]
        self._written: Counter[str] = Counter()
        self._folder = folder
        self._sheet = plan.sheet
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> AnswerWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, answer: Answer) -> Written:
        """Write a query's answers, as they are or for Spark to compute from; gives what to tell the driver."""
        try:
            return self._write(answer)
        except pa.ArrowException as error:  # of its values; what a disk or a network does is an OSError
            return Written(answer.query.name, failure=Answer.failed(answer.query, error).failure)

    def _write(self, answer: Answer) -> Written:
        name = answer.query.name
        if answer.table is None:
            return Written(name, failure=answer.failure)
        if answer.query.direct:
            file = self._folder.file(name, f"part-{self._attempt}-{self._written[name]}.parquet")
            self._written[name] += 1
            write_parquet(answer.table, self._folder, file)
        else:
            file = f"{SHEETS}/part-{self._attempt}.parquet"
            self._add(self._sheet.lay_out(name, answer.table), file)
        return Written(name, file=file, rows=len(answer.table), windows=pack(answer.windows))

    def _add(self, rows: pa.Table, file: str) -> None:
        if self._writer is None:
            filesystem, path = self._folder.open(file)
            self._writer = pq.ParquetWriter(path, rows.schema, filesystem=filesystem, **parquet_options(rows.schema))
        self._writer.write_table(rows)


def summary_batch(written: Sequence[Written]) -> pa.RecordBatch:
    """What a task tells the driver, all at once: a batch a query would cost more than its answers."""
    columns = zip(*(astuple(one) for one in written), strict=True)
    arrays = [pa.array(column, item.type) for column, item in zip(columns, SUMMARY_TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SUMMARY_TYPES)


def pack(windows: Array) -> bytes:
    """Rising window numbers as runs, first and last of each: few where windows follow each other, as they mostly do.

    Examples
    --------
    >>> np.frombuffer(pack(np.array([5, 6, 7, 9])), np.int64).tolist()
    [5, 7, 9, 9]
    """
    breaks = np.flatnonzero(np.diff(windows) != 1)
    firsts = windows[np.concatenate(([0], breaks + 1))]
    lasts = windows[np.concatenate((breaks, [len(windows) - 1]))]
    return np.column_stack((firsts, lasts)).astype(np.int64).tobytes()


def count_distinct(packed: list[bytes]) -> int:
    """How many distinct windows several buckets saw.

    Examples
    --------
    >>> count_distinct([pack(np.array([5, 6, 9])), pack(np.array([4, 9]))])
    4
    """
    runs = sorted(
        (int(first), int(last)) for part in packed for first, last in np.frombuffer(part, np.int64).reshape(-1, 2)
    )
    count, reached = 0, -(2**63)
    for first, last in runs:
        if last > reached:
            count += last - max(first, reached + 1) + 1
            reached = last
    return count


def gather(names: Iterable[str], summary: pa.Table) -> dict[str, Outcome]:
    """What all buckets said, query by query."""
    outcomes = {name: Outcome() for name in names}
    packed: dict[str, list[bytes]] = {}
    for row in summary.to_pylist():
        if row["query"] is None:
            continue
        outcome = outcomes[row["query"]]
        outcome.rows += row["rows"]
        outcome.failure = outcome.failure or row["failure"]
        if row["file"]:
            if row["file"] not in outcome.files:
                outcome.files.append(row["file"])
            packed.setdefault(row["query"], []).append(row["windows"])
    for name, runs in packed.items():
        outcomes[name].windows = count_distinct(runs)
    return outcomes
