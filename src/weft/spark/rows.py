"""Rows to slices, in the JVM only: plain column expressions and one aggregation for all groupings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType

from weft.plan.layout import SLICE, Slot, Use, layout, may_overflow
from weft.plan.model import BITS, Plan, Predicate, batched, digest, key_column
from weft.query.model import Expression
from weft.slicing.progression import Progression
from weft.spark.finals import GROUPING

WORD = "__weft_word_"
"""Columns that hold all predicates, a bit each."""
TIME = "__weft_time"
"""Event time in microseconds since the epoch."""
WANTED = "__weft_wanted_"
"""Columns that tell whether any query of a grouping wants a row."""


def slices(rows: DataFrame, plan: Plan) -> DataFrame:
    """One row a grouping, slice, key and shard, with every partial that some query asks for."""
    prepared = prepare(rows, plan)
    hashed = [number for number, grouping in enumerate(plan.groupings) if grouping.hashed]
    sorted_ = [number for number, grouping in enumerate(plan.groupings) if not grouping.hashed]
    if not (hashed and sorted_):
        return _aggregate(prepared, plan, hashed or sorted_)
    # two aggregations, yet the source is read once
    prepared = prepared.persist(StorageLevel.MEMORY_AND_DISK)
    parts = [_aggregate(prepared, plan, numbers) for numbers in (hashed, sorted_)]
    return parts[0].unionByName(parts[1], allowMissingColumns=True)


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
    """Every predicate once, as a bit of a number: used often and written out, they make code too large to compile.

    Rows that nobody wants are dropped.
    """
    if not plan.predicates:
        return rows
    words = enumerate(batched(plan.predicates, BITS))
    marked = rows.select("*", *(_bits(map(predicate_column, word)).alias(f"{WORD}{n}") for n, word in words))
    if any(grouping.wants_everything for grouping in plan.groupings):
        return marked
    return marked.where(_any(plan, (predicate for predicate in plan.predicates if predicate.filter is None)))


def predicate_column(predicate: Predicate) -> Column:
    """Whether a row satisfies it: never NULL, and the FILTER is looked at only where the WHERE holds."""
    where = F.lit(True) if predicate.where is None else F.expr(f"({predicate.where.sql})")
    if predicate.filter is not None:
        where = F.when(where, F.expr(f"({predicate.filter.sql})"))
    return F.coalesce(where, F.lit(False)).alias(predicate.name)


def _test(plan: Plan, predicate: Predicate) -> Column:
    """Whether a row satisfies the predicate, by its bit."""
    word, bit = divmod(plan.predicates.index(predicate), BITS)
    return F.col(f"{WORD}{word}").bitwiseAND(F.lit(1 << bit)) != F.lit(0)


def _any(plan: Plan, predicates: Iterable[Predicate]) -> Column:
    """Whether a row satisfies any of the predicates."""
    masks: dict[int, int] = {}
    for predicate in predicates:
        word, bit = divmod(plan.predicates.index(predicate), BITS)
        masks[word] = masks.get(word, 0) | 1 << bit
    tests = [F.col(f"{WORD}{word}").bitwiseAND(F.lit(mask)) != F.lit(0) for word, mask in sorted(masks.items())]
    return reduce(lambda left, right: left | right, tests)


def _arguments(rows: DataFrame, plan: Plan) -> DataFrame:
    """Keys, slices, signatures and aggregates' arguments, and nothing else."""
    columns: dict[str, Column] = {}
    for grouping in plan.groupings:
        for key, name in zip(grouping.keys, grouping.key_columns, strict=True):
            columns[name] = _guarded(plan, key, _askers_of_key(plan, key)).alias(name)
        columns[grouping.slice_column] = slice_start(F.col(TIME), grouping.progressions).alias(grouping.slice_column)
        for name, word in grouping.signatures:
            columns[name] = _bits(_test(plan, predicate) for predicate in word).alias(name)
    for (argument, summed), askers in _askers_of_arguments(plan).items():
        name = argument_column(argument, summed)
        columns[name] = _guarded(plan, argument, askers).alias(name)
    for predicate in plan.predicates:
        if _is_conditional(plan, predicate):
            columns[predicate.name] = _test(plan, predicate).alias(predicate.name)
    for number, grouping in enumerate(plan.groupings):
        if not grouping.wants_everything:
            wanted = _any(plan, {query.predicate for query in grouping.queries})
            columns[f"{WANTED}{number}"] = wanted.alias(f"{WANTED}{number}")
    return rows.select(*columns.values())


def _is_conditional(plan: Plan, predicate: Predicate) -> bool:
    return any(grouping.conditional and predicate in grouping.predicates for grouping in plan.groupings)


def _askers_of_key(plan: Plan, key: Expression) -> set[Predicate]:
    return {query.predicate for query in plan.queries if key in query.query.keys}


def _askers_of_arguments(plan: Plan) -> dict[tuple[Expression, bool], set[Predicate]]:
    """Which rows each argument is wanted for, those of sums that may overflow by themselves."""
    askers: dict[tuple[Expression, bool], set[Predicate]] = {}
    for query in plan.queries:
        for call in query.calls:
            summed = {may_overflow(template, call) for partial in call.partials for template in partial.measure.columns}
            for argument in call.call.arguments:
                for one in summed:
                    askers.setdefault((argument, one), set()).add(query.predicate_of(call))
    return askers


def _guarded(plan: Plan, expression: Expression, askers: set[Predicate]) -> Column:
    """The expression, evaluated only for rows that some asker lets through: others could raise errors for nobody."""
    value = F.expr(f"({expression.sql})")
    if any(asker.everything for asker in askers):
        return value
    return F.when(_any(plan, askers), value)


def argument_column(argument: Expression, summed: bool) -> str:
    """The column of an aggregate's argument."""
    return digest("a", argument.canonical, *(["summed"] if summed else []))


def slice_start(time: Column, progressions: Iterable[Progression]) -> Column:
    """The last edge at or before ``time``, as one native expression."""
    edges = [time - F.pmod(time - F.lit(edge.offset), F.lit(edge.step)) for edge in progressions]
    return edges[0] if len(edges) == 1 else F.greatest(*edges)


def _bits(conditions: Iterable[Column]) -> Column:
    """Conditions as the bits of one BIGINT, from the lowest."""
    zero = F.lit(0).cast("bigint")
    bits = [
        F.when(condition, F.lit(1 << bit).cast("bigint")).otherwise(zero) for bit, condition in enumerate(conditions)
    ]
    return reduce(Column.bitwiseOR, bits)


def _aggregate(rows: DataFrame, plan: Plan, numbers: Sequence[int]) -> DataFrame:
    """One aggregation for several groupings, each a copy of the rows that it wants."""
    columns = layout(plan, numbers)
    copies = F.explode(F.array(*map(F.lit, numbers))) if len(numbers) > 1 else F.lit(numbers[0])
    copied = rows.select("*", copies.alias(GROUPING))
    wanted = {n: F.col(f"{WANTED}{n}") for n in numbers if not plan.groupings[n].wants_everything}
    if wanted:
        copied = copied.where(F.coalesce(by_grouping(wanted, numbers), F.lit(True)))
    keys = {SLICE: by_grouping({n: F.col(plan.groupings[n].slice_column) for n in numbers}, numbers)}
    for name, signatures in columns.signatures.items():
        keys[name] = by_grouping({n: F.col(column) for n, column in signatures.items()}, numbers)
    for name, used in columns.keys.items():
        keys[name] = by_grouping({n: F.col(key_column(key)) for n, key in used.items()}, numbers)
    arguments: dict[str, Column] = {}
    aggregates = [_aggregate_of(slot, arguments, numbers) for slot in columns.slots]
    named = [column.alias(name) for name, column in (keys | arguments).items()]
    grouped = copied.select(GROUPING, *named).groupBy(GROUPING, *keys)
    return grouped.agg(*(aggregates or [F.count(F.lit(1)).alias("rows")]))


def by_grouping(columns: dict[int, Column], numbers: Sequence[int]) -> Column:
    """A column that depends on which grouping a copy of a row is for; NULL for groupings that do not use it."""
    distinct = {str(column): column for column in columns.values()}
    if len(distinct) == 1 and (len(columns) == len(numbers) or len(numbers) == 1):
        return next(iter(distinct.values()))
    (first, value), *others = columns.items()
    choice = F.when(F.col(GROUPING) == F.lit(first), value)
    for number, column in others:
        choice = choice.when(F.col(GROUPING) == F.lit(number), column)
    return choice


def _aggregate_of(slot: Slot, arguments: dict[str, Column], numbers: Sequence[int]) -> Column:
    """The slot as a Spark aggregate; what its arguments are for each grouping is added to ``arguments``."""
    width = max(len(use.arguments) for use in slot.uses.values())
    conditional = any(use.condition for use in slot.uses.values())
    names = [f"{slot.name}_{position}" for position in range(max(width, conditional))]
    for position, name in enumerate(names):
        values = {number: _argument(use, position) for number, use in slot.uses.items()}
        arguments[name] = by_grouping(values, numbers)
    template = "count({0})" if names and not width else slot.template
    return F.expr(template.format(*names)).alias(slot.name)


def _argument(use: Use, position: int) -> Column:
    """One argument; NULL, which every aggregate ignores, where the condition of a conditional partial fails."""
    value = F.col(argument_column(use.arguments[position], use.summed)) if use.arguments else F.lit(1)
    return value if use.condition is None else F.when(F.col(use.condition.name), value)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
