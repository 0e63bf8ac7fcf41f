"""The first half of a step on a micro-batch: rows to slices in the JVM, brought to the driver with what was counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from weft.plan.model import Predicate
from weft.query.model import Window
from weft.spark.live.planning import LivePlan
from weft.spark.live.retained import open_since
from weft.spark.rows import event_micros, predicate_text, quoted, slices


@dataclass(frozen=True)
class Collected:
    """The slices of a micro-batch, and what was counted on the way."""

    slices: pa.Table | None
    rows: int
    without_time: int
    largest: int | None
    """The largest event time."""
    late: int
    """Rows that no open window wants."""


def collect(live: LivePlan, rows: DataFrame, watermark: int | None) -> Collected:
    """Aggregate the rows to slices, once, in the JVM."""
    event_time = live.plan.event_time
    micros = event_micros(rows, event_time)
    read = Observation()
    observed = rows.observe(
        read,
        F.count(F.lit(1)).alias("rows"),
        F.count(F.col(quoted(event_time))).alias("timed"),
        F.max(F.expr(micros)).alias("largest"),
        F.expr(f"count({late_text(live, micros, watermark)})").alias("late"),
    )
    found = None
    if live.plan.groupings:
        with slices(observed, live.plan) as cut:
            found = live.packing.unpack(live.packing.pack(cut).toArrow())
    else:
        observed.agg(F.count(F.lit(1))).collect()
    counted = read.get
    return Collected(
        found, counted["rows"], counted["rows"] - counted["timed"], counted["largest"], counted["late"]
    )


def late_text(live: LivePlan, micros: str, watermark: int | None) -> str:
    """An expression that is not NULL for rows that some query's WHERE lets through, but no open window wants."""
    if watermark is None or not live.plan.queries:
        return "CAST(NULL AS INT)"
    windows: dict[Predicate, dict[Window, int | None]] = {}
    for query in live.plan.queries:
        window, first = query.query.window, live.record.first.get(query.name)
        known = windows.setdefault(query.predicate, {})
        known[window] = first if window not in known or known[window] is not None else None
    wanted, open_ = [], []
    for predicate, some in windows.items():
        reaching = " OR ".join(_reaches(micros, window, first, watermark) for window, first in some.items())
        passes = "true" if predicate.everything else predicate_text(predicate)
        wanted.append(passes)
        open_.append(f"({passes} AND ({reaching}))")
    inner = f"{_any(wanted)} AND NOT ({_any(open_)})"
    return f"CASE WHEN {micros} < {watermark}L THEN CASE WHEN {inner} THEN 1 END END"


def _any(conditions: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(conditions))
    return "true" if "true" in distinct else "(" + " OR ".join(distinct) + ")"


def _reaches(micros: str, window: Window, first: int | None, watermark: int) -> str:
    """Whether a row lies in an open window."""
    since = open_since(window, first, watermark)
    text = f"{micros} >= {since}L"
    if window.range < window.slide:
        text += f" AND pmod({micros} - {window.start}L, {window.slide}L) < {window.range}L"
    return f"({text})"
