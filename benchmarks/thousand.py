"""A thousand queries for the price of one: Weft, plain Spark and DuckDB on the same trades, from Parquet to Parquet.

    .venv/bin/python benchmarks/thousand.py                       # everything, about half an hour on two cores
    .venv/bin/python benchmarks/thousand.py --queries 1 100 --repeats 1 --skip memory

Every repeat runs all systems, in an order shuffled anew, so that a slow minute of the machine hits all of them alike.
Plain Spark answers a random 20 of the thousand and one query of 1 hour by 1 minute; what it would take for all is the
mean of the sample times their number. DuckDB answers all of them, one statement a query, with slices written by hand
for that query, once from the Parquet files and once from a table that it loaded from them.
Rows of the three are compared on the sample. Exits with 1 if rows differ or a bar is missed.
"""

from __future__ import annotations

import argparse
import datetime
import operator
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession
from rich.console import Console

from workload_thousand import ONE_HOUR_BY_ONE_MINUTE, WindowQuery, load_duckdb, queries, query_file, write_trades

ROOT = Path(__file__).resolve().parent.parent
CORES = 2
DUCKDB = {"VIEW": "from the Parquet files", "TABLE": "from a table loaded once"}
SKIPPABLE = ["weft", "spark", "duckdb", "duckdb-view", "duckdb-table", "timing", "memory"]
WARM_UPS = 3
"""Java compiles what it has seen often: so many times everything of Weft runs before the clock counts, and once Spark's
longest query, with which the others share their code."""
HOUR = f"spark {ONE_HOUR_BY_ONE_MINUTE.name}"
SIGNS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}
console = Console(width=110, highlight=False)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    rows: int
    counts: list[int]
    repeats: int
    sample: int
    skip: frozenset[str]
    memory_rows: list[int]
    driver_memory: str
    out: Path
    report: Path


@dataclass(frozen=True, slots=True)
class Task:
    """Something to time; ``out`` is emptied before the clock starts."""

    name: str
    out: Path
    run: Callable[[Path], None]

    def seconds(self) -> float:
        """Run once and say how long it took."""
        shutil.rmtree(self.out, ignore_errors=True)
        begin = time.perf_counter()
        self.run(self.out)
        return time.perf_counter() - begin


@dataclass(slots=True)
class Peak:
    """Largest resident memory, in bytes, of the JVM, of all Python processes, and of both at one time."""

    jvm: int = 0
    python: int = 0
    both: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Results:
    """Seconds of each task, one a repeat, and what was found out beside."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    totals: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Slices and answers of Weft, by number of queries."""
    sample: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    memory: dict[int, Peak] = field(default_factory=dict)

    def per_query(self) -> list[float]:
        """Plain Spark's mean over the sample, one a repeat."""
        return [statistics.fmean(column) for column in zip(*(self.seconds[name] for name in self.sample), strict=True)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio with its spread over the repeats, and the bar it has to clear, such as ``>= 5`` (or none)."""

    name: str
    value: float
    low: float
    high: float
    bar: str = ""

    @property
    def passed(self) -> bool:
        """Whether the bar is cleared; true without a bar."""
        if not self.bar:
            return True
        sign, number = self.bar.split()
        return SIGNS[sign](self.value, float(number))


# ---------------------------------------------------------------------------------------------- the three systems


def start_spark(driver_memory: str) -> SparkSession:
    """The session that Weft and plain Spark share."""
    from weft.launch.session import local_session

    return local_session("weft thousand", master=f"local[{CORES}]", memory=driver_memory)


def run_weft(spark: SparkSession, trades: Path, workload: list[WindowQuery], out: Path) -> tuple[int, int]:
    """All queries in one pass; gives the number of slices and of answers."""
    from weft import Engine

    engine = Engine(spark)
    engine.stream("trades", spark.read.parquet(str(trades)), event_time="ts")
    engine.sql(query_file(workload))
    answers = engine.run()
    answers.write(str(out))
    return answers.totals.slices, answers.totals.answers


def run_spark(spark: SparkSession, trades: Path, query: WindowQuery, out: Path) -> None:
    """One query, as its user would run it."""
    spark.read.parquet(str(trades)).createOrReplaceTempView("trades")
    spark.sql(query.spark_sql()).write.parquet(str(out))


def run_duckdb(trades: Path, workload: list[WindowQuery], out: Path, kind: str) -> None:
    """One statement a query, over the files (``VIEW``) or over a table that is loaded once (``TABLE``)."""
    out.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {CORES}; SET preserve_insertion_order = false")
        connection.execute(load_duckdb(trades, kind))
        for query in workload:
            connection.execute(f"COPY ({query.duckdb_sql()}) TO '{out / query.name}.parquet'")


# ---------------------------------------------------------------------------------------------- the timed run


def timed_run(options: Options, results: Results) -> None:
    """All tasks, ``repeats`` times, each repeat in an order of its own; rows are compared after the first."""
    trades = write_trades(options.out, options.rows)
    workload = queries(max(options.counts))
    sample = random.Random(3).sample(workload, min(options.sample, len(workload)))
    results.sample = [] if "spark" in options.skip else [f"spark {query.name}" for query in sample]
    spark = start_spark(options.driver_memory)
    tasks = weft_tasks(options, results, spark, trades, workload)
    tasks += spark_tasks(options, spark, trades, [ONE_HOUR_BY_ONE_MINUTE, *sample])
    tasks += duckdb_tasks(options, trades, workload)
    console.print(f"{len(tasks)} tasks a repeat; warming up")
    warmed = [task for task in tasks if task.name.startswith("weft")] * WARM_UPS
    for task in (*warmed, *(task for task in tasks if task.name == HOUR)):
        console.print(f"warming up: {task.name:<22} {task.seconds():8.2f} s")
    for repeat in range(options.repeats):
        for task in random.Random(repeat).sample(tasks, len(tasks)):
            seconds = task.seconds()
            results.seconds[task.name].append(seconds)
            console.print(f"repeat {repeat + 1} of {options.repeats}   {task.name:<22} {seconds:8.2f} s")
        if repeat == 0:
            compare_systems(options, results, workload, sample)
    spark.stop()


def weft_tasks(
    options: Options, results: Results, spark: SparkSession, trades: Path, workload: list[WindowQuery]
) -> list[Task]:
    """One for each number of queries."""

    def task(count: int) -> Task:
        def run(out: Path) -> None:
            results.totals[count] = run_weft(spark, trades, workload[:count], out)

        return Task(f"weft {count}", options.out / f"weft-{count}", run)

    return [] if "weft" in options.skip else [task(count) for count in options.counts]


def spark_tasks(options: Options, spark: SparkSession, trades: Path, chosen: Iterable[WindowQuery]) -> list[Task]:
    """One for each query."""

    def task(query: WindowQuery) -> Task:
        out = options.out / "spark" / query.name
        return Task(f"spark {query.name}", out, lambda out: run_spark(spark, trades, query, out))

    return [] if "spark" in options.skip else [task(query) for query in chosen]


def duckdb_tasks(options: Options, trades: Path, workload: list[WindowQuery]) -> list[Task]:
    """Two for each number of queries from 100 up: from the files, and from a table in memory."""

    def task(count: int, kind: str) -> Task:
        name = f"duckdb-{kind.lower()}"
        out = options.out / f"{name}-{count}"
        return Task(f"{name} {count}", out, lambda out: run_duckdb(trades, workload[:count], out, kind))

    counts = [] if "duckdb" in options.skip else [count for count in options.counts if count >= 100]
    kinds = [kind for kind in DUCKDB if f"duckdb-{kind.lower()}" not in options.skip]
    return [task(count, kind) for count in counts for kind in kinds]


# ---------------------------------------------------------------------------------------------- the same rows?


def compare_systems(options: Options, results: Results, workload: list[WindowQuery], sample: list[WindowQuery]) -> None:
    """Read back what each system wrote for the queries of the sample, and compare row by row with Spark."""
    most = len(workload)
    places = {"weft": f"weft-{most}/query={{}}", "duckdb": f"duckdb-table-{most}/{{}}.parquet"}
    if "spark" in options.skip:
        return
    for query in sample:
        expected = rows_of(options.out / "spark" / query.name, query)
        for system, place in places.items():
            path = options.out / place.format(query.name)
            if system in options.skip or not path.exists():
                continue
            results.compared.append(f"{system} {query.name}")
            difference = first_difference(expected, rows_of(path, query), query)
            if difference:
                results.differences.append(f"{system} {query.name}: {difference}")
    console.print(f"compared {len(results.compared)} answers with Spark's, {len(results.differences)} differ")


def rows_of(path: Path, query: WindowQuery) -> pa.Table:
    """The rows of one answer, in the order of window and keys."""
    table = pq.read_table(path, partitioning=None)
    for name in ("window_start", "window_end"):
        at = pc.cast(pc.cast(table[name], pa.timestamp("us", tz="UTC")), pa.int64())
        table = table.set_column(table.column_names.index(name), name, at)
    for name in query.keys:  # DuckDB writes its enums as dictionaries
        table = table.set_column(table.column_names.index(name), name, pc.cast(table[name], pa.string()))
    return table.sort_by([(name, "ascending") for name in query.identity])


def first_difference(expected: pa.Table, got: pa.Table, query: WindowQuery) -> str:
    """What differs, in words; empty if nothing does."""
    if expected.num_rows != got.num_rows:
        return f"{expected.num_rows} rows expected, {got.num_rows} found"
    for name in query.identity:
        if not expected[name].equals(got[name]):
            return f"{name} differs"
    for measure in query.measures:
        left, right = (table[measure.name].to_numpy().astype(float) for table in (expected, got))
        close = np.isclose(right, left, rtol=measure.relative, atol=measure.absolute, equal_nan=True)
        if not close.all():
            row = int(np.argmin(close))
            return f"{measure.name}: {left[row]!r} expected, {right[row]!r} found, {(~close).sum()} such rows"
    return ""


# ---------------------------------------------------------------------------------------------- memory


def memory_run(options: Options, results: Results) -> None:
    """Weft alone, with the most queries, in a fresh process for each number of rows."""
    for rows in options.memory_rows:
        write_trades(options.out, rows)
        command = [sys.executable, __file__, "--only-weft", "--rows", str(rows), "--queries", str(max(options.counts))]
        command += ["--out", str(options.out), "--driver-memory", options.driver_memory]
        peak = peak_memory(command)
        results.memory[rows] = peak
        console.print(
            f"memory, {rows:,} rows: JVM {gigabytes(peak.jvm)}, Python {gigabytes(peak.python)}, "
            f"together {gigabytes(peak.both)}, in {peak.seconds:.1f} s"
        )


def peak_memory(command: list[str]) -> Peak:
    """Run a command and watch the resident memory of its process tree, twenty times a second."""
    peak = Peak()
    begin = time.perf_counter()
    process = subprocess.Popen(command)
    while process.poll() is None:
        jvm, python = resident(process.pid)
        peak.jvm, peak.python = max(peak.jvm, jvm), max(peak.python, python)
        peak.both = max(peak.both, jvm + python)
        time.sleep(0.05)
    peak.seconds = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return peak


def resident(pid: int) -> tuple[int, int]:
    """Bytes of Java and of all other processes of a tree."""
    jvm = python = 0
    try:
        tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0, 0
    for process in tree:
        try:
            size, java = process.memory_info().rss, "java" in process.name()
        except psutil.Error:
            continue
        jvm, python = (jvm + size, python) if java else (jvm, python + size)
    return jvm, python


def only_weft(options: Options) -> None:
    """What the fresh process does."""
    out = options.out / "weft-memory"
    shutil.rmtree(out, ignore_errors=True)
    trades = write_trades(options.out, options.rows)
    spark = start_spark(options.driver_memory)
    run_weft(spark, trades, queries(max(options.counts)), out)
    spark.stop()


def gigabytes(size: float) -> str:
    """Bytes, readable."""
    return f"{size / 2**30:.2f} GiB"


# ---------------------------------------------------------------------------------------------- ratios and bars


def figures(results: Results) -> list[Figure]:
    """The three ratios of the issue and the growth of memory, as far as they were measured."""
    found: list[Figure] = []
    seconds = results.seconds
    for count in results.totals:
        weft = seconds[f"weft {count}"]
        if results.sample:
            spark = [mean * count for mean in results.per_query()]
            bar = {100: ">= 100", 1000: ">= 500"}.get(count, "")
            found.append(ratio(f"(a) Spark for {count:,} (extrapolated) / Weft for {count:,}", spark, weft, bar))
        if count == 1000 and HOUR in seconds:
            found.append(ratio("(b) Weft for 1,000 / Spark for one of 1 h by 1 min", weft, seconds[HOUR], "<= 0.8"))
        for kind, meaning in DUCKDB.items():
            duckdb_seconds = seconds.get(f"duckdb-{kind.lower()} {count}")
            if duckdb_seconds:
                bar = ">= 5" if count == 1000 else ""
                name = f"(c) DuckDB {meaning} for {count:,} / Weft for {count:,}"
                found.append(ratio(name, duckdb_seconds, weft, bar))
    if len(results.memory) > 1:
        few, many = min(results.memory), max(results.memory)
        growth = results.memory[many].both / results.memory[few].both
        found.append(Figure(f"(d) memory, {many:,} rows / {few:,} rows", growth, growth, growth, "< 1.3"))
    return found


def ratio(name: str, above: list[float], below: list[float], bar: str) -> Figure:
    """Median over median; the spread is that of the repeats' own ratios."""
    each = [top / bottom for top, bottom in zip(above, below, strict=True)]
    return Figure(name, statistics.median(above) / statistics.median(below), min(each), max(each), bar)


def sampling_error(results: Results, seed: int = 5) -> tuple[float, float]:
    """A 90 % bootstrap interval of Spark's mean seconds a query: the sample is only 20 of them."""
    medians = [statistics.median(results.seconds[name]) for name in results.sample]
    rng = np.random.default_rng(seed)
    means = rng.choice(medians, (10_000, len(medians))).mean(axis=1)
    return float(np.quantile(means, 0.05)), float(np.quantile(means, 0.95))


# ---------------------------------------------------------------------------------------------- the report


def seconds_table(results: Results) -> list[str]:
    """Markdown lines: each system's seconds by number of queries."""
    lines = ["| what | median s | least | most | slices | answers |", "|---|--:|--:|--:|--:|--:|"]

    def line(name: str, values: list[float], rest: str = "| |") -> None:
        lines.append(f"| {name} | {statistics.median(values):.2f} | {min(values):.2f} | {max(values):.2f} {rest}")

    for count, (slices, answers) in results.totals.items():
        line(f"Weft, {count:,}", results.seconds[f"weft {count}"], f"| {slices:,} | {answers:,} |")
    if results.sample:
        line("Spark, one of 1 h by 1 min", results.seconds[HOUR])
        line(f"Spark, mean of a random {len(results.sample)}", results.per_query())
    for name, values in results.seconds.items():
        if name.startswith("duckdb"):
            kind, count = name.removeprefix("duckdb-").split()
            line(f"DuckDB with slices by hand, {DUCKDB[kind.upper()]}, {int(count):,}", values)
    return lines


def figures_table(found: list[Figure]) -> list[str]:
    """Markdown lines: each ratio beside its bar."""
    lines = ["| ratio | value | spread | bar | |", "|---|--:|--:|--:|---|"]
    for figure in found:
        verdict = "" if not figure.bar else "kept" if figure.passed else "**missed**"
        spread = "" if figure.low == figure.high else f"{figure.low:.3g} to {figure.high:.3g}"
        lines.append(f"| {figure.name} | {figure.value:.3g} | {spread} | {figure.bar} | {verdict} |")
    return lines


def memory_table(results: Results) -> list[str]:
    """Markdown lines: peak resident memory by number of rows."""
    lines = ["| rows | JVM | Python (driver and workers) | together | seconds |", "|--:|--:|--:|--:|--:|"]
    for rows, peak in results.memory.items():
        sizes = " | ".join(gigabytes(size) for size in (peak.jvm, peak.python, peak.both))
        lines.append(f"| {rows:,} | {sizes} | {peak.seconds:.1f} |")
    return lines


def report(options: Options, results: Results, found: list[Figure]) -> str:
    """The page of docs, the same as is printed."""
    command = "python benchmarks/thousand.py" + "".join(f" {argument}" for argument in sys.argv[1:])
    machine = f"{os.cpu_count()} cores, {gigabytes(psutil.virtual_memory().total)}, {platform.system()}"
    versions = f"Spark {pyspark.__version__}, DuckDB {duckdb.__version__}, Python {platform.python_version()}"
    lines = [
        "# A thousand queries for the price of one",
        "",
        f"Written by `{command}` on {datetime.date.today()}: {machine}; {versions}; driver memory "
        f"{options.driver_memory}. {options.rows:,} trades over six hours, 100 symbols (Zipf), from Parquet to written "
        f"Parquet, {options.repeats} interleaved repeats. The workload is `benchmarks/workload_thousand.py`.",
        "",
        *seconds_table(results),
        "",
        *figures_table(found),
        "",
    ]
    if results.sample:
        low, high = sampling_error(results)
        lines += [
            f"Spark's time for N queries is the mean of {len(results.sample)} drawn at random from the largest set, "
            f"times N; that mean is {statistics.median(results.per_query()):.2f} s a query, "
            f"90 % interval of the sampling {low:.2f} to {high:.2f} s. "
            "Spread: least and most of the ratios of single repeats.",
            "",
        ]
    if results.compared:
        lines += [
            f"Rows compared with Spark's: {len(results.compared)} answers, {len(results.differences)} differ.",
            "",
        ]
        lines += [f"- {difference}" for difference in results.differences]
    if results.memory:
        lines += ["## Peak resident memory, Weft alone, in a fresh process", "", *memory_table(results), ""]
    return "\n".join(lines)


def main() -> int:
    """Measure, print, write the page, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 100, 1000], dest="counts")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sample", type=int, default=20, help="how many queries plain Spark answers")
    parser.add_argument("--skip", nargs="+", default=[], choices=SKIPPABLE)
    parser.add_argument("--memory-rows", type=int, nargs="+", default=[5_000_000, 20_000_000])
    parser.add_argument("--driver-memory", default="3g")
    parser.add_argument("--out", type=Path, default=ROOT / "bench-out")
    parser.add_argument("--report", type=Path, default=ROOT / "docs" / "benchmarks-thousand.md")
    parser.add_argument("--only-weft", action="store_true", help=argparse.SUPPRESS)
    arguments = vars(parser.parse_args())
    alone = arguments.pop("only_weft")
    options = Options(**{**arguments, "skip": frozenset(arguments["skip"]), "out": arguments["out"].resolve()})
    if alone:
        only_weft(options)
        return 0
    results = Results()
    if "timing" not in options.skip:
        timed_run(options, results)
    if "memory" not in options.skip:
        memory_run(options, results)
    found = figures(results)
    page = report(options, results, found)
    options.report.write_text(page)
    print(page)
    return 1 if results.differences or not all(figure.passed for figure in found) else 0


if __name__ == "__main__":
    sys.exit(main())
