"""The one path of data: rows to slices in the JVM, slices to answers in Arrow, answers to typed Parquet."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weft.algebra.measures import Array
from weft.plan.layout import layouts
from weft.plan.model import Plan
from weft.spark.files import Folder
from weft.spark.finals import GROUPING, Answer, finals
from weft.spark.rows import slices

BUCKET = "__weft_bucket"
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    # the small fast map before the real one pays for few groups only; slices are many
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    # wide aggregations are compiled too
    "spark.sql.codegen.maxFields": "2000",
}
SUMMARY = "query string, file string, rows bigint, windows binary, failure string, slices bigint"


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
    for query in plan.queries:
        folder.make(query.name)
    read = Observation()
    observed = rows.observe(
        read, F.count(F.lit(1)).alias("rows"), F.count(F.col(f"`{plan.event_time}`")).alias("timed")
    )
    cut = slices(observed, plan)
    placed = cut.select("*", bucket_column(plan, buckets)).repartitionById(buckets, F.col(BUCKET))
    with settings(spark, SETTINGS):
        summary = placed.mapInArrow(bucket_task(plan, folder), SUMMARY).toArrow()
    counted = read.get
    totals = Totals(
        rows_read=counted["rows"],
        rows_without_time=counted["rows"] - counted["timed"],
        slices=pc.sum(summary.column("slices")).as_py() or 0,
        answers=pc.sum(summary.column("rows")).as_py() or 0,
        seconds=time.perf_counter() - started,
    )
    return StepResult(gather(plan, summary), totals)


def bucket_column(plan: Plan, buckets: int) -> Column:
    """Which bucket a slice belongs to: by the keys that all queries of its grouping have."""
    bucket = F.lit(None).cast("int")
    columns = layouts(plan)
    for number, grouping in enumerate(plan.groupings):
        own = {name: slot for slot, name in columns[number].names(number, grouping).items()}
        hashed = F.pmod(F.hash(F.lit(number), *(own[name] for name in grouping.placing_columns)), F.lit(buckets))
        bucket = F.when(F.col(GROUPING) == number, hashed).otherwise(bucket)
    return bucket.alias(BUCKET)


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Spark settings for the time of a block."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def bucket_task(plan: Plan, folder: Folder) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Spark task does with one bucket's slices."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        if not received:
            return
        table = pa.Table.from_batches(received)
        yield summary_row(None, slices=len(table))
        attempt = uuid.uuid4().hex[:12]
        for answer in finals(plan, table):
            yield write_answer(answer, folder, attempt)

    return run


def write_answer(answer: Answer, folder: Folder, attempt: str) -> pa.RecordBatch:
    """Write a query's answers of one bucket; the name is the attempt's own, so that a repeated task harms nothing."""
    name = answer.query.name
    if answer.table is None:
        return summary_row(name, failure=answer.failure)
    file = folder.file(name, f"part-{attempt}.parquet")
    write_parquet(answer.table, folder, file)
    return summary_row(name, file=file, rows=len(answer.table), windows=pack(answer.windows))


def write_parquet(table: pa.Table, folder: Folder, file: str) -> None:
    """Typed Parquet as Spark reads it: strings by dictionary, everything else plain."""
    dictionaries = [item.name for item in table.schema if pa.types.is_dictionary(item.type)]
    filesystem, path = folder.open(file)
    pq.write_table(
        table,
        path,
        filesystem=filesystem,
        compression="snappy",
        use_dictionary=dictionaries,
        store_schema=False,
        write_statistics=True,
    )


def summary_row(
    query: str | None,
    *,
    file: str | None = None,
    rows: int = 0,
    windows: bytes = b"",
    failure: str | None = None,
    slices: int = 0,
) -> pa.RecordBatch:
    """What a task tells the driver of one query."""
    return pa.RecordBatch.from_pydict(
        {
            "query": pa.array([query], pa.string()),
            "file": pa.array([file], pa.string()),
            "rows": pa.array([rows], pa.int64()),
            "windows": pa.array([windows], pa.binary()),
            "failure": pa.array([failure], pa.string()),
            "slices": pa.array([slices], pa.int64()),
        }
    )


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


def gather(plan: Plan, summary: pa.Table) -> dict[str, Outcome]:
    """What all buckets said, query by query."""
    outcomes = {query.name: Outcome() for query in plan.queries}
    packed: dict[str, list[bytes]] = {}
    for row in summary.to_pylist():
        if row["query"] is None:
            continue
        outcome = outcomes[row["query"]]
        outcome.rows += row["rows"]
        outcome.failure = outcome.failure or row["failure"]
        if row["file"]:
            outcome.files.append(row["file"])
            packed.setdefault(row["query"], []).append(row["windows"])
    for name, runs in packed.items():
        outcomes[name].windows = count_distinct(runs)
    return outcomes
