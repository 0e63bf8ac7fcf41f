"""A long run at a steady rate: does anything grow that should not? Memory, state, batch time, files, disk.

    .venv/bin/python benchmarks/soak.py --minutes 60 --report docs/benchmarks-soak.md

500 queries over some 10,000 keys at a time, of which one in five is replaced every half minute of the stream. Prints
a line a minute and, at the end, the slope of each figure an hour after a tenth of the time has passed, next to its
mean: flat is a slope that is small beside it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import psutil
from rich.console import Console

from streaming_feeds import ROOT
from techniques_report import figure
from weft import Engine
from weft.launch.session import local_session
from weft.sinks.parquet import HIDDEN, ParquetSink

SEEN = ROOT / "bench-out" / "soak.json"
KEYS = 10_000
ROWS_A_SECOND = 10_000
CHURN_SECONDS = 30
REPLACED = 2_000
FIGURES = (
    *("driver MB", "java MB", "state MB", "batch ms", "checkpoint files", "checkpoint MB"),
    *("waiting files", "waiting MB", "% of a core"),
)
console = Console(width=200, highlight=False)


def rows_text(a_second: int) -> list[str]:
    """The columns of the stream, made from Spark's rate source."""
    churn_rows = CHURN_SECONDS * a_second
    return [
        "timestamp AS ts",
        f"concat('k', (value * 7919) % {KEYS} + (value DIV {churn_rows}) * {REPLACED}) AS k",
        "concat('p', value % 100) AS place",
        "CAST((value * 31) % 1000 AS DOUBLE) AS x",
        "CAST(value % 97 AS INT) AS n",
    ]


def queries(count: int = 500) -> str:
    """So many queries: a tenth by key and seldom, the others by place or by nothing and often.

    No window is longer than five minutes, so that state is full when a tenth of an hour has passed.
    """
    found = []
    aggregates = ("count(*) AS c", "sum(n) AS s", "avg(x) AS m", "max(x) AS hi", "min(n) AS lo", "stddev(x) AS d")
    for number in range(count):
        by, slides = (("k", (50, 75, 100)), ("place", (10, 20, 30)), ("", (5, 10, 15)))[
            0 if number % 10 == 0 else 1 if number % 10 < 7 else 2
        ]
        slide = slides[number % len(slides)]
        length = slide * (1 + number % (3 if by == "k" else 10))
        where = f"WHERE n > {number % 4 * 10} " if number % 3 == 0 else ""
        keys = f"{by}, " if by else ""
        found.append(
            f"CREATE VIEW q{number} AS SELECT {keys}window.start AS s0, window.end AS e0, "
            f"{aggregates[number % len(aggregates)]} FROM events {where}"
            f"GROUP BY {keys}window(ts, '{length} seconds', '{slide} seconds');"
        )
    return "\n".join(found)


def sizes(folder: Path) -> tuple[int, int]:
    """Files below a folder and their bytes; what goes away meanwhile does not count."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                found.append((Path(place) / name).stat().st_size)
    return len(found), sum(found)


@dataclass(frozen=True)
class Used:
    """What the processes of the job have used so far."""

    driver: int
    """Bytes of this process."""
    java: int
    """Bytes of Java and of its Python workers."""
    seconds: float
    """Processor seconds of all of them."""

    @classmethod
    def now(cls) -> Used:
        """As of now."""
        own = psutil.Process()
        driver, java, seconds = own.memory_info().rss, 0, 0.0
        for process in (own, *own.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                seconds += times.user + times.system
                java += 0 if process == own else process.memory_info().rss
        return cls(driver, java, seconds)


def main() -> None:
    """Run and say what grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--rows", type=int, default=ROWS_A_SECOND)
    parser.add_argument("--trigger", default="5 seconds")
    parser.add_argument("--report", type=Path, default=ROOT / "bench-out" / "soak.md")
    parser.add_argument("--seen", type=Path, help=f"write the report of a run again, from {SEEN}")
    options = parser.parse_args()
    if options.seen is None:
        seen = run(options)
        SEEN.parent.mkdir(exist_ok=True)
        SEEN.write_text(json.dumps(seen, indent=1))
    else:
        seen = json.loads(options.seen.read_text())
    report(seen, options)


def run(options: argparse.Namespace) -> list[dict[str, float]]:
    """Run for so long; what was seen every ten seconds."""
    folder = Path(tempfile.mkdtemp(prefix="weft-soak-"))
    spark = local_session("weft soak", memory="2g")
    rate = spark.readStream.format("rate").option("rowsPerSecond", options.rows).option("numPartitions", 2).load()
    engine = Engine(spark)
    engine.stream("events", rate.selectExpr(*rows_text(options.rows)), event_time="ts")
    engine.sql(queries(options.queries))
    sink = ParquetSink(str(folder / "out"))
    live = engine.start(str(folder / "checkpoint"), lateness="5 seconds", sinks=[sink], trigger=options.trigger)
    began, said, before = time.time(), 0.0, Used.now()
    seen: list[dict[str, float]] = []
    while time.time() - began < options.minutes * 60:
        if live.await_termination(10):
            raise SystemExit("the stream ended")
        status, now = live.status(), Used.now()
        files, disk = sizes(folder / "checkpoint")
        waiting, waiting_disk = sizes(folder / "out" / HIDDEN)
        passed = time.time() - began
        seen.append(
            {
                "seconds": passed,
                "driver MB": now.driver / 1e6,
                "java MB": now.java / 1e6,
                "state MB": status["state_bytes"] / 1e6,
                "batch ms": status["batch_seconds"] * 1000,
                "checkpoint files": files,
                "checkpoint MB": disk / 1e6,
                "waiting files": waiting,
                "waiting MB": waiting_disk / 1e6,
                "% of a core": (now.seconds - before.seconds) / (passed - (seen[-1]["seconds"] if seen else 0)) * 100,
                "rows": status["rows"],
                "answers": status["answers"],
                "late": status["late_rows"],
            }
        )
        before = now
        if time.time() - said > 60:
            said = time.time()
            console.print("  ".join(f"{name} {value:,.0f}" for name, value in seen[-1].items()))
    live.stop()
    spark.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return seen


def report(seen: list[dict[str, float]], options: argparse.Namespace) -> None:
    """The page and its figure."""
    last = seen[-1]
    summary = slopes(seen)
    console.print(summary)
    parts = [
        "# An hour at a steady rate",
        f"Written by `python benchmarks/soak.py` on {datetime.date.today()}: {last['seconds'] / 60:.0f} minutes, "
        f"{options.queries} queries over {KEYS:,} keys at a time, of which {REPLACED:,} are replaced every "
        f"{CHURN_SECONDS} s; {options.rows:,} rows a second, a batch every {options.trigger}, Parquet sink; "
        f"{last['rows']:,.0f} rows, {last['answers']:,.0f} answers, {last['late']:,.0f} late rows. Slopes are those of "
        "straight lines through what was seen every ten seconds after a tenth of the time; *waiting* are small files "
        "that the sink has yet to put together, *checkpoint files* are mostly Spark's log of the last hundred batches.",
        figure(draw(seen, options.report.parent / "figures"), "What an hour looks like"),
        summary,
        "Medians of each tenth of the time:",
        tenths(seen),
    ]
    options.report.write_text("\n\n".join(parts) + "\n")


def draw(seen: list[dict[str, float]], directory: Path) -> str:
    """Memory, state, batch time and files over time."""
    shown = ("driver MB", "java MB", "state MB", "batch ms", "checkpoint files", "checkpoint MB")
    rows = [{"minute": one["seconds"] / 60, "value": one[name], "figure": name} for one in seen for name in shown]
    lines = alt.Chart(pd.DataFrame(rows)).mark_line().encode(x="minute:Q", y=alt.Y("value:Q", title=None))
    chart = lines.properties(width=300, height=120).facet(
        alt.Facet("figure:N", title=None, sort=list(shown)), columns=2
    )
    directory.mkdir(parents=True, exist_ok=True)
    chart.resolve_scale(y="independent").save(str(directory / "soak.svg"))
    return "soak.svg"


def slopes(seen: list[dict[str, float]]) -> str:
    """The mean of each figure and by how much it grew an hour."""
    settled = [one for one in seen if one["seconds"] > seen[-1]["seconds"] / 10]
    hours = np.array([one["seconds"] for one in settled]) / 3600
    lines = ["| figure | mean | slope an hour | of the mean |", "|---|--:|--:|--:|"]
    for name in FIGURES:
        values = np.array([one[name] for one in settled])
        slope = float(np.polyfit(hours, values, 1)[0])
        share = slope / values.mean() if values.mean() else 0.0
        lines.append(f"| {name} | {values.mean():,.1f} | {slope:+,.1f} | {share:+.1%} |")
    return "\n".join(lines)


def tenths(seen: list[dict[str, float]]) -> str:
    """The median of each figure, a tenth of the time after the other."""
    parts = np.array_split(np.arange(len(seen)), 10)
    lines = ["| figure | " + " | ".join(f"{number + 1}" for number in range(len(parts))) + " |"]
    lines.append("|---" + "|--:" * len(parts) + "|")
    for name in FIGURES:
        medians = [float(np.median([seen[at][name] for at in part])) for part in parts]
        lines.append(f"| {name} | " + " | ".join(f"{value:,.0f}" for value in medians) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
