"""The live engine beside Spark's own streaming queries: the same trades, micro-batches and Parquet sink for both.

    .venv/bin/python benchmarks/streaming.py --repeats 3           # from files

Every repeat runs all systems in an order of its own. A system reads a bounded stream in micro-batches, one file each,
and ends; the first batches are not counted (Java compiles, state fills). Rows a second are the rows of the counted
batches over the time that Spark says it took for them. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from weft import Engine
from weft.spark.session import local_session
from weft.spark.sinks.parquet import ParquetSink
from workload_thousand import _Market, queries, query_file

ROOT = Path(__file__).resolve().parent.parent
CORES = 2
LATENESS = "10 seconds"
SKIPPED = 4
"""Batches that are not counted."""
COUNTS = (1, 100, 1000)
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BUSIER_MORNING = 1.0 + 0.08 * 2 * np.pi
"""How much faster the market's clock runs at the opening than over the day."""
console = Console(width=120, highlight=False)


@dataclass(frozen=True)
class Feed:
    """A stream: so many rows a minute of event time, in files of so many rows."""

    name: str
    a_minute: int
    a_file: int
    files: int

    @property
    def path(self) -> Path:
        """Where its files lie."""
        return ROOT / "bench-out" / f"feed-{self.a_minute}-{self.a_file}-{self.files}"


FAST = Feed("1 M a minute", 1_000_000, 1_000_000, 14)
SHORT = Feed("1 M a minute, batches of 100 k", 1_000_000, 100_000, 24)
SLOW = Feed("14 k a minute", 14_000, 14_000, 24)


@dataclass(frozen=True)
class Measured:
    """Seconds and rows of the counted batches of one run."""

    seconds: tuple[float, ...]
    rows: int

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / sum(self.seconds)

    @property
    def median(self) -> float:
        """The middle batch, in seconds."""
        return statistics.median(self.seconds)

    @property
    def slowest(self) -> float:
        """The 99th percentile of a batch, in seconds."""
        return float(np.quantile(self.seconds, 0.99))


@dataclass(frozen=True)
class System:
    """Something that reads a feed to its end."""

    name: str
    feed: Feed
    run: Callable[[SparkSession, Feed, Path], Measured]


def write_feed(feed: Feed) -> None:
    """Its files, once."""
    if (feed.path / "_DONE").exists():
        return
    feed.path.mkdir(parents=True, exist_ok=True)
    market = _Market(np.random.default_rng(11))
    whole = round(feed.a_minute * 360 * BUSIER_MORNING)
    for number in range(feed.files):
        rows = market.trades(number * feed.a_file, (number + 1) * feed.a_file, whole)
        pq.write_table(rows, feed.path / f"part-{number:04}.parquet")
    (feed.path / "_DONE").touch()


def rows_of(spark: SparkSession, feed: Feed) -> DataFrame:
    """The feed as a stream, a file a batch."""
    schema = spark.read.parquet(str(feed.path)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(feed.path))


def measured(progress: Sequence[Any]) -> Measured:
    """The counted batches of what Spark said."""
    batches = [one for one in progress if one["numInputRows"]][SKIPPED:]
    seconds = tuple(one["durationMs"]["triggerExecution"] / 1000 for one in batches)
    return Measured(seconds, sum(one["numInputRows"] for one in batches))


def weft(count: int) -> Callable[[SparkSession, Feed, Path], Measured]:
    """Weft with so many queries."""

    def run(spark: SparkSession, feed: Feed, folder: Path) -> Measured:
        engine = Engine(spark)
        engine.stream("trades", rows_of(spark, feed), event_time="ts")
        engine.sql(query_file(queries(1000)[:count]))
        live = engine.start(
            str(folder / "checkpoint"), [ParquetSink(str(folder / "out"))], lateness=LATENESS, available_now=True
        )
        live.await_termination()
        return measured(live.recent_progress)

    return run


def append_query(spark: SparkSession, feed: Feed, folder: Path, window: str) -> Any:
    """One of Spark's own: average and extremes per symbol and window."""
    rows = rows_of(spark, feed).withWatermark("ts", LATENESS)
    grouped = rows.groupBy("symbol", window_of(window)).agg({"price": "avg", "volume": "sum"})
    named = grouped.toDF(*[name.replace("(", "_").replace(")", "") for name in grouped.columns])
    return (
        named.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )


def window_of(text: str) -> Any:
    """A window column from ``range by slide``."""
    from pyspark.sql import functions as F

    length, _, slide = text.partition(" by ")
    return F.window("ts", length, slide or length)


def spark_query(window: str) -> Callable[[SparkSession, Feed, Path], Measured]:
    """Spark with one window."""

    def run(spark: SparkSession, feed: Feed, folder: Path) -> Measured:
        query = append_query(spark, feed, folder, window)
        query.awaitTermination()
        return measured(query.recentProgress)

    return run


def five_at_once(spark: SparkSession, feed: Feed, folder: Path) -> Measured:
    """Spark with five such queries side by side: the rows a second of each."""
    began = time.perf_counter()
    started = [append_query(spark, feed, folder / str(number), "1 hour by 1 minute") for number in range(5)]
    for query in started:
        query.awaitTermination()
    return Measured((time.perf_counter() - began,), feed.a_file * feed.files)


SYSTEMS = (
    *(System(f"Weft, {count:,}", FAST, weft(count)) for count in COUNTS),
    System("Spark, one of 1 h by 1 min", FAST, spark_query("1 hour by 1 minute")),
    System("Spark, five of 1 h by 1 min at once, each", FAST, five_at_once),
    *(System(f"Weft, {count:,}", SHORT, weft(count)) for count in COUNTS),
    System("Spark, plain tumbling of 1 min", SHORT, spark_query("1 minute")),
    *(System(f"Weft, {count:,}", SLOW, weft(count)) for count in COUNTS),
    System("Spark, one of 1 h by 1 min", SLOW, spark_query("1 hour by 1 minute")),
)


def run_all(repeats: int) -> dict[tuple[str, str], list[Measured]]:
    """Every system, ``repeats`` times, in an order of its own each time."""
    spark = local_session("weft streaming", master=f"local[{CORES}]", config={"spark.sql.shuffle.partitions": "2"})
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKS)
    found: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for feed in (FAST, SHORT, SLOW):
        write_feed(feed)
    for repeat in range(repeats):
        for system in random.Random(repeat).sample(SYSTEMS, len(SYSTEMS)):
            folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
            one = system.run(spark, system.feed, folder)
            shutil.rmtree(folder, ignore_errors=True)
            found[system.feed.name, system.name].append(one)
            console.print(
                f"{repeat + 1} of {repeats}  {system.feed.name:<32} {system.name:<44} {one.rate:>12,.0f} rows/s  "
                f"median {one.median:6.3f} s  99 % {one.slowest:6.3f} s"
            )
    spark.stop()
    return found


def report(found: dict[tuple[str, str], list[Measured]], path: Path) -> bool:
    """Write the tables; whether all bars hold."""
    lines = ["| stream | system | rows/s | median batch s | 99 % batch s |", "|---|---|--:|--:|--:|"]
    for (feed, system), runs in found.items():
        middle = [statistics.median(getattr(run, name) for run in runs) for name in ("rate", "median", "slowest")]
        lines.append(f"| {feed} | {system} | {middle[0]:,.0f} | {middle[1]:.3f} | {middle[2]:.3f} |")
    rates = ratios(found[FAST.name, "Weft, 1,000"], found[FAST.name, "Spark, one of 1 h by 1 min"], "rate")
    times = ratios(found[SHORT.name, "Weft, 100"], found[SHORT.name, "Spark, plain tumbling of 1 min"], "median")
    bars = [
        ("rows/s, Weft with 1,000 / Spark with one of 1 h by 1 min", rates, ">= 5", statistics.median(rates) >= 5),
        ("batch of 100 k, Weft with 100 / Spark tumbling", times, "<= 1.5", statistics.median(times) <= 1.5),
    ]
    lines += ["", "| ratio | median | spread | bar | |", "|---|--:|--:|--:|---|"]
    for name, values, bar, holds in bars:
        spread = f"{min(values):.2f} .. {max(values):.2f}"
        lines.append(
            f"| {name} | {statistics.median(values):.2f} | {spread} | {bar} | {'' if holds else '**missed**'} |"
        )
    path.write_text("\n".join(lines) + "\n")
    console.print("\n".join(lines))
    return all(holds for *_, holds in bars)


def ratios(ours: Sequence[Measured], theirs: Sequence[Measured], name: str) -> list[float]:
    """Ours over theirs, repeat by repeat."""
    return [getattr(one, name) / getattr(other, name) for one, other in zip(ours, theirs, strict=True)]


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--report", type=Path, default=ROOT / "bench-out" / "streaming.md")
    options = parser.parse_args()
    sys.exit(0 if report(run_all(options.repeats), options.report) else 1)


if __name__ == "__main__":
    main()
