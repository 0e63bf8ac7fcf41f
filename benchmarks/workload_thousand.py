"""The workload of ``thousand.py``: trades of six hours, and a thousand queries that a trading floor might watch.

Everything is drawn from fixed seeds, so that two machines measure the same thing. A query is kept as data and
written out twice: as the Spark SQL that a user would hand in, and as the DuckDB SQL that an expert would write by
hand for that one query, with its own slices (panes, or pairs where range is not a multiple of slide).
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SECOND = 1_000_000
SPAN_SECONDS = 6 * 3600
SYMBOLS = 100
VENUES = ("XNAS", "XNYS", "ARCX", "BATS", "EDGX", "IEXG", "MEMX", "XBOS")
VENUE_SHARES = (0.30, 0.22, 0.16, 0.12, 0.09, 0.05, 0.04, 0.02)
START = datetime.datetime(2026, 3, 2, 14, 30, tzinfo=datetime.UTC)
CHUNK = 500_000


# ---------------------------------------------------------------------------------------------- the data


def write_trades(directory: Path, rows: int, seed: int = 7) -> Path:
    """Write ``rows`` trades as Parquet, eight files, once; the six hours stay six hours whatever ``rows`` is."""
    path = directory / f"trades-{rows}"
    if (path / "_DONE").exists():
        return path
    path.mkdir(parents=True, exist_ok=True)
    market = _Market(np.random.default_rng(seed))
    cuts = np.linspace(0, rows, 9).astype(np.int64)
    for number, (low, high) in enumerate(pairwise(cuts)):
        with pq.ParquetWriter(path / f"part-{number}.parquet", market.schema) as writer:
            for begin in range(low, high, CHUNK):
                writer.write_table(market.trades(begin, min(begin + CHUNK, high), rows))
    (path / "_DONE").touch()
    return path


class _Market:
    """A hundred symbols, the first traded far more than the last (Zipf), each price a random walk."""

    schema = pa.schema(
        [
            ("ts", pa.timestamp("us", tz="UTC")),
            ("symbol", pa.string()),
            ("venue", pa.string()),
            ("side", pa.string()),
            ("price", pa.float64()),
            ("volume", pa.int32()),
            ("bid", pa.float64()),
            ("ask", pa.float64()),
        ]
    )

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        weights = 1.0 / np.arange(1, SYMBOLS + 1)
        self.symbol_shares = weights / weights.sum()
        opening = np.round(rng.lognormal(4.0, 0.8, SYMBOLS), 2)
        steps = rng.normal(0, 1.5e-4, (SYMBOLS, SPAN_SECONDS)).cumsum(axis=1)
        self.price_at = opening[:, None] * np.exp(steps)
        self.names = pa.array([f"S{number:03d}" for number in range(SYMBOLS)])

    def trades(self, begin: int, end: int, rows: int) -> pa.Table:
        """Rows ``begin`` to ``end`` of ``rows``, in time order, with the morning and the close busier than noon."""
        rng, count = self.rng, end - begin
        even = (np.arange(begin, end) + rng.random(count)) / rows
        bent = even + 0.08 * np.sin(2 * np.pi * even)
        offset = np.clip(np.sort(bent) * SPAN_SECONDS * SECOND, 0, SPAN_SECONDS * SECOND - 1).astype(np.int64)
        symbol = rng.choice(SYMBOLS, count, p=self.symbol_shares).astype(np.int32)
        middle = self.price_at[symbol, offset // SECOND]
        half = np.maximum(0.01, np.round(middle * rng.exponential(1.5e-4, count), 2))
        bid, ask = np.round(middle - half, 2), np.round(middle + half, 2)
        buys = rng.random(count) < 0.51
        lots = rng.geometric(0.35, count) * rng.choice([1, 10, 100, 500], count, p=[0.15, 0.2, 0.6, 0.05])
        columns = [
            pa.array(offset + int(START.timestamp()) * SECOND, pa.timestamp("us", tz="UTC")),
            self.names.take(pa.array(symbol)),
            pa.array(VENUES).take(pa.array(rng.choice(len(VENUES), count, p=VENUE_SHARES))),
            pa.array(["S", "B"]).take(pa.array(buys.astype(np.int8))),
            pa.array(np.where(buys, ask, bid)),
            pa.array(lots.astype(np.int32)),
            pa.array(bid),
            pa.array(ask),
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


# ---------------------------------------------------------------------------------------------- the queries


@dataclass(frozen=True, slots=True)
class Measure:
    """One output column: for Spark as it stands; for DuckDB as partials of a slice and what is made of them."""

    name: str
    spark: str
    partials: tuple[tuple[str, str], ...]
    final: str
    weight: int
    relative: float = 1e-9
    absolute: float = 0.0
    """How far rows of two systems may differ: differences of near values cancel, rounding may tip over."""


_COUNT = ("n", "count(*)")
_PRICE = ("sum_price", "sum(price)")
_VOLUME = ("sum_volume", "sum(volume)")
_NOTIONAL = ("sum_notional", "sum(price * volume)")
_LOW = ("low_price", "min(price)")
_HIGH = ("high_price", "max(price)")
_AVERAGE = "sum(sum_price) / sum(n)"
_SPREAD_OF_MEANS = "sum(n * (sum_price / n) * (sum_price / n)) - sum(sum_price) * (sum(sum_price) / sum(n))"

MEASURES = (
    Measure("trades", "count(*)", (_COUNT,), "sum(n)::BIGINT", 14),
    Measure("volume", "sum(volume)", (_VOLUME,), "sum(sum_volume)::BIGINT", 14),
    Measure("notional", "sum(price * volume)", (_NOTIONAL,), "sum(sum_notional)", 10),
    Measure("mean_price", "avg(price)", (_COUNT, _PRICE), _AVERAGE, 16),
    Measure("low", "min(price)", (_LOW,), "min(low_price)", 10),
    Measure("high", "max(price)", (_HIGH,), "max(high_price)", 10),
    Measure("biggest", "max(volume)", (("high_volume", "max(volume)"),), "max(high_volume)", 6),
    Measure(
        "volatility",
        "stddev(price)",
        (_COUNT, _PRICE, ("m2_price", "var_pop(price) * count(*)")),
        "CASE WHEN sum(n) > 1 THEN "
        f"sqrt(greatest(0, sum(m2_price) + {_SPREAD_OF_MEANS}) / (sum(n) - 1)) END",
        7,
        1e-6,
        1e-5,
    ),
    Measure(
        "price_volume_covariance",
        "covar_pop(price, volume)",
        (_COUNT, _PRICE, _VOLUME, ("c_price_volume", "covar_pop(price, volume) * count(*)")),
        "(sum(c_price_volume) + sum(sum_price * (sum_volume / n)) - sum(sum_price) * (sum(sum_volume) / sum(n)))"
        " / sum(n)",
        2,
        1e-6,
        1e-6,
    ),
    Measure("price_range", "max(price) - min(price)", (_LOW, _HIGH), "max(high_price) - min(low_price)", 1),
    Measure("mean_price_cents", "round(avg(price), 2)", (_COUNT, _PRICE), f"round({_AVERAGE}, 2)", 1, absolute=0.0101),
    Measure(
        "vwap", "sum(price * volume) / sum(volume)", (_NOTIONAL, _VOLUME), "sum(sum_notional) / sum(sum_volume)", 1
    ),
    Measure("mean_spread", "avg(ask - bid)", (_COUNT, ("sum_spread", "sum(ask - bid)")), "sum(sum_spread) / sum(n)", 5),
    Measure(
        "buys", "count(*) FILTER (WHERE side = 'B')", (("n_buys", "count(*) FILTER (side = 'B')"),),
        "sum(n_buys)::BIGINT", 5,
    ),
)  # fmt: skip

HAVINGS = (
    ("count(*) >= 20", (_COUNT,), "sum(n) >= 20"),
    ("sum(volume) > 100000", (_VOLUME,), "sum(sum_volume) > 100000"),
    ("max(volume) >= 1000", (("high_volume", "max(volume)"),), "max(high_volume) >= 1000"),
)

PREDICATES = (
    "volume >= 100",
    "volume >= 500",
    "volume >= 1000",
    "volume BETWEEN 100 AND 499",
    "side = 'B'",
    "side = 'S'",
    "side = 'B' AND volume >= 1000",
    "side = 'S' AND volume >= 1000",
    "venue = 'XNAS'",
    "venue = 'XNAS' AND side = 'B'",
    "price > 100",
    "price BETWEEN 20 AND 100",
)

KEYS: tuple[tuple[tuple[str, ...], int], ...] = ((("symbol",), 70), (("venue",), 14), ((), 10), (("side",), 6))

SLIDES = (10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 240, 300, 450, 600, 900, 1200, 1800)
ODD_SLIDES = (25, 35, 70, 100, 210, 420, 700)


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """One query of the workload; ``range`` and ``slide`` in seconds."""

    name: str
    range: int
    slide: int
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    where: str | None = None
    having: int | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a row of the answer."""
        return ("window_start", "window_end", *self.keys)

    def spark_sql(self, table: str = "trades") -> str:
        """The query as its user wrote it."""
        outputs = ["window.start AS window_start", "window.end AS window_end", *self.keys]
        outputs += [f"{measure.spark} AS {measure.name}" for measure in self.measures]
        window = f"window(ts, '{_duration(self.range)}', '{_duration(self.slide)}')"
        lines = [f"SELECT {', '.join(outputs)}", f"FROM {table}"]
        lines += [f"WHERE {self.where}"] if self.where else []
        lines += [f"GROUP BY {', '.join([window, *self.keys])}"]
        lines += [f"HAVING {HAVINGS[self.having][0]}"] if self.having is not None else []
        return "\n".join(lines)

    def duckdb_sql(self, table: str = "trades") -> str:
        """The same query as an expert writes it for DuckDB: slices first, then the windows from the slices.

        ``table`` has the event time as microseconds in ``us``. With range = whole * slide + rest, a slice of the
        first ``rest`` of a slide lies in whole + 1 windows, a later one in ``whole``.
        """
        whole, rest = divmod(self.range, self.slide)
        slide = self.slide * SECOND
        early = f"CASE WHEN us % {slide} < {rest * SECOND} THEN 1 ELSE 0 END" if rest else "0"
        partials = dict(part for measure in self.measures for part in measure.partials)
        partials |= dict(HAVINGS[self.having][1]) if self.having is not None else {}
        slices = ", ".join([f"us // {slide} AS k", f"{early} AS early", *self.keys])
        slices += "".join(f", {sql} AS {name}" for name, sql in partials.items())
        finals = ["make_timestamp(w * {0}) AS window_start", "make_timestamp(w * {0} + {1}) AS window_end"]
        outputs = [text.format(slide, self.range * SECOND) for text in finals] + [*self.keys]
        outputs += [f"{measure.final} AS {measure.name}" for measure in self.measures]
        return (
            f"WITH slices AS (SELECT {slices} FROM {table} WHERE {self.where or 'true'} GROUP BY ALL),\n"
            f"windows AS (SELECT unnest(range(k - {whole - 1} - early, k + 1)) AS w, * FROM slices)\n"
            f"SELECT {', '.join(outputs)} FROM windows GROUP BY {', '.join(['w', *self.keys])}"
            + (f"\nHAVING {HAVINGS[self.having][2]}" if self.having is not None else "")
        )


def _duration(seconds: int) -> str:
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}{'s' if seconds > size else ''}"
    return f"{seconds} seconds"


ONE_HOUR_BY_ONE_MINUTE = WindowQuery("hour_by_minute", 3600, 60, ("symbol",), (MEASURES[3],))


def queries(count: int, seed: int = 11) -> list[WindowQuery]:
    """The first ``count`` queries: a shorter workload is always the beginning of a longer one."""
    drawn = _draw(random.Random(seed))
    return [next(drawn) for _ in range(count)]


def _draw(rng: random.Random) -> Iterator[WindowQuery]:
    number = 0
    while True:
        slide = rng.choice(ODD_SLIDES if rng.random() < 0.06 else SLIDES)
        # no window is longer than the data: longer ones would flatter whoever does not copy rows
        overlap = rng.randint(1, min(60, SPAN_SECONDS // slide))
        fragment = rng.choice((slide // 5, slide // 2)) if rng.random() < 0.12 else 0
        yield WindowQuery(
            name=f"q{number:04d}",
            range=overlap * slide + fragment,
            slide=slide,
            keys=_weighted(rng, [keys for keys, _ in KEYS], [weight for _, weight in KEYS]),
            measures=_measures(rng),
            where=rng.choice(PREDICATES) if rng.random() < 1 / 3 else None,
            having=rng.randrange(len(HAVINGS)) if rng.random() < 0.01 else None,
        )
        number += 1


def _measures(rng: random.Random) -> tuple[Measure, ...]:
    wanted = rng.choice((1, 1, 1, 2, 2, 3))
    chosen: dict[str, Measure] = {}
    while len(chosen) < wanted:
        measure = _weighted(rng, list(MEASURES), [measure.weight for measure in MEASURES])
        chosen[measure.name] = measure
    return tuple(chosen.values())


def _weighted(rng: random.Random, options: list[Any], weights: list[int]) -> Any:
    return rng.choices(options, weights)[0]


def load_duckdb(trades: Path, kind: str) -> str:
    """What ``duckdb_sql`` reads: the Parquet files themselves, or a table in memory that was loaded from them once."""
    columns = "epoch_us(ts) AS us, * EXCLUDE (ts)"
    return f"CREATE {kind} trades AS SELECT {columns} FROM read_parquet('{trades}/*.parquet')"


def query_file(workload: list[WindowQuery]) -> str:
    """The workload as one file for ``weft run``."""
    return "\n\n".join(f"-- name: {query.name}\n{query.spark_sql()};" for query in workload) + "\n"
