"""Two checkouts of Weft over the same workloads, by turns: processor seconds of all processes, wall seconds, memory.

    python benchmarks/checkouts.py BEFORE AFTER [--turns 9] [--only NAME] [--page docs/benchmarks-checkouts.md]

Each checkout has a process of its own with one warm session, and does a workload when it is told to: machines are
noisy, so only what was measured by turns is compared. A checkout uses the packages of the Python that runs this.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
TRADES = "ts TIMESTAMP, symbol STRING, venue STRING, side STRING, price DOUBLE, volume INT, bid DOUBLE, ask DOUBLE"
SMALL_BATCH = 14_000
BATCHES = 16
FIRST = 6
"""So many batches go by before the first that counts: Java compiles."""
FLIGHTS = HERE.parent / "src" / "weft" / "cli" / "flights.sql"
LARGE_BATCHES = "streaming.py --bars, 1,000 queries, 8 M rows a batch"
"""Two such jobs at once are more than a machine of 24 GB holds: a side ends before the other starts."""
UNNESTED = [7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83]
"""Slides in seconds that have no edges in common: what weaving is for."""


# ------------------------------------------------------------------------------------------- the side of a checkout


Workload = Callable[[Any, Path, Path], float | None]
"""Given a session, a folder for what is kept and one for what is not; gives the seconds of a batch, if it has some."""


def side(work: Path, workloads: Mapping[str, Workload]) -> None:
    """Do what is asked for on standard input, a word a line, and tell what it took."""
    # the modules beside this file are those of the checkout
    if str(HERE) in sys.path:
        sys.path.remove(str(HERE))
    from thousand import start_spark

    spark = start_spark("6g")
    spark.sparkContext.setLogLevel("OFF")
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        folder = Path(tempfile.mkdtemp(dir=work))
        before, began = processor_seconds(), time.perf_counter()
        with PeakMemory() as peak:
            batches = workloads[name](spark, work, folder)
        taken, processor = time.perf_counter() - began, processor_seconds() - before
        shutil.rmtree(folder, ignore_errors=True)
        measured = {"seconds": taken, "processor": processor, "batch": batches, "memory": peak.gigabytes}
        print(json.dumps(measured), flush=True)


def processor_seconds() -> float:
    """Of this process, of Java and of all workers that live."""
    found = 0.0
    here = psutil.Process()
    for process in (here, *here.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        found += times.user + times.system
    return found


class PeakMemory:
    """The most that the Python processes, driver and workers, hold together; Java's heap has a size of its own."""

    def __init__(self) -> None:
        self.gigabytes = 0.0
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watching.join()

    def _watch(self) -> None:
        here = psutil.Process()
        while not self._ended.wait(0.2):
            held = 0
            for process in (here, *here.children(recursive=True)):
                try:
                    if process.name() != "java":
                        held += process.memory_full_info().pss
                except psutil.Error:
                    continue
            self.gigabytes = max(self.gigabytes, held / 1e9)


def of_thousand(count: int, rows: int) -> Workload:
    """The first queries of ``thousand.py``, written to the end."""

    def run(spark: Any, work: Path, folder: Path) -> None:
        from thousand import run_weft
        from workload_thousand import queries, write_trades

        run_weft(spark, write_trades(work, rows), queries(1_000)[:count], folder / "out")

    return run


def demo(spark: Any, work: Path, folder: Path) -> None:
    """The demo's 72 queries over its flights."""
    from weft import Engine

    engine = Engine(spark).stream("flights", spark.read.parquet(str(work / "flights.parquet")), "ts")
    engine.sql(FLIGHTS.read_text())
    engine.run().write(str(folder / "out"))


def live(
    queries: Callable[[], str], feed: Callable[[Path], Path], *, files: int = 1, first: int = FIRST
) -> Callable[[Any, Path, Path], float]:
    """Micro-batches of some files each; the median second of those after the first ones."""

    def run(spark: Any, work: Path, folder: Path) -> float:
        from weft import Engine

        stream = spark.readStream.schema(TRADES).option("maxFilesPerTrigger", files).parquet(str(feed(work)))
        engine = Engine(spark).stream("trades", stream, "ts")
        engine.sql(queries())
        started = engine.start(str(folder / "checkpoint"), available_now=True)
        seconds: list[float] = []
        started.job.listeners = [*started.job.listeners, lambda job, last: seconds.append(last.counts["seconds"])]
        started.await_termination()
        return statistics.median(seconds[first:])

    return run


def first_trades(rows: int) -> Callable[[Path], Path]:
    """The first trades of ``thousand.py``, so many a file."""

    def feed(work: Path) -> Path:
        import pyarrow.parquet as pq

        from workload_thousand import write_trades

        folder = work / f"feed-{rows}"
        if not folder.exists():
            making = work / f"making-{os.getpid()}-{rows}"
            making.mkdir()
            table = pq.read_table(write_trades(work, 1_000_000))
            for number in range(BATCHES):
                pq.write_table(table.slice(number * rows, rows), making / f"{number:03}.parquet")
            making.rename(folder)
        return folder

    return feed


def bars_trades(rows: int, files: int) -> Callable[[Path], Path]:
    """The trades of ``streaming.py --bars``, so many a file; kept in the checkout."""

    def feed(_: Path) -> Path:
        from streaming_feeds import Trades

        trades = Trades(1_000_000, rows, files)
        trades.write()
        return trades.folder

    return feed


def thousand_texts(count: int = 1_000) -> str:
    """The thousand queries as one file, or the first of them."""
    from workload_thousand import queries, query_file

    return query_file(queries(count))


def unnested_texts() -> str:
    """Queries whose windows do not nest: three aggregates over windows of many slides."""
    made = []
    for number, slide in enumerate(UNNESTED):
        for times, function in ((3, "avg(price)"), (7, "max(price)"), (11, "sum(volume)")):
            window = f"window(ts, '{slide * times} seconds', '{slide} seconds')"
            made.append(
                f"-- name: u{number}_{times}\nSELECT symbol, window.start, {function} AS a FROM trades "
                f"GROUP BY symbol, {window}"
            )
    return ";\n".join(made)


WORKLOADS: dict[str, Workload] = {
    "thousand.py, 1 query": of_thousand(1, 5_000_000),
    "thousand.py, 100 queries": of_thousand(100, 5_000_000),
    "thousand.py, 1,000 queries": of_thousand(1_000, 5_000_000),
    "the demo's workload": demo,
    f"live, 1,000 queries, {SMALL_BATCH:,} rows a batch": live(thousand_texts, first_trades(SMALL_BATCH)),
    "live, 60 queries that do not nest, 60,000 rows a batch": live(unnested_texts, first_trades(60_000)),
    "streaming.py --bars, 100 queries, 100,000 rows a batch": live(
        lambda: thousand_texts(100), bars_trades(100_000, BATCHES)
    ),
    LARGE_BATCHES: live(thousand_texts, bars_trades(1_000_000, 24), files=8, first=1),
}


# -------------------------------------------------------------------------------------------------- both by turns


class Side:
    """The process of a checkout."""

    def __init__(self, checkout: Path, work: Path, script: Path = HERE / "checkouts.py") -> None:
        path = os.pathsep.join([str(checkout / "src"), str(checkout / "benchmarks")])
        command = [sys.executable, str(script), "--side", str(work)]
        self._log = work / f"{checkout.name}.log"
        pipe = subprocess.PIPE
        environment = {**os.environ, "PYTHONPATH": path}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=log, text=True)
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(("ready", "{")):
                return line
        raise SystemExit(self._log.read_text()[-3000:])

    def run(self, workload: str) -> dict[str, Any]:
        """Do a workload once."""
        assert self._process.stdin is not None
        self._process.stdin.write(workload + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._answer())
        return found

    def end(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


Runs = dict[str, list[dict[str, Any]]]


def side_by_side(checkouts: dict[str, Path], work: Path, names: list[str], turns: int) -> Iterator[tuple[str, Runs]]:
    """Both sides live, and each does a workload when it is its turn."""
    sides = {at: Side(checkout, work) for at, checkout in checkouts.items()}
    for name in names:
        for each in sides.values():
            each.run(name)  # the first time is for Java to compile
        found: Runs = {at: [] for at in sides}
        for turn in range(turns):
            for at in list(sides) if turn % 2 else reversed(list(sides)):
                found[at].append(sides[at].run(name))
        yield name, found
    for each in sides.values():
        each.end()


def one_after_the_other(checkouts: dict[str, Path], work: Path, name: str, turns: int) -> tuple[str, Runs]:
    """A side lives for its turn only, which is three runs after the first."""
    found: Runs = {at: [] for at in checkouts}
    for turn in range(max(1, turns // 3)):
        for at in list(checkouts) if turn % 2 else reversed(list(checkouts)):
            living = Side(checkouts[at], work)
            living.run(name)
            found[at] += [living.run(name) for _ in range(min(3, turns))]
            living.end()
    return name, found


MEASURED = {"processor": "processor s", "seconds": "s", "batch": "s a batch", "memory": "GB in Python at most"}


def lines(runs: Iterator[tuple[str, Runs]]) -> Iterator[str]:
    """The table, a line a workload and figure."""
    yield "| workload | measured | before | after | after / before |"
    yield "|---|---|---|---|---|"
    for name, found in runs:
        for what, unit in MEASURED.items():
            values = {at: [run[what] for run in runs] for at, runs in found.items()}
            if values["before"][0] is None:
                continue
            ratios = sorted(after / before for before, after in zip(values["before"], values["after"], strict=True))
            middle = {at: statistics.median(some) for at, some in values.items()}
            yield (
                f"| {name} | {unit} | {middle['before']:.2f} | {middle['after']:.2f} "
                f"| {middle['after'] / middle['before']:.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}) |"
            )


def runs(checkouts: dict[str, Path], work: Path, names: list[str], turns: int) -> Iterator[tuple[str, Runs]]:
    """All that was measured of each workload."""
    small = [name for name in names if name != LARGE_BATCHES]
    if small:
        yield from side_by_side(checkouts, work, small, turns)
    if LARGE_BATCHES in names:
        yield one_after_the_other(checkouts, work, LARGE_BATCHES, turns)


def page(before: Path, after: Path, turns: int, table: list[str]) -> str:
    """What is kept in docs/."""
    commits = [
        subprocess.run(["git", "-C", str(at), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
        for at in (before, after)
    ]
    head = [
        "# Two checkouts by turns",
        "",
        f"`python benchmarks/checkouts.py BEFORE AFTER --turns {turns}`, before = {commits[0].strip()}, after = "
        f"{commits[1].strip()}, on two cores. Medians; in brackets the least and the largest ratio of a pair of turns.",
        "Processor seconds are those of all processes: driver, Java, workers; memory that of driver and workers, every",
        "0.2 s (pages that processes share are counted once).",
        "",
    ]
    return "\n".join([*head, *table]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--only", action="append")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side(options.side, WORKLOADS)
        return
    before, after = options.checkouts
    from weft.cli.demo import flights_file

    with tempfile.TemporaryDirectory(prefix="weft-checkouts-") as work:
        flights_file(Path(work))
        checkouts = {"before": before.resolve(), "after": after.resolve()}
        names = [name for name in WORKLOADS if not options.only or any(part in name for part in options.only)]
        made = []
        for line in lines(runs(checkouts, Path(work), names, options.turns)):
            print(line, flush=True)
            made.append(line)
    if options.page:
        options.page.write_text(page(before, after, options.turns, made))


if __name__ == "__main__":
    main()
