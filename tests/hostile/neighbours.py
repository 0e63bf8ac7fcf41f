"""Hostile queries beside good ones, in batch and live: what each of them got, and whether the good ones noticed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hostile.kinds import TRIGGER, Kind
from live.driven import SECOND, Collecting, Driven, Row, frame
from live.live_cases import BEGIN
from weft import Engine, Limits, WeftError

LATENESS = 5 * SECOND
LIMITS = Limits(answers=50_000, keys=30)
"""So low that a few rows go beyond them."""
Got = dict[str, str]
"""By a query's name: at which point it was stopped, and why."""


def rows_of(batches: int, trigger: int | None) -> list[list[Row]]:
    """Micro-batches of ten seconds; one of them holds the trigger."""
    rnd = random.Random(11)
    found = []
    for number in range(batches):
        start = BEGIN + number * 10 * SECOND
        rows = [
            (start + rnd.randrange(10 * SECOND), rnd.choice("abc"), rnd.randrange(1, 100), rnd.random())
            for _ in range(30)
        ]
        if number == trigger:
            # two: one alone overflows no sum
            rows += [(start + 9 * SECOND, "a", TRIGGER, 0.25), (start + 9 * SECOND + 1, "b", TRIGGER, 0.25)]
        found.append(rows)
    return found


def as_text(queries: Mapping[str, str]) -> str:
    """Good queries as one file."""
    return ";\n".join(f"-- name: {name}\n{text}" for name, text in queries.items())


def batch_answers(
    spark: Any, folder: Path, good: Mapping[str, str], kinds: Sequence[Kind], rows: Iterable[Row]
) -> tuple[dict[str, Counter[Any]], Got]:
    """One run: the answers of the good queries, and what each hostile one got."""
    engine = Engine(spark, limits=LIMITS).stream("s", frame(spark, rows), "ts")
    engine.sql(as_text(good))
    got: Got = {}
    for kind in kinds:
        try:
            engine.sql(kind.sql)
        except WeftError as error:
            got[kind.name] = f"at registration: {error}"
    answers = engine.run()
    got |= {name: f"in the run: {error}" for name, error in answers.failures.items()}
    answers.write(str(folder))
    got |= {name: f"when answers are written: {error}" for name, error in answers.failures.items() if name not in got}
    return {name: near(answers[name].collect()) for name in good}, got


def near(rows: Iterable[Sequence[Any]]) -> Counter[Any]:
    """Rows with doubles as near as they have to be: who shares slices with whom changes their last digits."""
    return Counter(tuple(round(value, 9) if isinstance(value, float) else value for value in row) for row in rows)


class Neighbourhood:
    """A live job of good queries, to which hostile ones move."""

    def __init__(self, spark: Any, folder: Path, good: Mapping[str, str]) -> None:
        self.spark, self.folder, self.good = spark, folder, good
        self.sink = Collecting()
        self.got: Got = {}
        self.driven = self._driven()
        self.driven.catalog.add(as_text(good))

    def _driven(self) -> Driven:
        return Driven(self.spark, self.folder, LATENESS, self.sink, limits=LIMITS)

    def restart(self) -> None:
        """The next driver takes over."""
        self.driven = self._driven()

    def add(self, kinds: Sequence[Kind]) -> None:
        """Hostile queries, from the next batch on."""
        for kind in kinds:
            try:
                self.driven.catalog.add(kind.sql)
            except WeftError as error:
                self.got[kind.name] = f"at registration: {error}"

    def feed(self, rows: Iterable[Row]) -> None:
        """One micro-batch."""
        self.driven.feed(rows)
        for entry in self.driven.catalog.entries("refused"):
            self.got.setdefault(entry.name, f"in batch {self.driven.job.last.batch}: {entry.reason}")

    def answers(self) -> dict[str, Counter[Any]]:
        """The answers of the good queries."""
        return {name: near(self.sink.rows(name)) for name in self.good}


def wrong(kinds: Sequence[Kind], got: Got) -> dict[str, str]:
    """The hostile queries that got something else than they should have."""
    found = {}
    for kind in kinds:
        name = "../x y" if kind.name == "odd_name" else kind.name
        said = got.get(name)
        if kind.stage == "none":
            if said is not None:
                found[kind.name] = said
        elif said is None:
            found[kind.name] = "it was answered"
        elif kind.says not in said.lower():
            found[kind.name] = said
    return found
