"""The Spark SQL that tells a query's output schema, equal for queries that differ in window and WHERE only."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from weft.query import calls
from weft.query.functions import SUPPORTED
from weft.query.selects import Select
from weft.query.sources import Edit, Source
from weft.query.spans import exact_span_of
from weft.slicing.window import Window

_TUMBLING = "'1 minute'"
_SLIDING = "'2 minutes', '1 minute'"


def shape_of(select: Select, source: Source, window: Window) -> str:
    """Write the query with a window of fixed length and no WHERE, and CQL's window as Spark's.

    The schema does not depend on them, so one binding by Spark serves all queries of a shape. Only whether the window
    can be NULL depends on its kind: Spark makes sliding windows by an Expand, whose columns it takes for nullable.
    """
    length = _TUMBLING if window.tumbles else _SLIDING
    cql_window = f"window(`{{event_time}}`, {length})"
    edits = [*_window_edits(select, source, length), *_spelled_edits(select, source)]
    items = source.squeezed(select.items_clause, edits)
    stream = source.squeezed(select.from_clause, _bracket_edits(select)).rstrip()
    group = source.squeezed(select.group_clause, edits) if select.group_clause else ""
    having = source.squeezed(select.having_clause, edits) if select.having_clause else ""
    if select.bracket and select.group is None:
        # GROUP BY ALL groups by what is selected, so that the window has to be called there.
        items += f", {cql_window}.start AS window_start, {cql_window}.end AS window_end"
    elif select.bracket:
        items += ", window.start AS window_start, window.end AS window_end"
        group = f"{group}, {cql_window}" if group else f"GROUP BY {cql_window}"
    return " ".join(part for part in (items, stream, group, having) if part)


def _window_edits(select: Select, source: Source, length: str) -> Iterator[Edit]:
    for call in _called(select):
        if calls.is_window(call):
            time = source.squeezed(exact_span_of(call.expressions[0]))
            yield Edit(*exact_span_of(call), f"window({time}, {length})")


def _spelled_edits(select: Select, source: Source) -> Iterator[Edit]:
    """Aggregates that Spark does not know by their names, in its words; a FILTER, which no schema depends on, goes."""
    for call in _called(select):
        aggregate = SUPPORTED.get(call.name.lower())
        if aggregate is not None and aggregate.in_spark is not None:
            arguments = [source.squeezed(exact_span_of(argument)) for argument in call.expressions]
            whole = call.parent if isinstance(call.parent, exp.Filter) else call
            yield Edit(*exact_span_of(whole), aggregate.spelled(arguments))


def _called(select: Select) -> Iterator[exp.Anonymous]:
    roots = [item.expression for item in select.items] + list(select.group or ())
    for root in roots + ([select.having] if select.having else []):
        yield from root.find_all(exp.Anonymous)


def _bracket_edits(select: Select) -> list[Edit]:
    if select.bracket is None:
        return []
    start, end = select.bracket
    return [Edit(start - 1, end + 1, "")]
