"""Shards or conditional partials: decided on a sample of the rows."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.plan.model import Grouping, Plan
from weft.spark.rows import grouping_columns, prepare

SAMPLE_ROWS = 20_000
FEW_PREDICATES = 4
"""So few predicates make at most 16 shards: no sample needed."""


def choose_sharding(plan: Plan, rows: DataFrame) -> Plan:
    """Where predicates would split slices into so many shards that nothing is shared, put them into the partials.

    Shards cost rows: every combination of predicates that occurs in a slice is one. Conditional partials cost columns:
    every predicate has its own. The sample's shards a slice say which is less.
    """
    doubtful = [grouping for grouping in plan.groupings if len(grouping.predicates) > FEW_PREDICATES]
    if not doubtful:
        return plan
    prepared = prepare(rows.limit(SAMPLE_ROWS), plan)
    counts = [
        F.count_distinct(F.struct(*_columns(grouping, shards))) for grouping in doubtful for shards in (True, False)
    ]
    found = prepared.agg(*(count.alias(f"c{i}") for i, count in enumerate(counts))).collect()[0]
    conditional = set()
    for number, grouping in enumerate(doubtful):
        shards, slices = found[2 * number], found[2 * number + 1]
        if slices and shards * columns_of(grouping) > slices * columns_of(replace(grouping, conditional=True)):
            conditional.add(grouping)
    groupings = (replace(grouping, conditional=grouping in conditional) for grouping in plan.groupings)
    return replace(plan, groupings=tuple(groupings))


def _columns(grouping: Grouping, shards: bool) -> list[str]:
    names = grouping_columns(grouping)
    signatures = {name for name, _ in grouping.signatures}
    return [name for name in names if shards or name not in signatures]


def columns_of(grouping: Grouping) -> int:
    """How many columns a slice of this grouping has."""
    columns = set()
    for query in grouping.queries:
        if grouping.conditional:
            columns.add(query.predicate.name)
        for call in query.calls:
            predicate = query.predicate_of(call) if grouping.conditional else None
            columns |= {name for partial in call.partials for name in partial.columns(predicate)}
    return len(columns) + len(grouping.keys) + 1
