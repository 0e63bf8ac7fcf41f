"""A driver for the crash tests: streams a folder to a Parquet sink, and kills itself where it is told to.

usage: killed_driver.py FOLDER [POINT COUNT]
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import weft
from weft.spark.live import answering, segments
from weft.spark.live.checkpoint import Checkpoint
from weft.spark.live.history import History
from weft.spark.live.outbox import Outbox
from weft.spark.session import use_java
from weft.spark.sinks.parquet import ParquetSink

QUERIES = """
CREATE VIEW sliding AS SELECT window.start, window.end, k, sum(v) AS s, count(*) AS n, max(v) AS m
FROM s GROUP BY window(ts, '60 seconds', '10 seconds'), k;
CREATE VIEW picked AS SELECT window.end, k, min(v) AS least FROM s WHERE v > 50
GROUP BY window(ts, '25 seconds', '10 seconds'), k;
CREATE VIEW computed AS SELECT window.start, k, sum(v) * 2 AS twice FROM s
GROUP BY window(ts, '30 seconds'), k HAVING count(*) > 1;
"""
LATENESS = "5 seconds"


def die() -> None:
    """Die as by ``kill -9``: nothing is flushed, nothing is closed."""
    os.kill(os.getpid(), signal.SIGKILL)


def half_a_file(original: Any) -> Any:
    """Write the state's file, cut it in half, die."""

    def dying(checkpoint: Checkpoint, name: str, tables: Any) -> int:
        size = original(checkpoint, name, tables)
        if due():
            path = checkpoint.folder.open(f"{segments.FOLDER}/{name}")[1]
            os.truncate(path, size // 2)
            die()
        return int(size)

    return dying


def before(original: Any) -> Any:
    """Die instead of the call."""

    def dying(*arguments: Any, **named: Any) -> Any:
        if due():
            die()
        return original(*arguments, **named)

    return dying


def after(original: Any) -> Any:
    """Die when the call has done its work."""

    def dying(*arguments: Any, **named: Any) -> Any:
        done = original(*arguments, **named)
        if due():
            die()
        return done

    return dying


POINTS = {
    "state": (segments, "write", half_a_file),
    "answers": (answering, "write_parquet", after),
    "started": (History, "start", after),
    "uncommitted": (History, "commit", before),
    "committed": (History, "commit", after),
    "delivering": (ParquetSink, "deliver", before),
    "delivered": (Outbox, "_note", before),
    "deleting": (Checkpoint, "delete", before),
}
left = 0


def due() -> bool:
    """Whether this is the call to die in."""
    global left
    left -= 1
    return left == 0


def quick_session() -> SparkSession:
    """A session that starts quickly, as many have to."""
    use_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main(folder: Path) -> None:
    """Stream what is there, close all windows, end."""
    spark = quick_session()
    source = str(folder / "source")
    rows = spark.readStream.schema("ts TIMESTAMP, k STRING, v BIGINT").option("maxFilesPerTrigger", 1).parquet(source)
    engine = weft.Engine(spark).stream("s", rows, event_time="ts")
    engine.sql(QUERIES)
    print("ready", flush=True)
    live = engine.start(
        str(folder / "checkpoint"),
        lateness=LATENESS,
        sinks=[ParquetSink(str(folder / "answers"), every=0.5)],
        available_now=True,
        drain=True,
    )
    live.await_termination()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        target, name, how = POINTS[sys.argv[2]]
        left = int(sys.argv[3])
        setattr(target, name, how(getattr(target, name)))
    main(Path(sys.argv[1]))
