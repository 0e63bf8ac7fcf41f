"""The first half of a step on a micro-batch: rows to slices in the JVM, left there or brought here, and counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.plan.model import Predicate
from weft.slicing.window import Window
from weft.spark.fetching import brought, observed_by
from weft.spark.live.finals_place import bucket_text
from weft.spark.live.planning import LivePlan
from weft.spark.packed import packed
from weft.spark.reused_plans import ReusableAction, ReusableCut, ReusableFrame, scanned
from weft.spark.rows import event_micros, predicate_text, slices
from weft.spark.scatter import ReusableShuffle, Scattered
from weft.spark.step import BUCKET, READ
from weft.spark.unmerged import first_shuffle

Found = TypeVar("Found")


@dataclass(frozen=True)
class CutRows:
    """The slices of a micro-batch, and what was counted on the way."""

    slices: pa.Table | None = None
    rows: int = 0
    without_time: int = 0
    largest: int | None = None
    """The largest event time."""
    late: int = 0
    """Rows that no open window wants."""
    bad: int = 0
    """Records that could not be read."""
    scattered: Scattered | None = None
    """The slices, where they are not brought to the driver."""


class Cutter(ABC, Generic[Found]):
    """Makes the slices of one batch after another, under one plan.

    Parameters
    ----------
    mark
        The column that is not NULL in rows that could not be read, if there is one.
    """

    def __init__(self, live: LivePlan, mark: str | None = None) -> None:
        self._live = live
        self._good = "true" if mark is None else f"{mark} IS NULL"
        self._marks = [] if mark is None else [mark]
        self._reused: ReusableCut[Found] | None = None

    def cut(self, rows: DataFrame, watermark: int | None) -> CutRows:
        """Aggregate the rows to slices, in the JVM."""
        found, counted = self._first(rows) if self._reused is None else self._reused.run(rows)
        cut = CutRows(
            None,
            counted["rows"],
            counted["rows"] - counted["timed"],
            counted["largest"],
            self._late(rows, counted["smallest"], watermark),
            counted["bad"],
        )
        return cut if found is None else self._with(found, cut)

    @abstractmethod
    def _packed(self, cut: DataFrame) -> DataFrame:
        """Slices as they travel."""

    @abstractmethod
    def _run(self, packed: DataFrame) -> Found:
        """Have Spark make the slices."""

    @abstractmethod
    def _again(self, packed: DataFrame) -> ReusableAction[Found] | None:
        """The same on other rows, if that is possible."""

    @abstractmethod
    def _with(self, found: Found, cut: CutRows) -> CutRows:
        """The outcome with the slices that were found."""

    def _first(self, rows: DataFrame) -> tuple[Found | None, Mapping[str, Any]]:
        """The same by a plan of its own, which is kept for the next batches if that is possible."""
        event_time = self._live.plan.event_time
        instant = event_micros(rows, event_time)
        counts = {"rows": "count(1)", "bad": "0L"}
        if self._marks:
            instant = f"CASE WHEN {self._good} THEN {instant} END"
            counts = {"rows": f"count_if({self._good})", "bad": f"count_if(NOT ({self._good}))"}
        counts |= {"timed": f"count({instant})", "largest": f"max({instant})", "smallest": f"min({instant})"}
        watched = scanned(rows).observe(READ, *(F.expr(text).alias(name) for name, text in counts.items()))
        watched = watched.where(self._good).drop(*self._marks) if self._marks else watched
        if not self._live.plan.groupings:
            reading = watched.agg(F.count(F.lit(1)))
            brought(reading)
            return None, observed_by(reading, READ)
        with slices(watched, self._live.plan) as cut:
            packed = self._packed(cut.frame)
            found, counted = cut.counted(packed, lambda: self._run(packed), READ)
            if cut.planned is not None:
                self._reused = ReusableCut.of(first_shuffle(cut.planned).child(), self._again(packed))
            return found, counted

    def _late(self, rows: DataFrame, smallest: int | None, watermark: int | None) -> int:
        """How many rows no open window wants: they are looked for only where one is later than allowed."""
        if watermark is None or smallest is None or smallest >= min(watermark, open_for_all(self._live, watermark)):
            return 0
        micros = event_micros(rows, self._live.plan.event_time)
        return rows.where(self._good).where(late_text(self._live, micros, watermark)).count()


class DriverCutter(Cutter[pa.Table]):
    """Brings the slices to the driver's process."""

    def _packed(self, cut: DataFrame) -> DataFrame:
        return packed(cut, self._live.packing)

    def _run(self, packed: DataFrame) -> pa.Table:
        return brought(packed)

    def _again(self, packed: DataFrame) -> ReusableAction[pa.Table] | None:
        return ReusableFrame.of(packed)

    def _with(self, found: pa.Table, cut: CutRows) -> CutRows:
        return replace(cut, slices=self._live.packing.unpack(found))


class ExecutorCutter(Cutter[Scattered]):
    """Leaves the slices with the executors, each in its bucket."""

    def _packed(self, cut: DataFrame) -> DataFrame:
        placed = cut.selectExpr("*", f"{bucket_text(self._live)} AS {BUCKET}")
        return packed(placed, self._live.packing).repartitionById(self._live.record.buckets, F.col(BUCKET))

    def _run(self, packed: DataFrame) -> Scattered:
        return Scattered.run(packed)

    def _again(self, packed: DataFrame) -> ReusableAction[Scattered] | None:
        return ReusableShuffle.of(packed)

    def _with(self, found: Scattered, cut: CutRows) -> CutRows:
        return replace(cut, scattered=found)


def cutter_of(live: LivePlan, mark: str | None) -> DriverCutter | ExecutorCutter:
    """What makes the slices of batches, for where their finals run."""
    return ExecutorCutter(live, mark) if live.record.buckets else DriverCutter(live, mark)


def open_for_all(live: LivePlan, watermark: int) -> int:
    """From which instant on every row lies in an open window of every query; never before the watermark with gaps."""
    since = [watermark - 2**62]
    for query in live.plan.queries:
        first = query.window.open_since(live.record.first.get(query.name), watermark)
        since.append(watermark if query.window.has_gaps or first is None else first)
    return max(since)


def late_text(live: LivePlan, micros: str, watermark: int) -> str:
    """A condition that holds for rows that some query's WHERE lets through, but no open window wants."""
    windows: dict[Predicate, dict[Window, int | None]] = {}
    for query in live.plan.queries:
        window, first = query.window, live.record.first.get(query.name)
        known = windows.setdefault(query.predicate, {})
        known[window] = first if window not in known or known[window] is not None else None
    wanted, open_ = [], []
    for predicate, some in windows.items():
        reaching = " OR ".join(_reaches(micros, window, first, watermark) for window, first in some.items())
        passes = "true" if predicate.everything else predicate_text(predicate)
        wanted.append(passes)
        open_.append(f"({passes} AND ({reaching}))")
    return f"CASE WHEN {micros} < {watermark}L THEN {_any(wanted)} AND NOT ({_any(open_)}) END"


def _any(conditions: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(conditions))
    return "true" if "true" in distinct else "(" + " OR ".join(distinct) + ")"


def _reaches(micros: str, window: Window, first: int | None, watermark: int) -> str:
    """Whether a row lies in an open window."""
    covered = window.covers_text(micros)
    text = f"{micros} >= {window.open_since(first, watermark)}L"
    return f"({text} AND {covered})" if covered else f"({text})"
