"""Queries over the samples, answered by Weft in batch and live and by Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from weft.checks.calls_of import SampledCall
from weft.checks.samples import sample
from weft.launch.engine import Engine
from weft.sinks.memory import MemorySink

WINDOW = "window(ts, '17 seconds', '5 seconds')"
FILES = 3
"""Micro-batches of the live run; rows come up to 16 seconds late."""
LATENESS = "20 seconds"
Answers = dict[tuple[Any, ...], tuple[Any, ...]]
"""Values by window and key."""


def select(calls: Sequence[str]) -> str:
    """A query over the samples."""
    values = ", ".join(f"{call} AS a{number}" for number, call in enumerate(calls))
    return f"SELECT window.start AS start, k, {values} FROM samples GROUP BY {WINDOW}, k"


def in_batch(spark: SparkSession, calls: Mapping[str, Sequence[SampledCall]]) -> dict[str, pa.Table | Exception]:
    """Weft's answers by the name of the query, or why there are none."""
    engine = Engine(spark).stream("samples", spark.createDataFrame(sample()), event_time="ts")
    engine.sql(_statements(calls))
    answers = engine.run()
    failed = answers.failures
    return {name: failed[name] if name in failed else answers[name].toArrow() for name in calls}


def live(spark: SparkSession, calls: Mapping[str, Sequence[SampledCall]]) -> dict[str, pa.Table | Exception]:
    """The same of a stream of a few micro-batches."""
    with tempfile.TemporaryDirectory() as folder:
        sink = MemorySink()
        with _one_shuffle(spark):
            engine = Engine(spark).stream("samples", _files(spark, Path(folder) / "rows"), event_time="ts")
            engine.sql(_statements(calls))
            job = engine.start(f"{folder}/checkpoint", lateness=LATENESS, sinks=[sink], available_now=True, drain=True)
            job.await_termination()
    nothing = AssertionError("there is no answer")
    return {name: sink.table(name) if name in sink.queries else nothing for name in calls}


def of_spark(spark: SparkSession, calls: Mapping[str, Sequence[SampledCall]]) -> dict[str, Answers]:
    """Spark's answers by the name of the query; it is asked once for all of them."""
    session = spark.newSession()
    session.createDataFrame(sample()).createOrReplaceTempView("samples")
    texts = list(dict.fromkeys(call.in_spark for some in calls.values() for call in some))
    table = session.sql(select(texts)).toArrow()
    places = {text: f"a{number}" for number, text in enumerate(texts)}
    return {
        name: keyed(table.select(["start", "k", *(places[c.in_spark] for c in some)])) for name, some in calls.items()
    }


def keyed(table: pa.Table) -> Answers:
    """Rows by the window and the key that they begin with."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return {row[:2]: row[2:] for row in rows}


def _statements(calls: Mapping[str, Sequence[SampledCall]]) -> str:
    return "\n".join(f"-- name: {name}\n{select([call.sql for call in some])};" for name, some in calls.items())


def _files(spark: SparkSession, folder: Path) -> DataFrame:
    """The samples as a stream that gives a file a batch."""
    folder.mkdir()
    table = sample()
    arrivals = [row + row * 7 % 16 for row in range(len(table))]  # there is about a row a second
    for number in range(FILES):
        rows = [row for row, arrival in enumerate(arrivals) if arrival * FILES // (max(arrivals) + 1) == number]
        file = folder / f"{number}.parquet"
        pq.write_table(table.take(pa.array(rows)), file)
        os.utime(file, (number, number))  # Spark takes files in the order of their times
    schema = spark.createDataFrame(table.slice(0, 0)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


@contextmanager
def _one_shuffle(spark: SparkSession) -> Iterator[None]:
    """Small batches need no more partitions."""
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key)
    spark.conf.set(key, "1")
    try:
        yield
    finally:
        spark.conf.set(key, str(before))
