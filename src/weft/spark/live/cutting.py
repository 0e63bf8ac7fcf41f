"""The first half of a step on a micro-batch: rows to slices, left with the executors or brought here, and counted."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.plan import model
from weft.plan.cut_engine import CutEngine
from weft.plan.model import Predicate
from weft.slicing.window import Window
from weft.spark.fetching import Plan, TooLargeError, arrow_schema, brought, observed_by
from weft.spark.kernel_cut import cut_in_workers, cut_table, projected, read_counts
from weft.spark.live.finals_place import bucket_text
from weft.spark.live.planning import LivePlan
from weft.spark.packed import packed, packing_of
from weft.spark.reused_plans import ReusableAction, ReusableCut, ReusableFrame, rdd_of, scanned
from weft.spark.rows import Cut, event_micros, predicate_text, slices
from weft.spark.scatter import ReusableShuffle, Scattered
from weft.spark.step import BUCKET, READ
from weft.spark.unmerged import first_shuffle
from weft.step import cutting
from weft.step.arriving import PackedRows
from weft.step.new_slices import NewSlices

Found = TypeVar("Found")
LOG = logging.getLogger("weft.stream")


@dataclass(frozen=True)
class CutRows:
    """The slices of a micro-batch, and what was counted on the way."""

    slices: NewSlices = field(default_factory=NewSlices)
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


class Cutter(Protocol):
    """Makes the slices of one batch after another, under one plan."""

    def cut(self, rows: DataFrame, watermark: int | None) -> CutRows:
        """Cut the rows of a batch, and count them."""


def cutter_of(live: LivePlan, engine: CutEngine, mark: str | None) -> Cutter:
    """What makes the slices of batches, for where their finals run.

    Parameters
    ----------
    engine
        Who cuts rows. Slices for executors are not cut in the driver's process, but in the workers.
    mark
        The column that is not NULL in rows that could not be read, if there is one.
    """
    if engine == "driver" and not live.record.buckets:
        return HereCutter(live, mark)
    slicing = JvmSlicing(live.plan, mark) if engine == "jvm" else KernelSlicing(live.plan, mark)
    return ExecutorCutter(live, slicing, mark) if live.record.buckets else DriverCutter(live, slicing, mark)


# ------------------------------------------------------------------------------------------------------ rows to slices


class Slicing(Protocol):
    """Has Spark make slices of rows, in columns that all engines share."""

    def sliced(self, rows: DataFrame) -> AbstractContextManager[Cut]:
        """The slices, and what is counted on the way under ``READ``; inside the block they can be read once."""

    def map_side(self, cut: Cut) -> Plan | None:
        """The plan that tasks make slices by, if it can be run on other rows."""


@dataclass(frozen=True)
class JvmSlicing:
    """By Spark's own aggregation."""

    plan: model.Plan
    mark: str | None = None

    def sliced(self, rows: DataFrame) -> AbstractContextManager[Cut]:
        """The slices of all rows."""
        return slices(self.watched(rows), self.plan)

    def watched(self, rows: DataFrame) -> DataFrame:
        """Rows that could be read; all are counted on the way."""
        good = good_text(self.mark)
        instant = event_micros(rows, self.plan.event_time)
        counts = {"rows": "count(1)", "bad": "0L"}
        if self.mark is not None:
            instant = f"CASE WHEN {good} THEN {instant} END"
            counts = {"rows": f"count_if({good})", "bad": f"count_if(NOT ({good}))"}
        counts["without_time"] = f"{counts['rows']} - count({instant})"
        counts |= {"largest": f"max({instant})", "smallest": f"min({instant})"}
        watched = rows.observe(READ, *(F.expr(text).alias(name) for name, text in counts.items()))
        return watched if self.mark is None else watched.where(good).drop(self.mark)

    def map_side(self, cut: Cut) -> Plan | None:
        """What lies below the shuffle, where nothing above it is needed."""
        return None if cut.planned is None else first_shuffle(cut.planned).child()


@dataclass(frozen=True)
class KernelSlicing:
    """By compiled kernels, in the workers."""

    plan: model.Plan
    mark: str | None = None

    @contextmanager
    def sliced(self, rows: DataFrame) -> Iterator[Cut]:
        """The slices of all rows."""
        made = cut_in_workers(rows, self.plan, READ, self.mark)
        yield Cut(scanned(made), planned=made)

    def map_side(self, cut: Cut) -> Plan | None:
        """All of it."""
        assert cut.planned is not None
        return cut.planned._jdf.queryExecution().executedPlan()


class SparkCutter(ABC, Generic[Found]):
    """Has Spark make slices, by one plan for all batches if that is possible."""

    def __init__(self, live: LivePlan, slicing: Slicing, mark: str | None) -> None:
        self._live = live
        self._slicing = slicing
        self._mark = mark
        self._reused: ReusableCut[Found] | None = None

    def cut(self, rows: DataFrame, watermark: int | None) -> CutRows:
        """Have the rows cut."""
        found, counted = self._first(rows) if self._reused is None else self._reused.run(rows)
        counts = read_counts(counted)
        late = late_rows(self._live, rows, self._mark, counts.smallest, watermark)
        cut = CutRows(NewSlices(), counts.rows, counts.without_time, counts.largest, late, counts.bad)
        return cut if found is None else self._with(found, cut, watermark)

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
    def _with(self, found: Found, cut: CutRows, watermark: int | None) -> CutRows:
        """The outcome with the slices that were found."""

    def _first(self, rows: DataFrame) -> tuple[Found | None, Mapping[str, Any]]:
        """The same by a plan of its own, which is kept for the next batches if that is possible."""
        if not self._live.plan.groupings:
            reading = JvmSlicing(self._live.plan, self._mark).watched(scanned(rows)).agg(F.count(F.lit(1)))
            brought(reading)
            return None, observed_by(reading, READ)
        with self._slicing.sliced(scanned(rows)) as cut:
            packed = self._packed(cut.frame)
            found, counted = cut.counted(packed, lambda: self._run(packed), READ)
            map_side = self._slicing.map_side(cut)
            if map_side is not None:
                self._reused = ReusableCut.of(map_side, self._again(packed))
            return found, counted


class DriverCutter(SparkCutter[pa.Table]):
    """Brings the slices to the driver's process."""

    def _packed(self, cut: DataFrame) -> DataFrame:
        self._packing = packing_of(cut)
        return packed(cut, self._packing)

    def _run(self, packed: DataFrame) -> pa.Table:
        return brought(packed)

    def _again(self, packed: DataFrame) -> ReusableAction[pa.Table] | None:
        return ReusableFrame.of(packed)

    def _with(self, found: pa.Table, cut: CutRows, watermark: int | None) -> CutRows:
        return replace(cut, slices=NewSlices.of(self._live, self._packing.unpack(found), watermark))


class ExecutorCutter(SparkCutter[Scattered]):
    """Leaves the slices with the executors, each in its bucket."""

    def _packed(self, cut: DataFrame) -> DataFrame:
        self._packing = packing_of(cut)
        placed = cut.selectExpr("*", f"{bucket_text(self._live)} AS {BUCKET}")
        return packed(placed, self._packing).repartitionById(self._live.record.buckets, F.col(BUCKET))

    def _run(self, packed: DataFrame) -> Scattered:
        return Scattered.run(packed, self._arrival(packed))

    def _again(self, packed: DataFrame) -> ReusableAction[Scattered] | None:
        return ReusableShuffle.of(packed, self._arrival(packed))

    def _arrival(self, packed: DataFrame) -> PackedRows:
        return PackedRows(self._packing, arrow_schema(packed))

    def _with(self, found: Scattered, cut: CutRows, watermark: int | None) -> CutRows:
        return replace(cut, scattered=found)


class HereCutter:
    """Brings the rows to the driver's process, where compiled kernels cut them."""

    def __init__(self, live: LivePlan, mark: str | None) -> None:
        self._live = live
        self._mark = mark
        self._kernels = cutting.Cutter(live.plan)
        self._reused: ReusableFrame | None = None

    def cut(self, rows: DataFrame, watermark: int | None) -> CutRows:
        """Cut the rows of a batch."""
        live = self._live
        try:
            projected = self._projected(rows)
        except TooLargeError as error:
            LOG.info("this batch is cut in the workers: %s", error)
            return DriverCutter(live, KernelSlicing(live.plan, self._mark), self._mark).cut(rows, watermark)
        cut = cut_table(projected, self._kernels)
        made = NewSlices.of_kernels(live, cut.tables, watermark)
        counts = cut.counts
        late = late_rows(live, rows, self._mark, counts.smallest, watermark)
        return CutRows(made, counts.rows, counts.without_time, counts.largest, late, counts.bad)

    def _projected(self, rows: DataFrame) -> pa.Table:
        """What queries say of rows, by one plan for all batches if that is possible."""
        if self._reused is not None:
            return self._reused.collect(rdd_of(rows))
        frame = projected(scanned(rows), self._live.plan, self._mark)
        found = brought(frame)
        self._reused = ReusableFrame.of(frame)
        return found


# ----------------------------------------------------------------------------------------------------------- late rows


def good_text(mark: str | None) -> str:
    """Whether a row could be read."""
    return "true" if mark is None else f"{mark} IS NULL"


def late_rows(live: LivePlan, rows: DataFrame, mark: str | None, smallest: int | None, watermark: int | None) -> int:
    """How many rows no open window wants: they are looked for only where one is later than allowed."""
    if watermark is None or smallest is None or smallest >= min(watermark, open_for_all(live, watermark)):
        return 0
    micros = event_micros(rows, live.plan.event_time)
    return rows.where(good_text(mark)).where(late_text(live, micros, watermark)).count()


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
