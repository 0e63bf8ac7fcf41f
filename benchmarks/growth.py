"""What the time of a micro-batch grows with: the number of queries, of keys, and how far windows overlap.

    .venv/bin/python benchmarks/growth.py --report docs/benchmarks-growth.md

Batches of 100,000 rows, which are six seconds of event time, from Parquet files to a Parquet sink. Medians of the
batches after the first ones, part by part as the engine's own clock has them.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streaming import CORES, LATENESS, ROCKS, SHORT
from streaming_feeds import ROOT, ROW_GROUPS, Files
from techniques_report import figure, table
from weft import Engine
from weft.launch.session import local_session
from weft.sinks.parquet import ParquetSink
from workload_thousand import queries, query_file

ROWS = 100_000
SECONDS = 6
BATCHES = 24
PARTS = {
    "rows to slices": ("start", "slices"),
    "slices to answers": ("answers",),
    "state": ("state",),
    "commit and delivery": ("commit", "deliver"),
}
AGGREGATES = ("count(*) AS c", "sum(n) AS s", "avg(x) AS m", "max(x) AS hi", "stddev(x) AS d")
START = datetime.datetime(2026, 3, 2, 14, 30, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Point:
    """One measured setting."""

    what: str
    size: int
    system: str
    batch: float
    """Seconds of the whole trigger."""
    parts: dict[str, float]
    counts: dict[str, float]


def write_events(keys: int) -> Path:
    """Events of so many keys, once."""
    folder = ROOT / "bench-out" / f"events-{keys}"
    if (folder / "_DONE").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    first = int(START.timestamp()) * 1_000_000
    for number in range(BATCHES):
        within = np.sort(rng.integers(0, SECONDS * 1_000_000, ROWS))
        columns = {
            "ts": pa.array(first + number * SECONDS * 1_000_000 + within, pa.timestamp("us", tz="UTC")),
            "k": pa.array(rng.integers(0, keys, ROWS)),
            "n": pa.array(rng.integers(0, 1000, ROWS).astype(np.int32)),
            "x": pa.array(rng.normal(100, 15, ROWS)),
        }
        pq.write_table(pa.table(columns), folder / f"part-{number:04}.parquet", row_group_size=ROWS // ROW_GROUPS)
    (folder / "_DONE").touch()
    return folder


def events(spark: SparkSession, keys: int) -> DataFrame:
    """They as a stream, a file a batch."""
    folder = str(write_events(keys))
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def windows(count: int, length: str, slide: str) -> str:
    """So many queries by key over one window."""
    return "\n".join(
        f"CREATE VIEW q{number} AS SELECT k, window.start AS s0, {AGGREGATES[number % len(AGGREGATES)]} "
        f"FROM events GROUP BY k, window(ts, '{length}', '{slide}');"
        for number in range(count)
    )


def weft(
    rows: DataFrame, name: str, text: str, skipped: int, counted: int
) -> tuple[float, dict[str, float], dict[str, float]]:
    """The middle batch of a run: seconds of the trigger, of each part, and what was counted."""
    folder = Path(tempfile.mkdtemp(prefix="weft-growth-"))
    seen: list[tuple[dict[str, float], dict[str, Any]]] = []
    engine = Engine(rows.sparkSession).stream(name, rows, event_time="ts")
    engine.sql(text)
    live = engine.start(str(folder / "checkpoint"), lateness=LATENESS, sinks=[ParquetSink(str(folder / "out"))])
    live.job.listeners = [*live.job.listeners, lambda job, last: seen.append((dict(job.clock.parts), last.counts))]
    wait(lambda: live.recent_progress, skipped + counted, lambda: live.is_active)
    live.stop()
    batches = [one for one in live.recent_progress if one["numInputRows"]][skipped : skipped + counted]
    shutil.rmtree(folder, ignore_errors=True)
    last = seen[-len(batches) :]
    parts = {
        name: statistics.median(sum(clock.get(part, 0.0) for part in some) for clock, _ in last)
        for name, some in PARTS.items()
    }
    counts = {name: statistics.median(one[name] for _, one in last) for name in ("slices", "answers", "state_bytes")}
    return middle(batches), parts, counts


def spark_window(rows: DataFrame, length: str, slide: str, skipped: int, counted: int) -> float:
    """The same batch of Spark's own query over one such window."""
    folder = Path(tempfile.mkdtemp(prefix="weft-growth-"))
    grouped = rows.withWatermark("ts", LATENESS).groupBy("k", F.window("ts", length, slide))
    writer = grouped.agg(F.avg("x").alias("m")).writeStream.format("parquet").outputMode("append")
    query = writer.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "check")).start()
    wait(lambda: list(query.recentProgress), skipped + counted, lambda: query.isActive)
    query.stop()
    batches = [one for one in query.recentProgress if one["numInputRows"]][skipped : skipped + counted]
    shutil.rmtree(folder, ignore_errors=True)
    return middle(batches)


def wait(progress: Callable[[], Sequence[Any]], wanted: int, active: Callable[[], bool]) -> None:
    """Wait for so many batches."""
    while sum(bool(one["numInputRows"]) for one in progress()) < wanted:
        if not active():
            raise SystemExit("a stream ended before its time")
        time.sleep(0.2)


def middle(batches: Sequence[Any]) -> float:
    """The middle trigger in seconds."""
    return statistics.median(one["durationMs"]["triggerExecution"] for one in batches) / 1000


def grow(spark: SparkSession) -> list[Point]:
    """Everything that is measured."""
    found: list[Point] = []

    def note(what: str, size: int, run: tuple[float, dict[str, float], dict[str, float]]) -> None:
        found.append(Point(what, size, "Weft", *run))
        print(found[-1], flush=True)

    SHORT.write()
    for count in (1, 10, 100, 500, 1000, 2000):
        rows = Files(SHORT).stream(spark, ROWS)
        note("queries", count, weft(rows, "trades", query_file(queries(count)), 6, 10))
    for keys in (100, 1000, 10_000, 100_000, 1_000_000):
        note("keys", keys, weft(events(spark, keys), "events", windows(5, "30 seconds", "6 seconds"), 6, 6))
    for overlap in (1, 10, 100, 1000):
        length = f"{60 * overlap} milliseconds"
        note("overlap", overlap, weft(events(spark, 100), "events", windows(5, length, "60 milliseconds"), 12, 6))
        if overlap <= 100:
            seconds = spark_window(events(spark, 100), length, "60 milliseconds", 2, 4)
            found.append(Point("overlap", overlap, "Spark, one query", seconds, {}, {}))
            print(found[-1], flush=True)
    return found


def draw(found: Sequence[Point], what: str, title: str, directory: Path) -> str:
    """A figure: the whole batch and its parts."""
    rows = []
    for point in found:
        if point.what == what:
            rows.append({what: point.size, "seconds": point.batch, "part": f"{point.system}: whole batch"})
            rows += [
                {what: point.size, "seconds": max(value, 1e-3), "part": name} for name, value in point.parts.items()
            ]
    chart = alt.Chart(pd.DataFrame(rows), title=title, width=560, height=320).mark_line(point=True)
    chart = chart.encode(
        x=alt.X(f"{what}:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", labelOverlap=True)),
        y=alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds a batch"),
        color=alt.Color("part:N", title=None, sort=None),
    )
    directory.mkdir(parents=True, exist_ok=True)
    name = f"growth-{what}.svg"
    chart.save(str(directory / name))
    return name


GROWS = {
    "queries": (
        "Number of queries",
        "Queries of `benchmarks/workload_thousand.py` over 100 symbols. *Rows to slices* grows with the edges a "
        "row can fall between and the predicates; both are shared, so it hardly grows beyond a hundred queries, "
        "and neither does the number of slices. *Slices to answers* grows with the number of queries that are "
        "due, some 0.2 ms each. State grows with the longest window of each grouping, not with the number of "
        "queries.",
    ),
    "keys": (
        "Number of keys",
        "Five queries by key, 30 s by 6 s, keys drawn evenly: one window a query closes in every batch. Slices "
        "are at most as many as rows, answers as many as keys that an open window holds; the batch grows with "
        "both, some 0.15 µs an answer. State grows with the slices that windows still need.",
    ),
    "overlap": (
        "Overlap",
        "Five queries over 100 keys, a window every 60 ms: 100 windows a query close in every batch. A row goes "
        "into one slice however many windows it lies in, and an answer costs the same however many slices it "
        "covers: only the state grows. Spark copies every row into each of its windows.",
    ),
}


def write(found: Sequence[Point], path: Path, seconds: float) -> None:
    """The report with its figures."""
    parts = [
        "# What a micro-batch costs, and what that grows with",
        f"Written by `python benchmarks/growth.py` on {datetime.date.today()} in {seconds / 60:.0f} minutes, "
        f"{CORES} cores. Batches of {ROWS:,} rows, {SECONDS} s of event time, from Parquet files to a Parquet sink; "
        "medians, in milliseconds. "
        "The whole batch is Spark's trigger, its own bookkeeping included. The state's segment is written beside the "
        "answers: its column is what a batch waits for it beyond that.",
    ]
    for what, (title, told) in GROWS.items():
        mine = [point for point in found if point.what == what]
        head = (what, "system", "whole batch", *PARTS, "slices", "answers", "state MB")
        rows = [
            (
                f"{point.size:,}",
                point.system,
                f"{point.batch * 1000:,.0f}",
                *(f"{point.parts[part] * 1000:,.0f}" if part in point.parts else "" for part in PARTS),
                *(f"{point.counts[name]:,.0f}" if name in point.counts else "" for name in ("slices", "answers")),
                f"{point.counts['state_bytes'] / 1e6:,.1f}" if point.counts else "",
            )
            for point in mine
        ]
        name = draw(found, what, f"Batch of {ROWS:,} rows against {what}", path.parent / "figures")
        parts += [f"## {title}", told, figure(name, title), table(head, rows)]
    path.write_text("\n\n".join(parts) + "\n")


def main() -> None:
    """Measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, default=ROOT / "bench-out" / "growth.md")
    options = parser.parse_args()
    began = time.perf_counter()
    spark = local_session("weft growth", master=f"local[{CORES}]", config={"spark.sql.shuffle.partitions": str(CORES)})
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKS)
    found = grow(spark)
    spark.stop()
    write(found, options.report, time.perf_counter() - began)


if __name__ == "__main__":
    main()
