"""Many sets of keys over one stream: 160 queries over 40 of them, Weft's one pass beside Spark one by one, by turns.

    .venv/bin/python benchmarks/keysets.py [--report docs/benchmarks-keysets.md] [--growth]

Six columns of 12, 6, 5, 4, 3 and 2 values, a million rows, 400 a second; windows of 10 minutes by 1, of 1 hour by 5
minutes and of 30 minutes. Both sides write Parquet. Spark answers some of the queries, a different few each turn, and
the others are taken to last as long; ``--growth`` measures Weft alone from 1 to 300 sets of keys.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from techniques_report import table
from thousand import start_spark
from weft import Engine

SIZES = {"a": 12, "b": 6, "c": 5, "d": 4, "e": 3, "f": 2}
ROWS, A_SECOND = 1_000_000, 400
WINDOWS = ("'10 minutes', '1 minute'", "'1 hour', '5 minutes'", "'30 minutes'")
AGGREGATES = ("avg(x) AS m, count(*) AS n", "sum(y) AS s, max(x) AS h", "min(x) AS l, stddev(x) AS d", "sum(x) AS s")
GROWTH = (1, 10, 40, 100, 300)
BEGIN = datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC)


def write_rows(folder: Path, rows: int = ROWS) -> Path:
    """The rows, in the order of time."""
    path = folder / f"keysets-{rows}.parquet"
    if not path.exists():
        rng = np.random.default_rng(5)
        micros = int(BEGIN.timestamp() * 1e6) + np.arange(rows) * (1_000_000 // A_SECOND)
        columns: dict[str, Any] = {"ts": pa.array(micros, pa.timestamp("us", tz="UTC"))}
        columns |= {name: rng.integers(0, size, rows) for name, size in SIZES.items()}
        columns |= {"x": rng.normal(100, 15, rows).round(2), "y": rng.integers(0, 1000, rows).astype(np.int32)}
        pq.write_table(pa.table(columns), path, row_group_size=rows // 8)
    return path


def key_sets(count: int) -> list[tuple[str, ...]]:
    """The first so many sets of keys: those of columns, and then of columns of which one is coarser."""
    plain = [some for size in range(1, 7) for some in itertools.combinations(SIZES, size)]
    coarse = [
        tuple(f"{name} % {part}" if name == at else name for name in some)
        for part in (2, 3, 4, 5)
        for at in ("a", "b", "c")
        for some in plain
        if at in some
    ]
    random.Random(1).shuffle(plain)
    return list(dict.fromkeys([*plain, *coarse]))[:count]


def queries(sets: int, each: int = 4) -> list[str]:
    """Some queries for every set of keys."""
    made = []
    for number, keys in enumerate(key_sets(sets)):
        for turn in range(each):
            window = WINDOWS[(number + turn) % len(WINDOWS)]
            named = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
            made.append(
                f"SELECT {named}, window.start AS w, {AGGREGATES[turn % len(AGGREGATES)]} FROM t "
                f"GROUP BY {', '.join(keys)}, window(ts, {window})"
            )
    return made


def weft(spark: Any, path: Path, texts: Sequence[str], folder: Path, cut: Any = "auto") -> float:
    """Seconds for all queries, read, planned, answered and written."""
    began = time.perf_counter()
    engine = Engine(spark, cut=cut).stream("t", spark.read.parquet(str(path)), "ts")
    engine.sql(";\n".join(texts))
    engine.run().write(str(folder / "weft"))
    return time.perf_counter() - began


def spark_alone(spark: Any, path: Path, text: str, folder: Path) -> float:
    """Seconds for one query."""
    began = time.perf_counter()
    spark.read.parquet(str(path)).createOrReplaceTempView("t")
    spark.sql(text).write.parquet(str(folder / "spark"))
    return time.perf_counter() - began


def in_folder(work: Callable[[Path], float]) -> float:
    """Run something that writes, and forget what it wrote."""
    folder = Path(tempfile.mkdtemp(prefix="weft-keysets-"))
    try:
        return work(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--some", type=int, default=8, help="queries that Spark answers a turn")
    parser.add_argument("--cut", action="append", help="engines that are measured; auto if not given")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    work = Path(__file__).parents[1] / "bench-out"
    work.mkdir(exist_ok=True)
    path = write_rows(work)
    spark = start_spark("6g")
    spark.sparkContext.setLogLevel("OFF")
    texts = queries(40)
    cuts = options.cut or ["auto"]
    rnd = random.Random(7)

    def ours(cut: str, some: Sequence[str]) -> float:
        return in_folder(lambda folder: weft(spark, path, some, folder, cut))

    def theirs(text: str) -> float:
        return in_folder(lambda folder: spark_alone(spark, path, text, folder))

    for cut in cuts:
        print(f"cold, {cut}: {ours(cut, texts):.1f} s", flush=True)
        ours(cut, texts)
    for text in texts[:3]:
        theirs(text)
    found: dict[str, list[float]] = {cut: [] for cut in cuts}
    alone: list[float] = []
    for turn in range(options.turns):
        for cut in cuts:
            found[cut].append(ours(cut, texts))
        own = [theirs(text) for text in rnd.sample(texts, options.some)]
        alone.append(statistics.mean(own) * len(texts))
        print(f"{turn}: " + ", ".join(f"{cut} {found[cut][-1]:.2f} s" for cut in cuts) + f", Spark {alone[-1]:.0f} s")
    rows = []
    for cut in cuts:
        ratios = sorted(spark_s / mine for spark_s, mine in zip(alone, found[cut], strict=True))
        ratio = statistics.median(alone) / statistics.median(found[cut])
        middle = f"{statistics.median(found[cut]):.2f}", f"{statistics.median(alone):.0f}"
        rows.append((cut, *middle, f"{ratio:.1f}", f"{ratios[0]:.1f} .. {ratios[-1]:.1f}"))
    head = ("cut by", "Weft, s", "Spark one by one, s", "times as long", "spread")
    told = [f"{len(texts)} queries over 40 sets of keys, {ROWS:,} rows", table(head, rows)]
    if options.growth:
        grown = []
        for count in GROWTH:
            some = queries(count)
            ours("auto", some)
            grown.append((count, len(some), f"{statistics.median(ours('auto', some) for _ in range(3)):.2f}"))
            print(grown[-1], flush=True)
        told.append(table(("sets of keys", "queries", "Weft, s"), grown))
    spark.stop()
    text = "\n\n".join(told)
    print(text)
    if options.report:
        memory = psutil.virtual_memory().total / 2**30
        about = (
            f"`python benchmarks/keysets.py`, {datetime.date.today()}, two cores, {memory:.1f} GiB; medians by turns."
        )
        options.report.write_text(f"# Many sets of keys\n\n{about}\n\n{text}\n")


if __name__ == "__main__":
    main()
