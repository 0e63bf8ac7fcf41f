"""Rows to slices, in the JVM only: plain column expressions and one aggregation for all groupings.

Expressions are put together as text: a call into the JVM for every part of every expression took longer than the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType

from weft.plan.asking import AskedValue, argument_column, asked_by
from weft.plan.layout import SLICE, Slot, Use, layout
from weft.plan.model import BITS, Plan, Predicate, batched, key_column
from weft.query.model import Expression
from weft.query.names import quoted
from weft.query.sizes import ELEMENT
from weft.slicing.progression import Progression
from weft.spark.fetching import brought, observed_by
from weft.spark.unmerged import unmerged
from weft.step.cutting import TIME, WORD
from weft.step.state import GROUPING

WANTED = "__weft_wanted_"
"""Columns that tell whether any query of a grouping wants a row."""
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Cut:
    """One row a grouping, slice, key and shard, with every partial that some query asks for."""

    frame: DataFrame
    """A slice may come twice if ``planned`` is there."""
    planned: DataFrame | None = None
    """The frame that Spark planned, where only the map part of it is run."""
    shared: DataFrame | None = None
    """The rows that several aggregations share, where there is more than one."""

    def counted(self, frame: DataFrame, run: Callable[[], Made], name: str) -> tuple[Made, dict[str, Any]]:
        """Have ``run`` make the slices by ``frame``; what comes out, and what was observed under ``name`` on the way.

        Of stages that share the reading of rows, Spark tells only what the last one read itself: there, all are read
        before.
        """
        if self.shared is None:
            made = run()
            return made, observed_by(frame if self.planned is None else self.planned, name)
        reading = self.shared.agg(F.count(F.lit(1)))
        brought(reading)
        counts = observed_by(reading, name)
        return run(), counts


@contextmanager
def slices(rows: DataFrame, plan: Plan) -> Iterator[Cut]:
    """The slices of all rows; inside the block they can be read once."""
    prepared = prepare(rows, plan)
    hashed = [number for number, grouping in enumerate(plan.groupings) if grouping.hashed]
    sorted_ = [number for number, grouping in enumerate(plan.groupings) if not grouping.hashed]
    if not (hashed and sorted_):
        merged, templates = _aggregate(prepared, plan, hashed or sorted_)
        made = unmerged(merged, templates) if plan.ordered else None
        yield Cut(merged) if made is None else Cut(made, planned=merged)
        return
    # two aggregations, yet the source is read once
    prepared = prepared.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        parts = [_aggregate(prepared, plan, numbers)[0] for numbers in (hashed, sorted_)]
        yield Cut(parts[0].unionByName(parts[1], allowMissingColumns=True), shared=prepared)
    finally:
        prepared.unpersist()


def prepare(rows: DataFrame, plan: Plan) -> DataFrame:
    """Rows with nothing but what the aggregation needs: keys, slices, signatures and arguments."""
    return _arguments(_predicates(_timed(rows, plan.event_time), plan), plan)


def _timed(rows: DataFrame, event_time: str) -> DataFrame:
    timed = rows.where(f"{quoted(event_time)} IS NOT NULL")
    return timed.selectExpr("*", f"{event_micros(rows, event_time)} AS {TIME}")


def event_micros(rows: DataFrame, event_time: str) -> str:
    """Event time as integer microseconds; a time without zone counts from 1970-01-01 on its own clock."""
    column = quoted(event_time)
    if not isinstance(rows.schema[event_time].dataType, TimestampNTZType):
        return f"unix_micros({column})"
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone")
    if zone in {"UTC", "Etc/UTC", "Z", "GMT", "+00:00"}:
        return f"unix_micros(CAST({column} AS TIMESTAMP))"
    # the cast above would go through the session's zone, where some local times do not exist and some exist twice
    seconds = f"unix_date(CAST({column} AS DATE)) * 86400L + hour({column}) * 3600 + minute({column}) * 60"
    return f"(({seconds}) * 1000000L + CAST(extract(SECOND FROM {column}) * 1000000 AS BIGINT))"


def _predicates(rows: DataFrame, plan: Plan) -> DataFrame:
    """Every predicate once, as a bit of a number: used often and written out, they make code too large to compile.

    Rows that nobody wants are dropped.
    """
    if not plan.predicates:
        return rows
    words = enumerate(batched(plan.predicates, BITS))
    marked = rows.selectExpr("*", *(f"{bits_text(map(predicate_text, word))} AS {WORD}{n}" for n, word in words))
    if any(grouping.wants_everything for grouping in plan.groupings):
        return marked
    return marked.where(_any(plan, (predicate for predicate in plan.predicates if predicate.filter is None)))


def predicate_text(predicate: Predicate) -> str:
    """Whether a row satisfies it: never NULL, and the FILTER is looked at only where the WHERE holds."""
    where = "true" if predicate.where is None else _own(predicate.where)
    if predicate.filter is not None:
        where = f"CASE WHEN {where} THEN {_own(predicate.filter)} END"
    return f"coalesce({where}, false)"


def _own(expression: Expression) -> str:
    """The user's own text as a part of a larger one; a comment at its end ends with the line."""
    return f"({expression.sql}\n)"


def bits_text(conditions: Iterable[str]) -> str:
    """Conditions as the bits of one BIGINT, from the lowest."""
    return "(" + " | ".join(f"if({test}, {1 << bit}L, 0L)" for bit, test in enumerate(conditions)) + ")"


def _masks(plan: Plan, predicates: Iterable[Predicate]) -> dict[int, int]:
    """The bits of some predicates, word by word."""
    masks: dict[int, int] = {}
    for predicate in predicates:
        word, bit = divmod(plan.predicates.index(predicate), BITS)
        masks[word] = masks.get(word, 0) | 1 << bit
    return masks


def _any(plan: Plan, predicates: Iterable[Predicate]) -> str:
    """Whether a row satisfies any of the predicates."""
    masks = sorted(_masks(plan, predicates).items())
    return "(" + " OR ".join(f"({WORD}{word} & {mask}L) != 0L" for word, mask in masks) + ")"


def _signature(plan: Plan, predicates: Sequence[Predicate]) -> str:
    """The predicates' bits, close together: bits that move equally far move at once."""
    moves: dict[tuple[int, int], int] = {}
    for to, predicate in enumerate(predicates):
        word, bit = divmod(plan.predicates.index(predicate), BITS)
        moves[word, bit - to] = moves.get((word, bit - to), 0) | 1 << bit
    parts = []
    for (word, distance), mask in moves.items():
        masked = f"({WORD}{word} & {mask}L)"
        move = "shiftrightunsigned" if distance > 0 else "shiftleft"
        parts.append(f"{move}({masked}, {abs(distance)})" if distance else masked)
    return "(" + " | ".join(parts) + ")"


def _arguments(rows: DataFrame, plan: Plan) -> DataFrame:
    """Keys, slices, signatures and aggregates' arguments, and nothing else."""
    columns: dict[str, str] = {}
    checked: dict[str, str] = {}
    for (name, expression), askers in values_asked(plan).items():
        columns[name] = guarded_text(plan, expression, {asked.rows for asked in askers})
        length = next((text for asked in askers if (text := length_text(name, asked.kept))), None)
        if length is not None:
            checked[name] = length_checked(name, length, plan.limits.value_bytes)
    for grouping in plan.groupings:
        columns[grouping.slice_column] = slice_start(TIME, grouping.progressions)
        for name, word in grouping.signatures:
            columns[name] = _signature(plan, word)
    conditional = {p for grouping in plan.groupings if grouping.conditional for p in grouping.predicates}
    for predicate in plan.predicates:
        if predicate in conditional:
            columns[predicate.name] = _any(plan, [predicate])
    for number, grouping in enumerate(plan.groupings):
        if not grouping.wants_everything:
            columns[f"{WANTED}{number}"] = _any(plan, {query.predicate for query in grouping.queries})
    made = rows.selectExpr(*(f"{text} AS {name}" for name, text in columns.items()))
    # above what makes the values, so that none is made twice
    return made.selectExpr(*(f"{checked.get(name, name)} AS {name}" for name in columns)) if checked else made


def values_asked(plan: Plan) -> dict[tuple[str, Expression], list[AskedValue]]:
    """Every key and argument, and who wants it for which rows."""
    askers: dict[tuple[str, Expression], list[AskedValue]] = {}
    for query in plan.queries:
        for asked in asked_by(query):
            askers.setdefault((asked.column, asked.expression), []).append(asked)
    return askers


def length_text(name: str, kind: pa.DataType | None) -> str | None:
    """How many bytes a value has, as Spark SQL; None for types whose values are all alike."""
    if kind is None:
        return None
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return f"octet_length({name})"
    return f"{ELEMENT} * size({name})" if pa.types.is_list(kind) or pa.types.is_map(kind) else None


def length_checked(name: str, length: str, most: int) -> str:
    """The value, or an error where it is longer than any may be."""
    said = f"'a value of ', format_number({length}, 0), ' bytes would be kept, and may have {most:,}: "
    said += "a larger limit is set by limits.value_bytes'"
    return f"CASE WHEN {length} > {most} THEN raise_error(concat({said})) ELSE {name} END"


def guarded_text(plan: Plan, expression: Expression, askers: set[Predicate]) -> str:
    """The expression, evaluated only for rows that some asker lets through: others could raise errors for nobody."""
    if any(asker.everything for asker in askers):
        return _own(expression)
    return f"CASE WHEN {_any(plan, askers)} THEN {_own(expression)} END"


def slice_start(time: str, progressions: Iterable[Progression]) -> str:
    """The last edge at or before ``time``, as one native expression: divisions cost most, so one a step.

    Examples
    --------
    >>> slice_start("t", [Progression(step=10)])
    't - pmod(t, 10L)'
    >>> slice_start("t", [Progression(step=10), Progression(step=10, offset=3), Progression(step=7)])
    't - least(CASE WHEN pmod(t, 10L) >= 3L THEN pmod(t, 10L) - 3L ELSE pmod(t, 10L) END, pmod(t, 7L))'
    """
    offsets: dict[int, list[int]] = {}
    for edge in progressions:
        offsets.setdefault(edge.step, []).append(edge.offset)
    ages = [_age(f"pmod({time}, {step}L)", step, some) for step, some in offsets.items()]
    return f"{time} - " + (ages[0] if len(ages) == 1 else f"least({', '.join(ages)})")


def _age(since: str, step: int, offsets: Iterable[int]) -> str:
    """How long ago the last edge of some progressions of one step was, ``since`` the last multiple of it.

    Examples
    --------
    >>> _age("r", 10, [3])
    'CASE WHEN r >= 3L THEN r - 3L ELSE r + 7L END'
    """
    first, *others = sorted(offsets, reverse=True)
    choices = [f"WHEN {since} >= {offset}L THEN {since} - {offset}L" for offset in (first, *others) if offset]
    if not choices:
        return since
    before = since if 0 in others else f"{since} + {step - first}L"
    return f"CASE {' '.join(choices)} ELSE {before} END"


def _aggregate(rows: DataFrame, plan: Plan, numbers: Sequence[int]) -> tuple[DataFrame, list[str]]:
    """One aggregation for several groupings, each a copy of the rows that it wants; and the aggregates as text."""
    columns = layout(plan, numbers)
    copies = f"explode(array({', '.join(map(str, numbers))}))" if len(numbers) > 1 else str(numbers[0])
    copied = rows.selectExpr("*", f"{copies} AS {GROUPING}")
    wanted = {n: f"{WANTED}{n}" for n in numbers if not plan.groupings[n].wants_everything}
    if wanted:
        copied = copied.where(f"coalesce({by_grouping(wanted, numbers)}, true)")
    keys = {SLICE: by_grouping({n: plan.groupings[n].slice_column for n in numbers}, numbers)}
    for name, signatures in columns.signatures.items():
        keys[name] = by_grouping(signatures, numbers)
    for name, used in columns.keys.items():
        keys[name] = by_grouping({n: key_column(key) for n, key in used.items()}, numbers)
    arguments: dict[str, str] = {}
    aggregates = [_aggregate_of(slot, arguments, numbers) for slot in columns.slots] or ["count(1) AS rows"]
    named = [f"{text} AS {name}" for name, text in (keys | arguments).items()]
    grouped = copied.selectExpr(GROUPING, *named).groupBy(GROUPING, *keys)
    return grouped.agg(*map(F.expr, aggregates)), aggregates


def by_grouping(columns: dict[int, str], numbers: Sequence[int]) -> str:
    """A column that depends on which grouping a copy of a row is for; NULL for groupings that do not use it.

    Examples
    --------
    >>> by_grouping({0: "a", 1: "b"}, [0, 1])
    'CASE grouping WHEN 0 THEN a WHEN 1 THEN b END'
    >>> by_grouping({0: "a", 1: "a"}, [0, 1])
    'a'
    """
    distinct = set(columns.values())
    if len(distinct) == 1 and (len(columns) == len(numbers) or len(numbers) == 1):
        return distinct.pop()
    choices = " ".join(f"WHEN {number} THEN {column}" for number, column in columns.items())
    return f"CASE {GROUPING} {choices} END"


def _aggregate_of(slot: Slot, arguments: dict[str, str], numbers: Sequence[int]) -> str:
    """The slot as a Spark aggregate; what its arguments are for each grouping is added to ``arguments``."""
    width = max(len(use.arguments) for use in slot.uses.values())
    conditional = any(use.condition for use in slot.uses.values())
    names = [f"{slot.name}_{position}" for position in range(max(width, conditional))]
    for position, name in enumerate(names):
        values = {number: _argument(use, position) for number, use in slot.uses.items()}
        arguments[name] = by_grouping(values, numbers)
    template = "count({0})" if names and not width else slot.template
    return f"{template.format(*names)} AS {slot.name}"


def _argument(use: Use, position: int) -> str:
    """One argument; NULL, which every aggregate ignores, where the condition of a conditional partial fails."""
    value = argument_column(use.arguments[position], use.summed) if use.arguments else "1"
    return value if use.condition is None else f"CASE WHEN {use.condition.name} THEN {value} END"
