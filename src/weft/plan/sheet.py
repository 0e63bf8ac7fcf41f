"""One table for all queries whose select list or HAVING Spark has yet to compute.

Workers write windows, keys and aggregates of all such queries into the same columns, by type, so that one Spark job
computes every select list instead of one job each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from weft.plan.model import BoundQuery, digest
from weft.query.model import AGGREGATE, KEY, WINDOW

QUERY = "__weft_query"
"""The number of the query that a row belongs to."""
TEMPLATE = "__weft_template"
"""The number of what is to be computed."""


@dataclass(frozen=True)
class Sheet:
    """The columns of the table, and where each query finds its own."""

    columns: dict[str, pa.DataType]
    places: dict[str, dict[str, str]]
    """By a query's name: the column of each of its placeholders."""
    templates: tuple[tuple[BoundQuery, ...], ...]
    """Queries for which the same expressions over the same columns are computed, together."""

    @cached_property
    def numbers(self) -> dict[str, tuple[int, int]]:
        """By a query's name: its number and that of its template."""
        names = {query.name: number for number, query in enumerate(self.queries)}
        return {query.name: (names[query.name], at) for at, some in enumerate(self.templates) for query in some}

    @cached_property
    def queries(self) -> tuple[BoundQuery, ...]:
        """All queries of the table."""
        return tuple(query for some in self.templates for query in some)

    def lay_out(self, name: str, answers: pa.Table) -> pa.Table:
        """A query's answers, which stand under its placeholders, in the columns of the table."""
        found = {column: answers.column(placeholder) for placeholder, column in self.places[name].items()}
        number, template = self.numbers[name]
        numbers = {QUERY: number, TEMPLATE: template}
        arrays = [
            found[column] if column in found else pa.repeat(pa.scalar(numbers.get(column), kind), len(answers))
            for column, kind in self.columns.items()
        ]
        plain = [array.cast(kind) for array, kind in zip(arrays, self.columns.values(), strict=True)]
        return pa.Table.from_arrays(plain, names=list(self.columns))


def sheet(queries: Iterable[BoundQuery]) -> Sheet:
    """The table for those of ``queries`` that workers cannot write as they are."""
    columns: dict[str, pa.DataType] = {QUERY: pa.int32(), TEMPLATE: pa.int32()}
    places: dict[str, dict[str, str]] = {}
    templates: dict[object, list[BoundQuery]] = {}
    for query in queries:
        if query.direct:
            continue
        columns[WINDOW] = pa.struct([("start", query.event_type), ("end", query.event_type)])
        own = {WINDOW: WINDOW}
        used: Counter[str] = Counter()
        typed = [(f"{KEY}{index}", kind) for index, kind in enumerate(query.key_types)]
        typed += [(f"{AGGREGATE}{index}", call.result) for index, call in enumerate(query.calls)]
        for placeholder, kind in typed:
            column = f"{digest('c', str(kind))}_{used[str(kind)]}"
            used[str(kind)] += 1
            columns[column] = kind
            own[placeholder] = column
        places[query.name] = own
        template = (query.query.outputs, query.query.having, query.columns, tuple(own.items()))
        templates.setdefault(template, []).append(query)
    return Sheet(columns, places, tuple(map(tuple, templates.values())))
