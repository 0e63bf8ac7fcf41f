"""Rows to slices by compiled kernels: Spark projects keys, arguments and predicates, kernels aggregate them.

The same slices as ``weft.spark.rows`` makes in the JVM, in the workers or, on rows that are brought there, in the
driver's process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType

from weft.plan.cut_engine import CutEngine
from weft.plan.layout import key_type, layouts
from weft.plan.model import BITS, Plan, batched, digest
from weft.query.model import Expression
from weft.spark.fetching import arrow_schema, arrow_type
from weft.spark.rows import (
    bits_text,
    event_micros,
    guarded_text,
    length_checked,
    length_text,
    predicate_text,
    values_asked,
)
from weft.spark.sending import sendable, sent
from weft.step.arriving import Bundles, filled, laid_out
from weft.step.bucketing import BUNDLE_TYPES, Buckets, bundled
from weft.step.cutting import BAD, TIME, WORD, Counts, Cut, Cutter, Cutting, unlifted
from weft.step.state import GROUPING

COUNT = "__weft_count_"
"""Columns of the one row a task in which it tells its counts."""
COUNTED = {"rows": "sum", "without_time": "sum", "bad": "sum", "smallest": "min", "largest": "max"}
"""How the counts of tasks become those of all."""


def engine_for(plan: Plan, rows: DataFrame, wished: CutEngine) -> CutEngine:
    """The engine that cuts rows for a plan: the one that is wished for, or the JVM where kernels cannot cut it all."""
    return "jvm" if not plan.groupings or (wished != "jvm" and left_to_jvm(plan, rows)) else wished


def left_to_jvm(plan: Plan, rows: DataFrame) -> dict[int, str]:
    """The groupings that kernels cannot cut, by number, and why."""
    collated = " collate " in rows.schema.simpleString()
    found = unlifted(plan)
    for number, grouping in enumerate(plan.groupings):
        for key in grouping.keys:
            # a bare string of a collation is refused when queries are bound
            if pa.types.is_nested(key_type(grouping, key)) and (collated or "collat" in key.sql.lower()):
                found.setdefault(
                    number, f"strings inside of {key.sql} may have a collation, by which only the JVM compares"
                )
    return found


@dataclass(frozen=True)
class Projection:
    """What Spark makes of rows for the kernels: event times, predicates, keys and arguments.

    Nothing is evaluated for rows without event time, nor for those that could not be read.
    """

    marks: RowMarks
    evaluated: tuple[tuple[str, str], ...]
    needed: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, rows: DataFrame, plan: Plan, mark: str | None = None) -> Projection:
        """The projection for a plan; rows where ``mark`` is not NULL could not be read."""
        evaluated, checked = _evaluated(plan)
        keys = {name for grouping in plan.groupings for name in grouping.key_columns}
        needed = {name: checked.get(name, name) for name in evaluated if name in keys}
        needed |= {name: checked.get(text, text) for name, text in Cutter(plan).inputs.items()}
        return cls(RowMarks.of(rows, plan, mark), tuple(evaluated.items()), tuple(needed.items()))

    def over(self, rows: DataFrame) -> DataFrame:
        """The rows, projected."""
        counted = self.marks.columns
        if self.marks.bad is not None:
            counted[BAD] = self.marks.bad
        evaluated = dict(self.evaluated)
        made = self.marks.over(rows).selectExpr(*(f"{text} AS {name}" for name, text in (counted | evaluated).items()))
        if dict(self.needed) == {name: name for name in evaluated}:
            return made
        # above what makes the values, so that none is made twice
        return made.selectExpr(*counted, *(f"{text} AS {name}" for name, text in self.needed))


def projected(rows: DataFrame, plan: Plan, mark: str | None = None) -> DataFrame:
    """Rows as kernels want them."""
    return Projection.of(rows, plan, mark).over(rows)


def glimpsed(rows: DataFrame, plan: Plan) -> DataFrame:
    """Event times and predicates of all rows, and a number for the keys of each grouping, equal where these are."""
    marks = RowMarks.of(rows, plan)
    evaluated, _ = _evaluated(plan)
    keys = {grouping.key_columns for grouping in plan.groupings}
    wanted = {name: evaluated[name] for columns in keys for name in columns}
    made = marks.over(rows).selectExpr(*marks.columns, *(f"{text} AS {name}" for name, text in wanted.items()))
    hashes = (f"xxhash64({', '.join(('0', *some))}) AS {glimpse(some)}" for some in keys)
    return made.selectExpr(*marks.columns, *hashes)


def glimpse(keys: Sequence[str]) -> str:
    """The column of :func:`glimpsed` for some keys."""
    return digest("h", *keys)


@dataclass(frozen=True)
class RowMarks:
    """Event times and predicates of rows, as Spark SQL."""

    instant: str
    words: tuple[tuple[str, str], ...]
    bad: str | None
    """Whether a record could not be read, where that may be."""

    @classmethod
    def of(cls, rows: DataFrame, plan: Plan, mark: str | None = None) -> RowMarks:
        """The marks that a plan looks for."""
        instant = event_micros(rows, plan.event_time)
        texts = (_word(map(predicate_text, word)) for word in batched(plan.predicates, BITS))
        words = tuple((f"{WORD}{number}", text) for number, text in enumerate(texts))
        if mark is None:
            return cls(instant, words, None)
        return cls(f"CASE WHEN {mark} IS NULL THEN {instant} END", words, f"{mark} IS NOT NULL")

    @property
    def columns(self) -> dict[str, str]:
        """The columns that hold event times and predicates."""
        return {name: name for name in (TIME, *dict(self.words))}

    def over(self, rows: DataFrame) -> DataFrame:
        """Rows with these columns."""
        timed = rows.selectExpr("*", f"{self.instant} AS {TIME}")
        return timed.selectExpr("*", *(f"{text} AS {name}" for name, text in self.words)) if self.words else timed


def _word(conditions: Iterable[str]) -> str:
    return f"CASE WHEN {TIME} IS NULL THEN 0L ELSE {bits_text(conditions)} END"


def _evaluated(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """Keys and arguments by the names of their columns, and those that are refused where they are too long."""
    evaluated: dict[str, str] = {}
    checked: dict[str, str] = {}
    for (name, expression), askers in values_asked(plan).items():
        evaluated[name] = _timely(expression, guarded_text(plan, expression, {asked.rows for asked in askers}))
        length = next((text for asked in askers if (text := length_text(name, asked.kept))), None)
        if length is not None:
            checked[name] = length_checked(name, length, plan.limits.value_bytes)
    return evaluated, checked


def _timely(expression: Expression, text: str) -> str:
    """The text, evaluated only for rows that have a time; a bare column cannot fail."""
    return text if expression.column is not None else f"CASE WHEN {TIME} IS NOT NULL THEN {text} END"


THREADS = 2
"""Blocks of rows that are cut at the same time where there is nobody else."""


def cut_table(rows: pa.Table, cutter: Cutter) -> Cut:
    """The slices of projected rows."""
    cutting = Cutting(cutter, threads=THREADS)
    found: dict[int, list[pa.Table]] = {}
    for number, slices in cutting.slices(rows.to_batches()):
        found.setdefault(number, []).append(slices)
    return Cut({number: pa.concat_tables(tables) for number, tables in found.items()}, cutting.counts)


def cut_in_workers(rows: DataFrame, plan: Plan, counts: str, mark: str | None = None) -> DataFrame:
    """The slices of all rows, made in the workers, in the columns of the JVM's aggregation; a slice may come twice.

    Parameters
    ----------
    counts
        The name under which Spark observes the fields of ``Counts``.
    """
    frame = projected(rows, plan, mark)
    schema, names, came = with_counts(sliced_schema(frame, plan)), slot_names(plan), arrow_schema(frame)
    columns, cutter = arrow_columns(schema), sendable(Cutter(plan))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cutting = Cutting(sent(cutter))
        for number, table in cutting.slices(typed(batches, came)):
            own = laid_out(number, table, names[number])
            yield from filled(own, len(table), columns).combine_chunks().to_batches()
        yield from filled(counts_row(cutting.counts), 1, columns).to_batches()

    return _observed(frame.mapInArrow(run, schema), counts)


def cut_into_buckets(rows: DataFrame, plan: Plan, buckets: int, counts: str) -> tuple[DataFrame, Bundles]:
    """The slices of all rows, made in the workers, as bundles: a record a task, bucket and grouping.

    Much faster than :func:`cut_in_workers` where slices are many, as Spark need not look at each.
    """
    frame = projected(rows, plan)
    places, came = Buckets(plan, buckets), arrow_schema(frame)
    schema = with_counts(StructType([StructField(item.name, from_arrow_type(item.type)) for item in BUNDLE_TYPES]))
    columns, cutter = arrow_columns(schema), sendable(Cutter(plan))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cutting = Cutting(sent(cutter))
        for number, table in cutting.slices(typed(batches, came)):
            bundles = bundled(places.bundles(number, table))
            yield from filled(dict(zip(bundles.column_names, bundles, strict=True)), len(bundles), columns).to_batches()
        yield from filled(counts_row(cutting.counts), 1, columns).to_batches()

    arrival = Bundles(arrow_columns(sliced_schema(frame, plan)), slot_names(plan))
    return _observed(frame.mapInArrow(run, schema), counts), arrival


def typed(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as they would come to the driver: to workers Spark sends instants in the session's time zone."""
    for batch in batches:
        yield from pa.Table.from_batches([batch]).cast(schema).to_batches()


def _observed(sliced: DataFrame, counts: str) -> DataFrame:
    """What tasks give, without the rows in which they tell their counts: these Spark observes."""
    observed = sliced.observe(
        counts, *(F.expr(f"{function}({COUNT}{name})").alias(name) for name, function in COUNTED.items())
    )
    return observed.where(f"{GROUPING} IS NOT NULL").drop(*(f"{COUNT}{name}" for name in COUNTED))


def slot_names(plan: Plan) -> list[dict[str, str]]:
    """By a grouping's number: columns of the JVM's aggregation, and what they are called within the grouping."""
    columns = layouts(plan)
    return [columns[number].names(number, grouping) for number, grouping in enumerate(plan.groupings)]


def sliced_schema(frame: DataFrame, plan: Plan) -> StructType:
    """The columns of slices: kernels tell by cutting no rows."""
    nothing = Cutter(plan).cut(arrow_schema(frame).empty_table())
    kinds: dict[str, DataType] = {GROUPING: IntegerType()}
    own = {item.name: item.dataType for item in frame.schema}
    for number, names in enumerate(slot_names(plan)):
        keys = plan.groupings[number].key_columns
        for slot, name in names.items():
            arrow = nothing.tables[number].schema.field(name).type
            kinds[slot] = own[name] if name in keys else from_arrow_type(arrow, prefer_timestamp_ntz=True)
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def with_counts(schema: StructType) -> StructType:
    """A schema with columns for counts."""
    return StructType([*schema.fields, *(StructField(f"{COUNT}{name}", LongType()) for name in COUNTED)])


def arrow_columns(schema: StructType) -> pa.Schema:
    """The same in Arrow's types."""
    return pa.schema([pa.field(item.name, arrow_type(item.dataType)) for item in schema])


def counts_row(counts: Counts) -> dict[str, pa.Array]:
    """Counts as columns of one row."""
    return {f"{COUNT}{item.name}": pa.array([getattr(counts, item.name)], pa.int64()) for item in fields(counts)}


def read_counts(observed: Mapping[str, Any]) -> Counts:
    """What Spark observed; nothing where there was no task."""
    extremes = {name: observed[name] for name in ("smallest", "largest")}
    return Counts(**{name: observed[name] or 0 for name in ("rows", "without_time", "bad")}, **extremes)
