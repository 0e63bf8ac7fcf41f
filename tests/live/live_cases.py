"""Random queries and random micro-batches, for Weft as text and for the naive model as functions. Integers only."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from live.driven import SECOND, Row
from live.naive_stream import NaiveQuery, NaiveStream
from weft.slicing.time_window import TimeWindow

BEGIN = 1_700_000_000 * SECOND


@dataclass(frozen=True)
class Case:
    """One query."""

    window: TimeWindow
    where: int | None
    """Only rows with ``v`` above it."""
    keyed: bool
    aggregates: tuple[str, ...]
    having: int | None = None
    by: str = "k"
    """The key, where it is keyed."""


KEYS = {"k": lambda row: row[1], "v % 3": lambda row: row[2] % 3}
AGGREGATES = {
    "count(*)": len,
    "sum(v)": lambda rows: sum(row[2] for row in rows),
    "min(v)": lambda rows: min(row[2] for row in rows),
    "max(v)": lambda rows: max(row[2] for row in rows),
    "count(k)": lambda rows: sum(row[1] is not None for row in rows),
    "min(k)": lambda rows: min((row[1] for row in rows if row[1] is not None), default=None),
    "count(*) FILTER (WHERE v % 2 = 0)": lambda rows: sum(row[2] % 2 == 0 for row in rows),
    "sum(v) FILTER (WHERE v % 2 = 0)": lambda rows: sum_or_null(row[2] for row in rows if row[2] % 2 == 0),
    "sum(v) + 1": lambda rows: sum(row[2] for row in rows) + 1,
}


CLOSE = ("count(*)", "sum(v)", "sum(v) FILTER (WHERE v % 2 = 0)")


def sum_or_null(values: Iterable[int]) -> int | None:
    """A sum as SQL has it: of nothing it is NULL."""
    some = list(values)
    return sum(some) if some else None


def case_of(rnd: random.Random) -> Case:
    """Any window: sliding, tumbling, with gaps, odd."""
    slide = rnd.choice((1, 2, 5, 7, 10, 15, 30)) * SECOND
    range_ = rnd.choice((slide, 2 * slide, 3 * slide, slide * 5 // 2, slide * 2 // 3, 60 * SECOND))
    window = TimeWindow(range=max(range_, 1), slide=slide, start=rnd.choice((0, 0, slide // 2)))
    return Case(
        window,
        rnd.choice((None, None, 20, 50, 80)),
        rnd.random() < 0.7,
        tuple(rnd.sample(sorted(AGGREGATES), rnd.randint(1, 3))),
        rnd.choice((None, None, None, 2)),
    )


def close_case(rnd: random.Random) -> Case:
    """One of few questions, which share windows, partials and keys, but not the rows that they ask about."""
    return Case(
        TimeWindow(rnd.choice((60, 60, 90)) * SECOND, rnd.choice((10, 10, 30)) * SECOND),
        rnd.choice((None, None, 50)),
        True,
        tuple(rnd.sample(CLOSE, rnd.randint(1, 2))),
        by=rnd.choice(("k", "k", "v % 3")),
    )


def queries_of(seed: int, most: int = 6) -> dict[str, Case]:
    """Some queries."""
    rnd = random.Random(seed)
    return {f"q{number}": case_of(rnd) for number in range(rnd.randint(1, most))}


def sql(case: Case) -> str:
    """The query as Weft is given it."""
    window = f"window(ts, '{case.window.range} microseconds', '{case.window.slide} microseconds'"
    window += f", '{case.window.start} microseconds')"
    key = [case.by] if case.keyed else []
    values = [f"{text} AS a{number}" for number, text in enumerate(case.aggregates)]
    where = f" WHERE v > {case.where}" if case.where is not None else ""
    having = f" HAVING count(*) >= {case.having}" if case.having else ""
    columns = ", ".join(["window.start", "window.end", *(f"{one} AS g" for one in key), *values])
    return f"SELECT {columns} FROM s{where} GROUP BY {', '.join([window, *key])}{having}"


def naive_query(case: Case, first: int | None = None) -> NaiveQuery:
    """The query as the model has it; what HAVING leaves out is None."""

    def answer(start: int, end: int, key: Any, rows: Any) -> Row:
        values = (AGGREGATES[text](rows) for text in case.aggregates)
        return (start, end, *([key] if case.keyed else []), *values)

    def passes(row: Row) -> bool:
        return case.where is None or row[2] > case.where

    query = NaiveQuery(case.window, passes, KEYS[case.by] if case.keyed else lambda row: None, answer, first)
    if case.having:
        query.keeps = lambda rows: len(rows) >= case.having
    return query


def model(cases: dict[str, Case], lateness: int) -> NaiveStream:
    """The naive stream for some queries."""
    return NaiveStream(lateness, {name: naive_query(case) for name, case in cases.items()})


def disordered(seed: int, disorder: int, most_batches: int = 7) -> list[list[Row]]:
    """Micro-batches of rows in time order but for a random delay of up to ``disorder`` each."""
    rnd = random.Random(seed + 1)
    count = rnd.randint(20, 200)
    span = rnd.choice((60, 300, 900)) * SECOND
    instants = sorted(rnd.randrange(span) for _ in range(count))
    if rnd.random() < 0.5:
        instants = [instant // SECOND * SECOND for instant in instants]
    arriving = sorted(instants, key=lambda instant: instant + rnd.randrange(max(disorder, 1)))
    keys = rnd.sample(["a", "b", "c", None, ""], rnd.randint(1, 4))
    rows: list[Row] = [(BEGIN + t, rnd.choice(keys), rnd.randrange(100), rnd.random()) for t in arriving]
    cuts = sorted(rnd.randrange(count + 1) for _ in range(rnd.randint(1, most_batches - 1)))
    return [rows[low:high] for low, high in zip([0, *cuts], [*cuts, count], strict=True)]
