"""A job fed by hand: micro-batches and answers as plain rows. What ``foreachBatch`` does, without the stream."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from oracle.trial import cut_engine
from weft.catalog import create_catalog
from weft.job.checkpoint import Checkpoint
from weft.job.history import History
from weft.job.patience import Patience
from weft.job.records import CheckpointSettings
from weft.job.sink import CommittedBatch
from weft.optimize.weaving import Weaving
from weft.plan.cut_engine import CutEngine
from weft.query.limits import DEFAULT, Limits
from weft.sources.source import LiveSource
from weft.spark.bind import Stream
from weft.spark.live.finals_place import FinalsPlace
from weft.spark.live.job import Job
from weft.spark.live.next_plan import Wishes
from weft.spark.step import step_settings

SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("v", pa.int64()), ("x", pa.float64())])
SECOND = 1_000_000
FINALS = "WEFT_TEST_FINALS"
"""The environment variable that tells where finals run: driver or executors."""
Row = tuple[Any, ...]


class Collecting:
    """A sink that keeps rows in memory; a batch that it has taken already changes nothing."""

    name = "collecting"

    def __init__(self) -> None:
        self.batches: dict[int, dict[str, list[Row]]] = {}
        self.watermarks: dict[int, int | None] = {}

    def open(self) -> None:
        pass

    def deliver(self, batch: CommittedBatch) -> None:
        rows = {
            one.query: [row for table in one.tables() for row in plain(table)] for one in batch.answers if one.files
        }
        assert self.batches.setdefault(batch.number, rows) == rows, "a batch that is delivered again is the same"
        self.watermarks[batch.number] = batch.watermark

    def close(self) -> None:
        pass

    def rows(self, query: str) -> list[Row]:
        """All rows of a query, batch after batch."""
        return [row for number in sorted(self.batches) for row in self.batches[number].get(query, [])]


def plain(table: pa.Table) -> list[Row]:
    """Rows as tuples; instants as microseconds."""
    columns = [[unzoned(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def unzoned(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return round((value - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)).total_seconds() * SECOND)
    if isinstance(value, dict):
        return tuple((name, unzoned(one)) for name, one in value.items())
    return value


class Driven:
    """A job over the stream ``s(ts, k, v, x)`` in a folder; a new one on the same folder is a restart."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        lateness: int,
        sink: Collecting | None = None,
        finals: FinalsPlace | None = None,
        patience: Patience | None = None,
        weaving: Weaving | None = None,
        limits: Limits = DEFAULT,
        cut: CutEngine | None = None,
        *,
        settle: bool = True,
    ) -> None:
        # as the live engine has it: its own session, with settings that suit the shared pass
        self.spark = spark.newSession()
        for key, value in step_settings(self.spark).items():
            self.spark.conf.set(key, value)
        self.sink = sink or Collecting()
        self.catalog = create_catalog(str(folder))
        history = History(Checkpoint(str(folder)))
        settings = history.settings(CheckpointSettings(uuid4().hex, "s", "ts", lateness))
        stream = Stream("s", self.spark.createDataFrame(SCHEMA.empty_table()), "ts", limits)
        place = finals or finals_place()
        self.job = Job(
            history,
            settings,
            stream,
            LiveSource(stream.rows),
            self.catalog,
            [self.sink],
            wishes=Wishes(weaving=weaving or Weaving(), finals=place, cut=cut or cut_engine()),
            patience=patience,
        )
        self.job.recover()
        if settle:
            self.job.outbox.settle()

    def add(self, queries: Mapping[str, str]) -> None:
        """Queries by name, from the next batch on."""
        if queries:
            self.catalog.add("".join(f"-- name: {name}\n{text};\n" for name, text in queries.items()))

    def feed(self, rows: Iterable[Row]) -> None:
        """One micro-batch."""
        batch = list(rows)
        self.job.process(frame(self.spark, batch), self.job.last.batch + 1)
        self.job.outbox.settle()
        assert self.job.last.counts["rows"] == len(batch), (self.job.last, len(batch))

    def rows(self, query: str) -> Counter[Row]:
        """All answers so far."""
        self.job.outbox.settle()
        return Counter(self.sink.rows(query))


def outlive(
    driven: Driven, batches: Iterable[Iterable[Row]], error: type[BaseException], restart: Callable[[], Driven]
) -> Driven:
    """Feed batches and drain, with the next driver wherever ``error`` ends one; gives the last driver.

    Spark runs a batch again until ``foreachBatch`` returns.
    """
    for number, rows in enumerate(batches):
        while driven.job.last.batch < number:
            try:
                driven.job.process(frame(driven.spark, rows), number)
                driven.job.outbox.settle()
            except error:
                driven = restart()
    while not driven.job.last.drained:
        try:
            driven.job.drain()
            driven.job.outbox.settle()
        except error:
            driven = restart()
    return driven


def finals_place() -> Any:
    """Where finals run, if a test does not say it."""
    return os.environ.get(FINALS, "auto")


def frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Rows of the stream as Spark hands them to ``foreachBatch``."""
    made = spark.createDataFrame(table(rows))
    rdd, schema = made._jdf.queryExecution().toRdd(), made._jdf.schema()
    return ClassicDataFrame(spark._jsparkSession.internalCreateDataFrame(rdd, schema, False), spark)


def table(rows: Iterable[Row]) -> pa.Table:
    """Rows of the stream as Arrow."""
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [[], [], [], []]
    arrays = [pa.array(column, item.type) for column, item in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)
