"""Rows to slices, in the JVM only: plain column expressions and one aggregation for all groupings."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType

from weft.algebra.aggregates import ROWS as ROW_COUNT
from weft.plan.model import Grouping, Partial, Plan, Predicate, batched, digest
from weft.query.model import Expression
from weft.slicing.progression import Progression
from weft.spark.finals import GROUPING

TIME = "__weft_time"
"""Event time in microseconds since the epoch."""
MOST_GROUPING_COLUMNS = 64
"""Spark's grouping id is a 64-bit number."""


def slices(rows: DataFrame, plan: Plan) -> DataFrame:
    """One row a grouping, slice, key and shard, with every partial that some query asks for."""
    return _aggregate(prepare(rows, plan), plan)


def prepare(rows: DataFrame, plan: Plan) -> DataFrame:
    """Rows with nothing but what the aggregation needs: keys, slices, signatures and arguments."""
    return _arguments(_predicates(_timed(rows, plan.event_time), plan), plan)


def _timed(rows: DataFrame, event_time: str) -> DataFrame:
    column = rows[_quoted(event_time)]
    return rows.where(column.isNotNull()).withColumn(TIME, event_micros(rows, event_time))


def event_micros(rows: DataFrame, event_time: str) -> Column:
    """Event time as integer microseconds; a time without zone counts from 1970-01-01 on its own clock."""
    column = F.col(_quoted(event_time))
    if not isinstance(rows.schema[event_time].dataType, TimestampNTZType):
        return F.unix_micros(column)
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone")
    if zone in {"UTC", "Etc/UTC", "Z", "GMT", "+00:00"}:
        return F.unix_micros(column.cast("timestamp"))
    # the cast above would go through the session's zone, where some local times do not exist and some exist twice
    days = F.unix_date(column.cast("date")).cast("bigint")
    seconds = F.hour(column) * F.lit(3600) + F.minute(column) * F.lit(60)
    fraction = (F.expr(f"extract(SECOND FROM {_quoted(event_time)})") * F.lit(1_000_000)).cast("bigint")
    return (days * F.lit(86_400) + seconds) * F.lit(1_000_000) + fraction


def _predicates(rows: DataFrame, plan: Plan) -> DataFrame:
    """A boolean column a predicate; rows that nobody wants are dropped."""
    if not plan.predicates:
        return rows
    marked = rows.select("*", *(predicate_column(predicate) for predicate in plan.predicates))
    if any(grouping.wants_everything for grouping in plan.groupings):
        return marked
    return marked.where(_any(predicate for predicate in plan.predicates if predicate.filter is None))


def predicate_column(predicate: Predicate) -> Column:
    """Whether a row satisfies it: never NULL, and the FILTER is looked at only where the WHERE holds."""
    where = F.lit(True) if predicate.where is None else F.expr(f"({predicate.where.sql})")
    if predicate.filter is not None:
        where = F.when(where, F.expr(f"({predicate.filter.sql})"))
    return F.coalesce(where, F.lit(False)).alias(predicate.name)


def _any(predicates: Iterable[Predicate]) -> Column:
    condition = F.lit(False)
    for predicate in sorted(set(predicates), key=lambda predicate: predicate.name):
        condition = condition | F.col(predicate.name)
    return condition


def _arguments(rows: DataFrame, plan: Plan) -> DataFrame:
    """Keys, slices, signatures and aggregates' arguments, and nothing else."""
    columns: dict[str, Column] = {}
    for grouping in plan.groupings:
        for key, name in zip(grouping.keys, grouping.key_columns, strict=True):
            columns[name] = _guarded(key, _askers_of_key(plan, key)).alias(name)
        columns[grouping.slice_column] = slice_start(F.col(TIME), grouping.progressions).alias(grouping.slice_column)
        for name, word in grouping.signatures:
            columns[name] = _signature(word).alias(name)
    for argument, askers in _askers_of_arguments(plan).items():
        name = argument_column(argument)
        columns[name] = _guarded(argument, askers).alias(name)
    kept = [predicate.name for predicate in plan.predicates if _is_conditional(plan, predicate)]
    return rows.select(*columns.values(), *kept)


def _is_conditional(plan: Plan, predicate: Predicate) -> bool:
    return any(grouping.conditional and predicate in grouping.predicates for grouping in plan.groupings)


def _askers_of_key(plan: Plan, key: Expression) -> set[Predicate]:
    return {query.predicate for query in plan.queries if key in query.query.keys}


def _askers_of_arguments(plan: Plan) -> dict[Expression, set[Predicate]]:
    askers: dict[Expression, set[Predicate]] = {}
    for query in plan.queries:
        for call in query.calls:
            for argument in call.call.arguments:
                askers.setdefault(argument, set()).add(query.predicate_of(call))
    return askers


def _guarded(expression: Expression, askers: set[Predicate]) -> Column:
    """The expression, evaluated only for rows that some asker lets through: others could raise errors for nobody."""
    value = F.expr(f"({expression.sql})")
    if expression.column is not None or any(asker.everything for asker in askers):
        return value
    return F.when(_any(askers), value)


def argument_column(argument: Expression) -> str:
    """The column of an aggregate's argument."""
    return digest("a", argument.canonical)


def slice_start(time: Column, progressions: Iterable[Progression]) -> Column:
    """The last edge at or before ``time``, as one native expression."""
    edges = [time - F.pmod(time - F.lit(edge.offset), F.lit(edge.step)) for edge in progressions]
    return edges[0] if len(edges) == 1 else F.greatest(*edges)


def _signature(word: tuple[Predicate, ...]) -> Column:
    bits = [F.when(F.col(predicate.name), F.lit(1 << bit)).otherwise(F.lit(0)) for bit, predicate in enumerate(word)]
    signature = bits[0].cast("bigint")
    for bit in bits[1:]:
        signature = signature.bitwiseOR(bit.cast("bigint"))
    return signature


def _aggregate(rows: DataFrame, plan: Plan) -> DataFrame:
    """One aggregation for all groupings, each a grouping set, so that the source is read once."""
    aggregates = partial_columns(plan)
    numbered = list(enumerate(plan.groupings))
    if len(numbered) == 1:
        return rows.groupBy(*grouping_columns(plan.groupings[0])).agg(*aggregates).withColumn(GROUPING, F.lit(0))
    names = {name for grouping in plan.groupings for name in grouping_columns(grouping)}
    if len(names) <= MOST_GROUPING_COLUMNS:
        return _grouping_sets(rows, {number: grouping_columns(grouping) for number, grouping in numbered}, aggregates)
    parts = [_packed_sets(rows, dict(part), aggregates) for part in batched(numbered, MOST_GROUPING_COLUMNS)]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)


def _grouping_sets(rows: DataFrame, sets: dict[int, list[str]], aggregates: list[Column]) -> DataFrame:
    columns = list(dict.fromkeys(name for names in sets.values() for name in names))
    grouped = rows.groupingSets([[F.col(name) for name in names] for names in sets.values()], *map(F.col, columns))
    number = F.create_map(
        *(F.lit(part) for number, names in sets.items() for part in (grouping_id(columns, names), number))
    )
    sliced = grouped.agg(F.expr("grouping_id()").alias(GROUPING), *aggregates)
    return sliced.withColumn(GROUPING, number[F.col(GROUPING)])


def _packed_sets(rows: DataFrame, groupings: dict[int, Grouping], aggregates: list[Column]) -> DataFrame:
    """Grouping sets over more columns than Spark has bits for: each set's columns packed into one struct."""
    packs = {number: f"__weft_pack_{number}" for number in groupings}
    structs = [F.struct(*grouping_columns(groupings[number])).alias(name) for number, name in packs.items()]
    sliced = _grouping_sets(rows.select("*", *structs), {n: [name] for n, name in packs.items()}, aggregates)
    unpacked: dict[str, list[Column]] = {}
    for number, name in packs.items():
        for column in grouping_columns(groupings[number]):
            unpacked.setdefault(column, []).append(F.col(name)[column])
    columns = [F.coalesce(*parts).alias(name) for name, parts in unpacked.items()]
    return sliced.select("*", *columns).drop(*packs.values())


def grouping_columns(grouping: Grouping) -> list[str]:
    """What rows of one grouping are grouped by."""
    return [grouping.slice_column, *(name for name, _ in grouping.signatures), *grouping.key_columns]


def grouping_id(columns: list[str], present: list[str]) -> int:
    """What Spark's ``grouping_id()`` is for a grouping set: a bit a column, set where the column is left out.

    Examples
    --------
    >>> grouping_id(["a", "b", "c"], ["a", "c"])
    2
    """
    bits = 0
    for name in columns:
        bits = bits << 1 | (name not in present)
    return bits


def partial_columns(plan: Plan) -> list[Column]:
    """Every distinct partial as a Spark aggregate, and what conditional groupings need beside them."""
    columns: dict[str, Column] = {}
    for grouping in plan.groupings:
        for query in grouping.queries:
            conditional = grouping.conditional and not query.predicate.everything
            if conditional:
                columns[query.predicate.name] = F.count_if(query.predicate.name).alias(query.predicate.name)
            for call in query.calls:
                predicate = query.predicate_of(call)
                condition = predicate if grouping.conditional and not predicate.everything else None
                for partial in call.partials:
                    _add_partial(columns, partial, condition)
    return list(columns.values()) or [F.count(F.lit(1)).alias(Partial(ROW_COUNT, ()).columns()[0])]


def _add_partial(columns: dict[str, Column], partial: Partial, condition: Predicate | None) -> None:
    arguments = [argument_column(argument) for argument in partial.arguments]
    for name, template in zip(partial.columns(condition), partial.measure.columns, strict=True):
        text = template.format(*arguments) + (f" FILTER (WHERE {condition.name})" if condition else "")
        columns.setdefault(name, F.expr(text).alias(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
