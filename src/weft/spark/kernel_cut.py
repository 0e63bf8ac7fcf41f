"""Rows to slices by compiled kernels: Spark projects keys, arguments and predicates, kernels aggregate them.

The same slices as ``weft.spark.rows`` makes in the JVM, and in the same columns, so that nobody downstream sees which
engine made them; in the workers, or in the driver's process on rows that are brought there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType

from weft.plan.layout import key_type, layouts
from weft.plan.model import BITS, Plan, batched
from weft.query.model import Expression
from weft.spark.fetching import arrow_schema, arrow_type, brought
from weft.spark.rows import (
    _askers,
    _bits,
    _guarded,
    _not_longer,
    event_micros,
    length_text,
    predicate_text,
)
from weft.step.bucketing import BUNDLE, BUNDLE_TYPES, Buckets, bundled
from weft.step.cutting import BAD, TIME, WORD, Counts, Cut, Cutter, Cutting, unlifted
from weft.step.state import GROUPING

COUNT = "__weft_count_"
"""Columns of the one row a task in which it tells its counts."""
COUNTED = {"rows": "sum", "without_time": "sum", "bad": "sum", "smallest": "min", "largest": "max"}
"""How the counts of tasks become those of all."""


@dataclass(frozen=True)
class KernelPlan:
    """What kernels cut of a plan: some of its groupings, as a plan of their own.

    Examples
    --------
    ``KernelPlan.of(plan, rows)``, then one of :func:`cut_here`, :func:`cut_in_workers` and :func:`cut_into_buckets`;
    the groupings of :func:`left_to_jvm` are not among those.
    """

    whole: Plan
    numbers: tuple[int, ...]
    """The groupings' numbers in the whole plan."""

    @classmethod
    def of(cls, plan: Plan, rows: DataFrame) -> KernelPlan:
        """All groupings that kernels can cut."""
        left = left_to_jvm(plan, rows)
        return cls(plan, tuple(number for number in range(len(plan.groupings)) if number not in left))

    @property
    def plan(self) -> Plan:
        """Only the groupings that kernels cut, with their queries and predicates."""
        groupings = tuple(self.whole.groupings[number] for number in self.numbers)
        return replace(self.whole, groupings=groupings, queries=tuple(q for some in groupings for q in some.queries))

    def names(self) -> dict[int, dict[str, str]]:
        """By a grouping's number: columns of the JVM's aggregation, and what they are called within the grouping."""
        columns = layouts(self.whole)
        return {number: columns[number].names(number, self.whole.groupings[number]) for number in self.numbers}


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


def projected(rows: DataFrame, plan: Plan, mark: str | None = None) -> DataFrame:
    """Event times, predicates, keys and arguments of all rows, for the kernels.

    Nothing is evaluated for rows without event time, nor for those where ``mark`` is not NULL: they could not be read.
    """
    instant = event_micros(rows, plan.event_time)
    instant = instant if mark is None else f"CASE WHEN {mark} IS NULL THEN {instant} END"
    timed = rows.selectExpr("*", f"{instant} AS {TIME}")
    words = {f"{WORD}{n}": _word(map(predicate_text, word)) for n, word in enumerate(batched(plan.predicates, BITS))}
    worded = timed.selectExpr("*", *(f"{text} AS {name}" for name, text in words.items())) if words else timed
    counted = {TIME: TIME, **{name: name for name in words}}
    if mark is not None:
        counted[BAD] = f"{mark} IS NOT NULL"
    evaluated, checked = _evaluated(plan)
    keys = {name for grouping in plan.groupings for name in grouping.key_columns}
    needed = {name: checked.get(name, name) for name in evaluated if name in keys}
    needed |= {name: checked.get(text, text) for name, text in Cutter(plan).inputs.items()}
    made = worded.selectExpr(*(f"{text} AS {name}" for name, text in (counted | evaluated).items()))
    if needed == {name: name for name in evaluated}:
        return made
    # above what makes the values, so that none is made twice
    return made.selectExpr(*counted, *(f"{text} AS {name}" for name, text in needed.items()))


def _word(conditions: Iterable[str]) -> str:
    return f"CASE WHEN {TIME} IS NULL THEN 0L ELSE {_bits(conditions)} END"


def _evaluated(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """Keys and arguments by the names of their columns, and those that are refused where they are too long."""
    evaluated: dict[str, str] = {}
    checked: dict[str, str] = {}
    for (name, expression), askers in _askers(plan).items():
        evaluated[name] = _timely(expression, _guarded(plan, expression, {asked.rows for asked in askers}))
        length = next((text for asked in askers if (text := length_text(name, asked.kept))), None)
        if length is not None:
            checked[name] = _not_longer(name, length, plan.limits.value_bytes)
    return evaluated, checked


def _timely(expression: Expression, text: str) -> str:
    """The text, evaluated only for rows that have a time; a bare column cannot fail."""
    return text if expression.column is not None else f"CASE WHEN {TIME} IS NOT NULL THEN {text} END"


def cut_here(rows: DataFrame, kernel: KernelPlan, mark: str | None = None) -> Cut:
    """The slices of all rows, which are brought to this process; tables by the numbers of the whole plan."""
    table = brought(projected(rows, kernel.plan, mark))
    cutting = Cutting(Cutter(kernel.plan))
    found: dict[int, list[pa.Table]] = {}
    for number, slices in cutting.slices(table.to_batches()):
        found.setdefault(kernel.numbers[number], []).append(slices)
    return Cut({number: pa.concat_tables(tables) for number, tables in found.items()}, cutting.counts)


def cut_in_workers(rows: DataFrame, kernel: KernelPlan, counts: str, mark: str | None = None) -> DataFrame:
    """The slices of all rows, made in the workers, in the columns of the JVM's aggregation; a slice may come twice.

    Parameters
    ----------
    counts
        The name under which Spark observes the fields of ``Counts``.
    """
    frame = projected(rows, kernel.plan, mark)
    schema = sliced_schema(frame, kernel)
    sliced = frame.mapInArrow(cutting_task(kernel, arrow_schema(frame), sliced_types(schema)), schema)
    return _counted(sliced, counts)


def cut_into_buckets(
    rows: DataFrame, kernel: KernelPlan, buckets: int, counts: str, mark: str | None = None
) -> DataFrame:
    """The slices of all rows, made in the workers, as bundles: a record a task, bucket and grouping.

    Much faster than :func:`cut_in_workers` where slices are many, as Spark need not look at each.
    """
    frame = projected(rows, kernel.plan, mark)
    places, came = Buckets(kernel.whole, buckets), arrow_schema(frame)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cutting = Cutting(Cutter(kernel.plan))
        for place, table in cutting.slices(typed(batches, came)):
            yield with_counts(bundled(places.bundles(kernel.numbers[place], table)), {})
        told = counts_row(cutting.counts)
        yield with_counts(pa.RecordBatch.from_pylist([{}], BUNDLE_TYPES), told)

    schema = f"{BUNDLE}, " + ", ".join(f"{COUNT}{name} bigint" for name in COUNTED)
    return _counted(frame.mapInArrow(run, schema), counts)


def typed(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as they would come to the driver: to workers Spark sends instants in the session's time zone."""
    for batch in batches:
        yield from pa.Table.from_batches([batch]).cast(schema).to_batches()


def with_counts(batch: pa.RecordBatch, counts: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """A record with columns for counts."""
    for name in COUNTED:
        batch = batch.append_column(f"{COUNT}{name}", counts.get(f"{COUNT}{name}", pa.nulls(len(batch), pa.int64())))
    return batch


def _counted(sliced: DataFrame, counts: str) -> DataFrame:
    """What tasks give, without the rows in which they tell their counts: these Spark observes."""
    observed = sliced.observe(
        counts, *(F.expr(f"{function}({COUNT}{name})").alias(name) for name, function in COUNTED.items())
    )
    return observed.where(f"{GROUPING} IS NOT NULL").drop(*(f"{COUNT}{name}" for name in COUNTED))


def sliced_schema(frame: DataFrame, kernel: KernelPlan) -> StructType:
    """The columns of slices, and those of counts: kernels tell by cutting no rows."""
    nothing = Cutter(kernel.plan).cut(arrow_schema(frame).empty_table())
    kinds: dict[str, DataType] = {GROUPING: IntegerType()}
    own = {item.name: item.dataType for item in frame.schema}
    for table, (number, names) in zip(nothing.tables.values(), kernel.names().items(), strict=True):
        keys = kernel.whole.groupings[number].key_columns
        for slot, name in names.items():
            arrow = table.schema.field(name).type
            kinds[slot] = own[name] if name in keys else from_arrow_type(arrow, prefer_timestamp_ntz=True)
    kinds |= {f"{COUNT}{name}": LongType() for name in COUNTED}
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def sliced_types(schema: StructType) -> pa.Schema:
    """The same in Arrow's types."""
    return pa.schema([pa.field(item.name, arrow_type(item.dataType)) for item in schema])


def cutting_task(
    kernel: KernelPlan, came: pa.Schema, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Spark task does with projected rows."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cutting, names = Cutting(Cutter(kernel.plan)), kernel.names()
        for place, table in cutting.slices(typed(batches, came)):
            number = kernel.numbers[place]
            own = {slot: table.column(name) for slot, name in names[number].items()}
            own[GROUPING] = pa.repeat(pa.scalar(number, pa.int32()), len(table))
            yield from laid_out(own, len(table), schema)
        yield from laid_out(counts_row(cutting.counts), 1, schema)

    return run


def counts_row(counts: Counts) -> dict[str, pa.Array]:
    """Counts as columns of one row."""
    return {f"{COUNT}{item.name}": pa.array([getattr(counts, item.name)], pa.int64()) for item in fields(counts)}


def laid_out(columns: Mapping[str, pa.Array | pa.ChunkedArray], length: int, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Columns under a schema, NULL where they have none."""
    arrays = [columns[item.name] if item.name in columns else pa.nulls(length, item.type) for item in schema]
    table = pa.Table.from_arrays(arrays, schema.names).cast(schema)
    return list(table.combine_chunks().to_batches())
