"""The windowed queries of Nexmark, and a family of two hundred like its query 5: Weft, Spark one by one, DuckDB.

    .venv/bin/python benchmarks/nexmark.py [--report docs/benchmarks-nexmark.md]

The stream is in the shape of Nexmark's: of 50 events one is a new person, three are new auctions and 46 are bids, most
of them on a few hot auctions and by a few hot bidders; here they are drawn from a fixed seed. As far as windows go,
the queries are Nexmark's: q5 without the join that picks the hottest auction, q7 without the one that finds its bid,
the two sides of q8, q12 in event time; q11 wants sessions. The two hundred vary q5's window, predicate, key and
aggregate. Everybody writes Parquet. Spark answers some queries, a different few each turn, and the others are taken to
last as long; DuckDB answers all of the family, over panes that an expert would write by hand for each.
"""

from __future__ import annotations

import argparse
import datetime
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from techniques_report import table
from thousand import start_spark
from weft import Engine

EVENTS, A_SECOND = 3_000_000, 500
BEGIN = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
SCHEMAS = ("person", "auction", "bid")

NAMED = {
    "q5": "SELECT auction, window.start, window.end, count(*) AS num FROM bid "
    "GROUP BY auction, window(ts, '10 seconds', '2 seconds')",
    "q7": "SELECT window.start, window.end, max(price) AS maxprice FROM bid GROUP BY window(ts, '10 seconds')",
    "q8_person": "SELECT id, name, window.start, window.end, count(*) AS n FROM person "
    "GROUP BY id, name, window(ts, '10 seconds')",
    "q8_auction": "SELECT seller, window.start, window.end, count(*) AS n FROM auction "
    "GROUP BY seller, window(ts, '10 seconds')",
    "q12": "SELECT bidder, window.start, window.end, count(*) AS bid_count FROM bid "
    "GROUP BY bidder, window(ts, '10 seconds')",
}


@dataclass(frozen=True)
class Variation:
    """A query like q5."""

    keys: tuple[str, ...]
    slide: int
    times: int
    """How many slides the window is long."""
    where: str
    aggregate: str
    slices: tuple[str, ...]
    """What an expert keeps of a pane, and what he makes of it."""
    made: str

    def sql(self) -> str:
        """For Spark, and for Weft."""
        where = f"WHERE {self.where} " if self.where else ""
        keys = ", ".join(self.keys)
        window = f"window(ts, '{self.slide * self.times} seconds', '{self.slide} seconds')"
        return f"SELECT {keys}, window.start, {self.aggregate} AS a FROM bid {where}GROUP BY {keys}, {window}"

    def by_hand(self) -> str:
        """For DuckDB."""
        where = f"WHERE {self.where} " if self.where else ""
        keys = ", ".join(self.keys)
        kept = ", ".join(f"{text} AS s{number}" for number, text in enumerate(self.slices))
        return (
            f"SELECT {keys}, make_timestamp(w * {self.slide * 1_000_000}) AS start, {self.made} AS a FROM ("
            f"SELECT *, unnest(range(p - {self.times - 1}, p + 1)) AS w FROM (SELECT {keys}, "
            f"epoch_us(ts) // {self.slide * 1_000_000} AS p, {kept} FROM bid {where}GROUP BY ALL)) GROUP BY {keys}, w"
        )


AGGREGATES = (
    ("count(*)", ("count(*)",), "sum(s0)"),
    ("sum(price)", ("sum(price)",), "sum(s0)"),
    ("avg(price)", ("sum(price)", "count(price)"), "sum(s0) / sum(s1)"),
    ("max(price)", ("max(price)",), "max(s0)"),
    ("min(price)", ("min(price)",), "min(s0)"),
)
KEYS = (("auction",), ("bidder",), ("channel",), ("auction", "channel"))
WHERES = ("", "", "channel = 'Apple'", "price > 1000", "channel = 'Google' AND price > 500", "auction % 123 = 0")


def variations(count: int) -> list[Variation]:
    """The family, from a fixed seed."""
    chance = random.Random(5)
    made: dict[Variation, None] = {}
    while len(made) < count:
        aggregate, slices, text = chance.choice(AGGREGATES)
        window = chance.choice((2, 5, 10, 15, 30)), chance.choice((1, 2, 5, 6, 10, 12))
        keys = chance.choices(KEYS, (6, 2, 1, 1))[0]
        made[Variation(keys, *window, chance.choice(WHERES), aggregate, slices, text)] = None
    return list(made)


def write_events(folder: Path) -> dict[str, Path]:
    """Persons, auctions and bids in the order of time, once."""
    paths = {name: folder / f"nexmark-{name}-{EVENTS}.parquet" for name in SCHEMAS}
    if all(path.exists() for path in paths.values()):
        return paths
    rng = np.random.default_rng(11)
    number = np.arange(EVENTS)
    micros = pa.array(int(BEGIN.timestamp() * 1e6) + number * (1_000_000 // A_SECOND), pa.timestamp("us", tz="UTC"))
    turn = number % 50
    persons, auctions, bids = turn == 0, (turn > 0) & (turn < 4), turn >= 4
    people, sales = np.cumsum(persons), np.cumsum(auctions)
    # half of the bids go to the newest of every hundred auctions, three of four are by the newest of a hundred people
    count = int(bids.sum())
    hot, fan = rng.random(count) < 0.5, rng.random(count) < 0.75
    newest, latest = sales[bids], people[bids]
    auction = np.where(hot, newest // 100 * 100, np.maximum(newest - rng.integers(0, 100, count), 0))
    bidder = np.where(fan, latest // 100 * 100, np.maximum(latest - rng.integers(0, 1000, count), 0))
    price = np.round(10 ** (rng.random(count) * 6)).astype(np.int64)
    channel = pa.array(CHANNELS).take(pa.array(rng.integers(0, len(CHANNELS), count)))
    made = {
        "person": {"id": people[persons], "name": pa.array([f"person {one}" for one in people[persons]])},
        "auction": {
            "id": sales[auctions],
            "seller": np.maximum(people[auctions] - rng.integers(0, 50, int(auctions.sum())), 0),
        },
        "bid": {"auction": auction, "bidder": bidder, "price": price, "channel": channel},
    }
    for (name, columns), chosen in zip(made.items(), (persons, auctions, bids), strict=True):
        times = micros.filter(pa.array(chosen))
        pq.write_table(pa.table({"ts": times, **columns}), paths[name], row_group_size=200_000)
    return paths


def weft(spark: Any, paths: dict[str, Path], texts: Sequence[str], folder: Path) -> float:
    """Seconds for all queries, read, planned, answered and written."""
    began = time.perf_counter()
    engine = Engine(spark)
    for name, path in paths.items():
        if any(f"FROM {name} " in text for text in texts):
            engine.stream(name, spark.read.parquet(str(path)), "ts")
    engine.sql(";\n".join(texts))
    engine.run().write(str(folder / "weft"))
    return time.perf_counter() - began


def spark_alone(spark: Any, paths: dict[str, Path], text: str, folder: Path) -> float:
    """Seconds for one query."""
    began = time.perf_counter()
    for name, path in paths.items():
        if f"FROM {name} " in text:
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
    spark.sql(text).write.parquet(str(folder / "spark"))
    return time.perf_counter() - began


def duck(path: Path, family: Sequence[Variation], folder: Path) -> float:
    """Seconds for the whole family."""
    began = time.perf_counter()
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        connection.execute(f"CREATE TABLE bid AS SELECT * FROM '{path}'")
        for number, one in enumerate(family):
            connection.execute(f"COPY ({one.by_hand()}) TO '{folder / f'{number}.parquet'}' (FORMAT parquet)")
    return time.perf_counter() - began


def in_folder(work: Callable[[Path], float]) -> float:
    """Run something that writes, and forget what it wrote."""
    folder = Path(tempfile.mkdtemp(prefix="weft-nexmark-"))
    try:
        return work(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def checked(spark: Any, paths: dict[str, Path], some: Sequence[str]) -> int:
    """Rows of some queries that Weft and Spark have alike; ends if they differ."""
    rows = 0
    for text in some:
        name = text.split(" FROM ")[1].split()[0]
        frame = spark.read.parquet(str(paths[name]))
        frame.createOrReplaceTempView(name)
        engine = Engine(spark).stream(name, frame, "ts")
        engine.sql(f"-- name: q\n{text}")
        ours, theirs = engine.run()["q"], spark.sql(text)
        apart = ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()
        if apart:
            raise SystemExit(f"{apart} rows differ: {text}")
        rows += theirs.count()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--some", type=int, default=8, help="queries of the family that Spark answers a turn")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    work = Path(__file__).parents[1] / "bench-out"
    work.mkdir(exist_ok=True)
    paths = write_events(work)
    spark = start_spark("6g")
    spark.sparkContext.setLogLevel("OFF")
    named, family = list(NAMED.values()), variations(200)
    texts = [one.sql() for one in family]
    chance = random.Random(7)

    def ours(some: Sequence[str]) -> float:
        return in_folder(lambda folder: weft(spark, paths, some, folder))

    def theirs(text: str) -> float:
        return in_folder(lambda folder: spark_alone(spark, paths, text, folder))

    whole = [text for text in texts if "avg(" not in text]
    print(f"{checked(spark, paths, [*named, *chance.sample(whole, 3)]):,} rows are Spark's", flush=True)
    for _ in range(2):
        ours(named)
        ours(texts)
    found: dict[str, list[float]] = {
        name: [] for name in ("named", "named Spark", "family", "family Spark", "family DuckDB")
    }
    for turn in range(options.turns):
        found["named"].append(ours(named))
        found["named Spark"].append(sum(map(theirs, named)))
        found["family"].append(ours(texts))
        found["family DuckDB"].append(in_folder(lambda folder: duck(paths["bid"], family, folder)))
        found["family Spark"].append(statistics.mean(map(theirs, chance.sample(texts, options.some))) * len(texts))
        print(f"{turn}: " + ", ".join(f"{name} {values[-1]:.1f} s" for name, values in found.items()), flush=True)
    spark.stop()
    rows = []
    for who, count in (("named", len(named)), ("family", len(texts))):
        mine = statistics.median(found[who])
        for other in ("Spark", "DuckDB"):
            if (values := found.get(f"{who} {other}")) is not None:
                ratios = sorted(one / own for one, own in zip(values, found[who], strict=True))
                rows.append(
                    (
                        "q5, q7, q8's sides, q12" if who == "named" else "200 like q5",
                        count,
                        f"{mine:.2f}",
                        f"{other}, {statistics.median(values):.1f}",
                        f"{statistics.median(values) / mine:.1f} ({ratios[0]:.1f} .. {ratios[-1]:.1f})",
                    )
                )
    text = table(("queries", "how many", "Weft, s", "the other one by one, s", "times as long"), rows)
    print(text)
    if options.report:
        memory = psutil.virtual_memory().total / 2**30
        about = (
            f"`python benchmarks/nexmark.py`, {datetime.date.today()}, two cores, {memory:.1f} GiB; medians by turns."
        )
        told = " ".join((__doc__ or "").split("\n\n")[2].split())
        options.report.write_text(f"# Nexmark\n\n{about} {EVENTS:,} events, {A_SECOND} a second.\n\n{told}\n\n{text}\n")


if __name__ == "__main__":
    main()
