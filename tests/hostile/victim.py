"""A process with a live job, one of whose queries kills the JVM as soon as it is computed.

``python victim.py FOLDER [QUERY...]``: answers what is in ``FOLDER/source`` and ends; the queries are added first.
``python victim.py FOLDER run QUERY``: the same in one run, without a stream.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent.parent))

from hostile.kinds import good_queries
from hostile.neighbours import as_text, rows_of
from live.driven import table
from weft import Engine
from weft.launch.session import local_session
from weft.sinks.parquet import ParquetSink

SCHEMA = "ts TIMESTAMP, k STRING, v BIGINT, x DOUBLE"
GOOD = 12
DEADLY = "-- name: deadly\nSELECT window.start, max(deadly(v)) AS m FROM s GROUP BY window(ts, '10 seconds')"


def write_source(folder: Path, batches: int) -> None:
    """A file a micro-batch."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(rows_of(batches, trigger=None)):
        pq.write_table(table(rows), folder / f"{number:04}.parquet")


def session() -> SparkSession:
    """A session with the function ``deadly``."""
    spark = local_session(memory="1g")
    java = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())

    def deadly(value: int) -> int:
        os.kill(java, signal.SIGKILL)
        return value

    spark.udf.register("deadly", deadly, "bigint")
    return spark


def run(folder: Path, added: list[str]) -> None:
    """One run, which the JVM does not outlive."""
    spark = session()
    engine = Engine(spark).stream("s", spark.read.parquet(str(folder / "source")), event_time="ts")
    for text in (as_text(good_queries(GOOD)), *added):
        engine.sql(text)
    engine.run()


def main(folder: Path, added: list[str]) -> None:
    """Run until all is read, or until the JVM dies."""
    spark = session()
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "source"))
    engine = Engine(spark).stream("s", files, event_time="ts")
    if not (folder / "checkpoint").exists():
        engine.sql(as_text(good_queries(GOOD)))
        for text in added:
            engine.sql(text)
    sink = ParquetSink(str(folder / "answers"))
    live = engine.start(str(folder / "checkpoint"), lateness="5 seconds", sinks=[sink], available_now=True, drain=True)
    live.await_termination()


if __name__ == "__main__":
    where, *words = sys.argv[1:]
    run(Path(where), words[1:]) if words[:1] == ["run"] else main(Path(where), words)
