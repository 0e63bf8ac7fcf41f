"""``python -m weft.launch.class_archive``: have Java write the classes that a session needs to an archive, once.

A small session does what people do first: a batch run cut by each engine, a few micro-batches, queries of Spark's own.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.java.classes import archive_options, class_archive, writing_options
from weft.launch.engine import Engine
from weft.launch.session import JAVA_OPTIONS, local_session
from weft.plan.cut_engine import CutEngine
from weft.sinks.parquet import ParquetSink

ENDS_WITHIN = 180.0
"""Seconds that Java may take to write the archive."""
ROWS = 2000
ENGINES: tuple[CutEngine, ...] = ("jvm", "workers", "driver")
QUERIES = (
    "SELECT window.start AS w, k, count(*) AS n, avg(x) AS m, max(x) AS h FROM s GROUP BY window(ts, '1 hour'), k",
    "SELECT window, round(sum(x), 2) AS s, min(y) AS l FROM s WHERE y > 3 GROUP BY window(ts, '1 hour', '5 minutes')",
)


def archive_classes(report: Callable[[str], object] = print) -> Path | None:
    """Write the archive, unless it is there; None, and a word about it, if this Java writes none."""
    archive = class_archive()
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        written = Path(folder) / archive.name
        if " " not in str(written):
            options = " ".join([*JAVA_OPTIONS, *writing_options(written)])
            spark = local_session("weft classes", config={"spark.driver.extraJavaOptions": options})
            load_classes(spark, Path(folder))
            end_java(spark)
        if written.exists():
            return written.replace(archive)
    report("this Java writes no archive of classes: sessions start a little later than they could")
    return None


def load_classes(spark: SparkSession, folder: Path) -> None:
    """Do what people do first."""
    id = F.col("id")
    columns = (
        F.timestamp_seconds(id * 7).alias("ts"),
        F.concat(F.lit("k"), (id % 5).cast("string")).alias("k"),
        (id / 3).alias("x"),
        (id % 11).cast("int").alias("y"),
    )
    source = str(folder / "rows")
    spark.range(ROWS).select(*columns).write.parquet(source)
    rows = spark.read.parquet(source)
    for cut in ENGINES:
        asked(Engine(spark, cut=cut).stream("s", rows, event_time="ts")).run().write(str(folder / cut))
    stream = spark.readStream.schema(rows.schema).parquet(source)
    sink = ParquetSink(str(folder / "answers"))
    live = asked(Engine(spark).stream("s", stream, event_time="ts"))
    live.start(str(folder / "checkpoint"), sinks=[sink], available_now=True, drain=True).await_termination()
    rows.createOrReplaceTempView("s")
    for number, query in enumerate(QUERIES):
        spark.sql(query).write.parquet(str(folder / f"plain-{number}"))
        spark.sql(query).toPandas()


def asked(engine: Engine) -> Engine:
    """An engine with some queries."""
    for number, query in enumerate(QUERIES):
        engine.sql(f"CREATE TEMPORARY VIEW q{number} AS {query}")
    return engine


def end_java(spark: SparkSession) -> None:
    """End the session and wait until Java has written what it was told to."""
    gateway = SparkContext._gateway
    spark.stop()
    assert gateway is not None
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    assert process.stdin is not None
    process.stdin.close()
    process.wait(ENDS_WITHIN)


if __name__ == "__main__":
    if not archive_options():
        print("writing an archive of Java's classes, once, so that sessions start sooner ...", flush=True)
        archive_classes()
