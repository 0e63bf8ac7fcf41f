"""The live engine beside Spark's own streaming queries: the same trades and the same Parquet sink for both.

    .venv/bin/python benchmarks/streaming.py --report docs/benchmarks-streaming.md

A system reads a bounded stream in micro-batches and ends; its first batches are not counted (Java compiles, state
fills). Rows a second are the rows of the counted batches over the time that Spark says their triggers took, from the
look for new rows to the commit. What the bars compare is measured several times, by turns; everything else once. Each
side reads micro-batches of the size that suits it best at a million trades a minute; the size is told. Exits with 1 if
a bar is missed.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from streaming_feeds import ROOT, Feed, Files, Topic, Trades, broker
from techniques_report import table
from weft import Engine
from weft.launch.session import local_session
from weft.sinks.parquet import ParquetSink
from weft.spark.live.engine import LiveEngine
from workload_thousand import queries, query_file

CORES = 2
LATENESS = "10 seconds"
COUNTS = (1, 100, 1000)
HOUR = "1 hour by 1 minute"
ONE, FIVE, PLAIN = "Spark, one of 1 h by 1 min", "Spark, five of these at once", "Spark, plain tumbling of 1 min"
THOUSAND = f"Weft, {COUNTS[-1]:,}"
READ = "Spark, reads and parses only"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
console = Console(width=150, highlight=False)


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


Place = tuple[str, str, str, int]
"""Where rows come from, how many a minute, the system, rows a batch."""
Found = dict[Place, list[Measured]]


@dataclass(frozen=True)
class System:
    """Something that reads a feed: in batches of so many rows, the first of which are not counted."""

    name: str
    feed: Feed
    a_batch: int
    skipped: int
    counted: int
    run: Callable[[SparkSession, System, Path], Measured]
    repeats: int = 1

    @property
    def place(self) -> Place:
        """Its row in the table."""
        return self.feed.source, self.feed.trades.name, self.name, self.a_batch


def until_counted(system: System, streams: Sequence[StreamingQuery | LiveEngine]) -> None:
    """Wait until every stream has had all the batches that count."""
    wanted = system.skipped + system.counted
    while any(sum(bool(one["numInputRows"]) for one in progress(stream)) < wanted for stream in streams):
        if not all(stream.is_active if isinstance(stream, LiveEngine) else stream.isActive for stream in streams):
            raise SystemExit(f"{system.name} ended before its time")
        time.sleep(0.5)


def progress(stream: StreamingQuery | LiveEngine) -> list[Any]:
    """What Spark tells about the last batches."""
    return stream.recent_progress if isinstance(stream, LiveEngine) else list(stream.recentProgress)


def measured(system: System, streams: Sequence[StreamingQuery | LiveEngine]) -> Measured:
    """The counted batches of all streams."""
    batches: list[Any] = []
    for stream in streams:
        batches += [one for one in progress(stream) if one["numInputRows"]][system.skipped :][: system.counted]
    seconds = tuple(one["durationMs"]["triggerExecution"] / 1000 for one in batches)
    # Spark counts a row again for every time that a batch looks at it
    return Measured(seconds, sum(min(one["numInputRows"], system.a_batch) for one in batches))


def weft(count: int) -> Callable[[SparkSession, System, Path], Measured]:
    """Weft with so many queries."""

    def run(spark: SparkSession, system: System, folder: Path) -> Measured:
        engine = Engine(spark).stream("trades", system.feed.stream(spark, system.a_batch), event_time="ts")
        engine.sql(query_file(queries(count)))
        sink = ParquetSink(str(folder / "out"))
        live = engine.start(str(folder / "checkpoint"), lateness=LATENESS, sinks=[sink])
        until_counted(system, [live])
        live.stop()
        return measured(system, [live])

    return run


def append_query(spark: SparkSession, system: System, folder: Path, window: str) -> StreamingQuery:
    """One of Spark's own: average price and volume by symbol and window."""
    rows = system.feed.stream(spark, system.a_batch).withWatermark("ts", LATENESS)
    length, _, slide = window.partition(" by ")
    grouped = rows.groupBy("symbol", F.window("ts", length, slide or length))
    answers = grouped.agg(F.avg("price").alias("mean_price"), F.sum("volume").alias("volume"))
    writer = answers.writeStream.format("parquet").outputMode("append").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def spark_queries(window: str, count: int = 1) -> Callable[[SparkSession, System, Path], Measured]:
    """Spark with one window, in one query or in several side by side: then what each of them does."""

    def run(spark: SparkSession, system: System, folder: Path) -> Measured:
        started = [append_query(spark, system, folder / str(number), window) for number in range(count)]
        until_counted(system, started)
        for query in started:
            query.stop()
        return measured(system, started)

    return run


def reading(spark: SparkSession, system: System, folder: Path) -> Measured:
    """What every side has to do, and nothing else: rows are read, parsed and thrown away."""
    writer = system.feed.stream(spark, system.a_batch).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    until_counted(system, [query])
    query.stop()
    return measured(system, [query])


FAST = Trades(1_000_000, 1_000_000, 40)
SHORT = Trades(1_000_000, 100_000, 30)
SLOW = Trades(14_000, 14_000, 160)
IDLE = Trades(14_000, 1_000, 80)
FILES_AT_ONCE = 20


def systems(feeds: Sequence[Feed], repeats: int) -> Iterator[System]:
    """Everything that is measured."""
    one, five, plain = spark_queries(HOUR), spark_queries(HOUR, 5), spark_queries("1 minute")
    for feed in feeds:
        size = feed.trades.a_file
        if feed.trades == SHORT:
            yield System("Weft, 100", feed, size, 10, 15, weft(100), repeats)
            yield System(THOUSAND, feed, size, 10, 15, weft(1000), repeats)
            yield System(PLAIN, feed, size, 10, 15, plain, repeats)
        elif feed.trades == IDLE:
            yield System(THOUSAND, feed, size, 12, 60, weft(1000))
            yield System(ONE, feed, size, 12, 60, one)
        elif feed.trades == SLOW:
            for count in COUNTS:
                yield System(f"Weft, {count:,}", feed, size, 8, 16, weft(count), repeats if count == COUNTS[-1] else 1)
            yield System(ONE, feed, size, 8, 16, one, repeats)
            yield System(FIVE, feed, size, 4, 8, five)
            if feed.source == "files":
                yield System(THOUSAND, feed, FILES_AT_ONCE * size, 3, 4, weft(COUNTS[-1]))
                yield System(ONE, feed, FILES_AT_ONCE * size, 3, 4, one)
        else:
            files = feed.source == "files"
            for count in COUNTS:
                yield System(f"Weft, {count:,}", feed, size, 3, 6, weft(count))
            yield System(THOUSAND, feed, 2 * size, 2, 3, weft(COUNTS[-1]))
            yield System(ONE, feed, size, 1, 3, one, repeats if files else 1)
            yield System(FIVE, feed, size, 1, 1, five)
            yield System(READ, feed, size, 3, 6, reading)
            if files:
                yield System(THOUSAND, feed, 8 * size, 2, 3, weft(COUNTS[-1]), repeats)
                yield System(ONE, feed, 4 * size, 1, 2, one, repeats)


def run_all(spark: SparkSession, chosen: Sequence[System]) -> Found:
    """Every system as often as it is to be, in an order of its own each time."""
    found: Found = defaultdict(list)
    for repeat in range(max((system.repeats for system in chosen), default=0)):
        now = [system for system in chosen if repeat < system.repeats]
        for system in random.Random(repeat).sample(now, len(now)):
            folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
            began = time.perf_counter()
            one = system.run(spark, system, folder)
            shutil.rmtree(folder, ignore_errors=True)
            found[system.place].append(one)
            console.print(
                f"{repeat + 1}  {'  '.join(map(str, system.place)):<70} {one.rate:>10,.0f} rows/s  "
                f"median {one.median:6.3f} s  99 % {one.slowest:6.3f} s  ({time.perf_counter() - began:.0f} s)"
            )
    return found


@dataclass(frozen=True)
class Bar:
    """What the project promised: a ratio of two systems, repeat by repeat."""

    name: str
    ratios: tuple[float, ...]
    bar: str = ""
    holds: bool = True

    @classmethod
    def at_least(cls, name: str, ratios: tuple[float, ...], least: float | None) -> Bar:
        """A ratio that is to be no smaller; without a bar it is only told."""
        return cls(name, ratios) if least is None else cls(name, ratios, f">= {least:g}", middle_of(ratios) >= least)

    @classmethod
    def at_most(cls, name: str, ratios: tuple[float, ...], most: float) -> Bar:
        """A ratio that is to be no larger."""
        return cls(name, ratios, f"<= {most:g}", middle_of(ratios) <= most)


middle_of = statistics.median


def bars(found: Found) -> list[Bar]:
    """The ratios of this run."""
    made = []
    for source in dict.fromkeys(place[0] for place in found):
        fast, slow = (source, FAST.name), (source, SLOW.name)
        ours, theirs = best(found, (*fast, THOUSAND)), best(found, (*fast, ONE))
        if ours and theirs:
            name = f"{source}, {FAST.name}: rows/s of Weft with 1,000 queries over Spark's with one"
            made.append(Bar.at_least(name, rates(found[ours], found[theirs]), 7 if source == Files.source else None))
            if (read := (*fast, READ, theirs[3])) in found:
                most = rate(found[read]) / rate(found[theirs])
                name = f"{source}, {FAST.name}: the same, were its queries for nothing"
                made.append(Bar.at_least(name, (most,), None))
        small, one = (*slow, THOUSAND, SLOW.a_file), (*slow, ONE, SLOW.a_file)
        if small in found and one in found:
            name = f"{source}, batches of {SLOW.a_file:,}: rows/s of Weft with 1,000 queries over Spark's with one"
            made.append(Bar.at_least(name, rates(found[small], found[one]), 1.5 if source == Files.source else 1.0))
    short = (Files.source, SHORT.name)
    for count, most in (("Weft, 100", 1.5), (THOUSAND, 1.0)):
        ours, theirs = (*short, count, SHORT.a_file), (*short, PLAIN, SHORT.a_file)
        if ours in found and theirs in found:
            pairs = zip(found[ours], found[theirs], strict=True)
            times = tuple(one.median / other.median for one, other in pairs)
            made.append(Bar.at_most(f"a batch of {SHORT.a_file:,}: {count} over Spark's tumbling", times, most))
    return made


def best(found: Found, system: tuple[str, str, str]) -> Place | None:
    """The batch size that suits a system best."""
    places = (place for place in found if place[:3] == system)
    return max(places, key=lambda place: rate(found[place]), default=None)


def rates(ours: Sequence[Measured], theirs: Sequence[Measured]) -> tuple[float, ...]:
    """Rows a second of one system over those of another, repeat by repeat."""
    return tuple(one.rate / other.rate for one, other in zip(ours, theirs, strict=False))


def rate(runs: Sequence[Measured]) -> float:
    """Rows a second, the middle run."""
    return statistics.median(run.rate for run in runs)


def report(found: Found, made: Sequence[Bar], seconds: float) -> str:
    """The tables."""
    rows = [
        (
            source,
            trades,
            f"{a_batch:,}",
            system,
            f"{rate(runs):,.0f}",
            f"{middle(runs, 'median'):.3f}",
            f"{middle(runs, 'slowest'):.3f}",
            len(runs),
        )
        for (source, trades, system, a_batch), runs in sorted(found.items())
    ]
    head = ("from", "trades", "rows a batch", "system", "rows/s", "median batch s", "99 % batch s", "runs")
    ratios = [
        (
            bar.name,
            f"{middle_of(bar.ratios):.2f}",
            f"{min(bar.ratios):.2f} .. {max(bar.ratios):.2f}",
            bar.bar,
            "" if bar.holds else "**missed**",
        )
        for bar in made
    ]
    memory = psutil.virtual_memory().total / 2**30
    about = (
        f"Written by `python {' '.join(sys.argv)}` on {datetime.date.today()} in {seconds / 60:.0f} minutes: "
        f"{CORES} cores, {memory:.1f} GiB, {platform.system()}; Spark {pyspark.__version__}, "
        f"Python {platform.python_version()}. 100 symbols, Zipf; the queries are those of "
        "`benchmarks/workload_thousand.py`. Lateness 10 s; Parquet sinks on both sides."
    )
    return "\n\n".join(
        [
            "# The live engine beside Spark's streams",
            about,
            table(head, rows),
            table(("ratio", "median", "spread", "bar", ""), ratios),
            NOTES,
        ]
    )


def middle(runs: Sequence[Measured], what: str) -> float:
    """The middle run's figure."""
    return statistics.median(getattr(run, what) for run in runs)


NOTES = (
    "A system reads a stream in micro-batches; the first ones are not counted. Rows a second are the rows of the "
    "counted batches over the time of their triggers, as Spark tells it, from the look for new rows to the commit. "
    'What the bars compare was measured first, several times by turns, everything else once. "Five at once" is what '
    "each of the five does. A rate is taken at the batch size that suits a side best; the others are shown "
    "too. Records in Kafka are JSON, which both sides parse by Spark's `from_json`, with the broker on the same two "
    "cores. Reading and parsing alone takes so long there that no engine, were its queries for nothing, could be five "
    "times as fast as Spark with one query: the ratios say how far it could get. At 14 k trades a minute a thousand "
    "queries make some 25 answers for every trade. The 99th percentile of so few batches is the slowest of them, or "
    "nearly so."
)


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="of what the bars compare")
    parser.add_argument("--bars", action="store_true", help="only what the bars compare, in a process of its own")
    parser.add_argument("--only", choices=("files", "Kafka"), help="one kind of source")
    parser.add_argument("--report", type=Path, default=ROOT / "bench-out" / "streaming.md")
    options = parser.parse_args()
    began = time.perf_counter()
    for trades in (FAST, SHORT, SLOW, IDLE):
        trades.write()
    spark = local_session(
        "weft streaming", master=f"local[{CORES}]", config={"spark.sql.shuffle.partitions": str(CORES)}
    )
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKS)
    found: Found = {}
    if options.only != "Kafka":
        chosen = list(systems([Files(FAST), Files(SHORT), Files(SLOW), Files(IDLE)], options.repeats))
        # first, in a process that has done nothing else, as a job has one
        found |= run_all(spark, [system for system in chosen if system.repeats > 1])
        found |= run_all(spark, [system for system in chosen if system.repeats == 1 and not options.bars])
    if options.only != "files" and not options.bars:
        with broker() as running:
            topics = [Topic(FAST, running, 11), Topic(SLOW, running, 30)]
            for topic in topics:
                topic.fill(spark)
            found |= run_all(spark, list(systems(topics, options.repeats)))
    spark.stop()
    made = bars(found)
    text = report(found, made, time.perf_counter() - began)
    options.report.write_text(text + "\n")
    console.print(text, markup=False)
    sys.exit(0 if all(bar.holds for bar in made) else 1)


if __name__ == "__main__":
    main()
