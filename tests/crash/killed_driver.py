"""A driver for the crash tests: streams a folder to its sinks, and dies or freezes where it is told to."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import weft
from weft.java.home import use_java
from weft.job import segments
from weft.job.checkpoint import Checkpoint
from weft.job.history import History
from weft.job.outbox import Outbox
from weft.job.sink import CommittedBatch
from weft.sinks import shelf
from weft.sinks.kafka import KafkaSink
from weft.sinks.packed import KeptPack, Packs
from weft.sinks.parquet import ParquetSink
from weft.sinks.postgres import PostgresSink
from weft.sinks.specs import sink_of
from weft.spark.live.finals_place import FinalsPlace
from weft.spark.live.job import Job
from weft.spark.live.on_executors import OnExecutors
from weft.step import answer_files

QUERIES = """
CREATE VIEW sliding AS SELECT window.start, window.end, k, sum(v) AS s, count(*) AS n, max(v) AS m
FROM s GROUP BY window(ts, '60 seconds', '10 seconds'), k;
CREATE VIEW picked AS SELECT window.end, k, min(v) AS least FROM s WHERE v > 50
GROUP BY window(ts, '25 seconds', '10 seconds'), k;
CREATE VIEW computed AS SELECT window.start, k, sum(v) * 2 AS twice FROM s
GROUP BY window(ts, '30 seconds'), k HAVING count(*) > 1;
CREATE VIEW bare AS SELECT k, count(*) AS n, sum(v) AS s, min(ts) AS since FROM s GROUP BY window(ts, '10 seconds'), k;
"""
LATENESS = "5 seconds"
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Spark makes no code for a plan: in a short life that takes longest."""
READY = "ready"
FROZEN = "frozen"


@dataclass(frozen=True)
class Death:
    """Where a driver ends its own life: at the ``count``-th time that it comes to a point."""

    point: str
    count: int
    frozen: bool = False
    """Stopped rather than killed: it goes on when it is woken, long after another driver has taken over."""


@dataclass(frozen=True)
class Life:
    """What a driver is told."""

    source: Path
    folder: Path
    """Its checkpoint, answers and log."""
    sinks: tuple[str, ...] = ()
    """Beside the Parquet files in its folder."""
    master: str = "local[2,4]"
    through_python: bool = False
    """Whether rows pass Python workers before they come to the engine."""
    finals: FinalsPlace = "auto"
    """Where slices become answers."""
    death: Death | None = None
    take_over: bool = False
    """Whether it takes the checkpoint from a driver that may live."""


def half_a_file(original: Any, due: Callable[[], None]) -> Any:
    """Write the state's file; when it is due only half of it is there."""

    def dying(checkpoint: Checkpoint, name: str, tables: Any) -> int:
        size = int(original(checkpoint, name, tables))
        path = checkpoint.folder.open(f"{segments.FOLDER}/{name}")[1]
        whole = Path(path).read_bytes()
        os.truncate(path, size // 2)
        due()
        Path(path).write_bytes(whole)
        return size

    return dying


def before(original: Any, due: Callable[[], None]) -> Any:
    """Before the call does anything."""

    def dying(*arguments: Any, **named: Any) -> Any:
        due()
        return original(*arguments, **named)

    return dying


def after(original: Any, due: Callable[[], None]) -> Any:
    """When the call has done its work, and nobody knows."""

    def dying(*arguments: Any, **named: Any) -> Any:
        done = original(*arguments, **named)
        due()
        return done

    return dying


POINTS: dict[str, tuple[Any, str, Any, int]] = {
    "recovered": (Job, "recover", after, 1),
    "plan": (History, "keep_plan", after, 1),
    "started": (History, "start", after, 3),
    "half of the state": (segments, "write", half_a_file, 3),
    "answers": (answer_files.AnswerFiles, "write", after, 9),
    "uncommitted": (History, "commit", before, 3),
    "committed": (History, "commit", after, 3),
    "parquet": (ParquetSink, "deliver", before, 3),
    "parquet files": (shelf, "appear", after, 12),
    "packs without a list": (Packs, "_write", before, 3),
    "packs": (Packs, "_write", after, 3),
    "packs shown": (KeptPack, "forget", after, 9),
    "kafka rows": (KafkaSink, "_send", after, 80),
    "kafka markers": (KafkaSink, "_settle", after, 4),
    "postgres rows": (PostgresSink, "_upsert", after, 8),
    "delivered": (Outbox, "_note", before, 8),
    "deleting": (Checkpoint, "delete", before, 8),
    "turned": (OnExecutors, "turn", after, 3),
}
"""By name: the function, how death comes to it, and at which call at the latest."""
IN_WORKERS = {"half of the state", "answers"}
"""Where no driver comes by whose finals run on the executors."""


def points(finals: FinalsPlace) -> list[str]:
    """The points that a driver comes to."""
    return [name for name in POINTS if (name not in IN_WORKERS if finals == "executors" else name != "turned")]


def arm(death: Death, tell: Connection) -> None:
    """Have death wait at its point."""
    left = death.count

    def due() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            if death.frozen:
                tell.send(FROZEN)
            os.kill(os.getpid(), signal.SIGSTOP if death.frozen else signal.SIGKILL)

    target, name, how, _ = POINTS[death.point]
    setattr(target, name, how(getattr(target, name), due))


class Reporting:
    """A sink that tells of batches."""

    name = "reporting"

    def __init__(self, tell: Connection) -> None:
        self._tell = tell

    def open(self) -> None:
        pass

    def deliver(self, batch: CommittedBatch) -> None:
        self._tell.send(batch.number)

    def close(self) -> None:
        pass


def quick_session(master: str) -> SparkSession:
    """A session that starts quickly, as many have to."""
    use_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    small = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": small,
        "spark.executor.extraJavaOptions": small,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # executors are killed as often as anybody likes
        "spark.deploy.maxExecutorRetries": "-1",
        # a machine that sleeps for a while must not cost the context
        "spark.network.timeout": "7200s",
        "spark.executor.heartbeatInterval": "3600s",
        "spark.worker.timeout": "7200",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def rows_of(spark: SparkSession, life: Life) -> DataFrame:
    """The stream, a file a batch."""
    schema = "ts TIMESTAMP, k STRING, v BIGINT"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(life.source))
    return rows.mapInArrow(lambda batches: batches, schema) if life.through_python else rows


def live(life: Life, tell: Connection) -> None:
    """Stream what is there, close all windows, end."""
    os.setsid()
    os.chdir(life.folder)  # a cluster keeps its files where it is started
    log = os.open(life.folder / "driver.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if life.death is not None:
        arm(life.death, tell)
    spark = quick_session(life.master)
    for key, value in INTERPRETED.items():
        spark.conf.set(key, value)
    engine = weft.Engine(spark).stream("s", rows_of(spark, life), event_time="ts")
    engine.sql(QUERIES)
    answer_files.PACKED = random.choice((0, 30, 1 << 15))  # this life's answers are packed, are not, or some of each
    parquet = ParquetSink(str(life.folder / "answers"), every=0.5)
    sinks = [parquet, *(sink_of(spec) for spec in life.sinks), Reporting(tell)]
    tell.send(READY)
    checkpoint = str(life.folder / "checkpoint")
    running = engine.start(
        checkpoint,
        lateness=LATENESS,
        sinks=sinks,
        available_now=True,
        drain=True,
        finals=life.finals,
        take_over=life.take_over,
    )
    running.await_termination()
