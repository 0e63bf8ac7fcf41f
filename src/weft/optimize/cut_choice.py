"""Which engine cuts rows: what each would do for a plan, and how long that takes on this Spark.

The JVM's aggregation copies every row once a grouping, and each copy updates a buffer as wide as the widest grouping.
Kernels need rows as Arrow, in the workers or in the driver's process, and update only what each grouping keeps. So the
JVM is best at narrow plans over many rows, kernels at wide ones, and the driver's process where rows are few.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

from weft.optimize.constants import Constants
from weft.plan.asking import asked_by
from weft.plan.cut_engine import CutEngine
from weft.plan.layout import layouts
from weft.plan.model import BITS, Plan

MOST_BROUGHT = 20_000_000
"""So many values are brought to the driver's process at most: all of them are in its memory at once, and in Java's."""
UNSEEN_SLICES = 0.05
"""Slices a row and grouping, where nothing tells."""


@dataclass(frozen=True, slots=True)
class CutWork:
    """Counts; each field is named as the constant that says how long one takes."""

    step: float = 0.0
    moved: float = 0.0
    grouped: float = 0.0
    updated: float = 0.0
    sliced: float = 0.0

    def seconds(self, each: Mapping[str, float]) -> float:
        """The predicted time, by the constants of an engine."""
        return float(sum(getattr(self, item.name) * each[item.name] for item in fields(self)))


@dataclass(frozen=True, slots=True)
class CutShape:
    """How wide a plan is."""

    columns: int
    """Values of a row that keys, arguments, predicates and event time make."""
    groupings: int
    buffers: int
    """Numbers of the JVM's buffer, for each copy of a row."""
    numbers: int
    """Numbers that groupings keep, all together."""

    @classmethod
    def of(cls, plan: Plan) -> CutShape:
        """The shape of a plan."""
        values = {asked.column for query in plan.queries for asked in asked_by(query)}
        placed = layouts(plan)
        return cls(
            columns=1 + len(values) + -(-len(plan.predicates) // BITS),
            groupings=len(plan.groupings),
            buffers=sum(len(one.slots) for one in placed.values()),
            numbers=sum(number in slot.uses for number, one in placed.items() for slot in one.slots),
        )

    def work(self, engine: CutEngine, rows: float, slices: float) -> CutWork:
        """What an engine does with so many rows, which have so many slices."""
        updated = self.buffers if engine == "jvm" else self.numbers
        moved = 0 if engine == "jvm" else self.columns
        width = self.numbers / max(self.groupings, 1)
        return CutWork(1.0, rows * moved, rows * self.groupings, rows * updated, slices * width)


@dataclass(frozen=True, slots=True)
class CutChoice:
    """The engine that should be the fastest, and what each would take."""

    engine: CutEngine
    rows: float
    seconds: dict[CutEngine, float]

    def __str__(self) -> str:
        told = ", ".join(
            f"{engine} {seconds:.2g} s" for engine, seconds in sorted(self.seconds.items(), key=by_seconds)
        )
        return f"for some {self.rows:,.0f} rows: {told}"


def by_seconds(item: tuple[CutEngine, float]) -> float:
    """For sorting."""
    return item[1]


def choose_cut(
    shape: CutShape,
    rows: float,
    slices: float | None,
    constants: Constants,
    engines: Collection[CutEngine],
    most: float = MOST_BROUGHT,
) -> CutChoice:
    """The cheapest of some engines for a plan over so many rows, of which so many slices are expected.

    Parameters
    ----------
    most
        How many values the driver's process has room for.

    Examples
    --------
    >>> narrow, wide = CutShape(3, 1, 1, 1), CutShape(30, 13, 13 * 42, 100)
    >>> engines = ("jvm", "workers", "driver")
    >>> [choose_cut(narrow, rows, None, Constants(), engines).engine for rows in (1e4, 1e7)]
    ['driver', 'jvm']
    >>> [choose_cut(wide, rows, None, Constants(), engines).engine for rows in (1e4, 1e7)]
    ['driver', 'workers']
    """
    made = UNSEEN_SLICES * rows * shape.groupings if slices is None else slices
    allowed = [engine for engine in engines if engine != "driver" or rows * shape.columns <= most]
    seconds = {engine: shape.work(engine, rows, made).seconds(constants.cut[engine]) for engine in allowed}
    return CutChoice(min(seconds.items(), key=by_seconds)[0], rows, seconds)
