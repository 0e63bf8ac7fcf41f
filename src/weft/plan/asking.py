"""Who asks for what: keys and arguments are evaluated only for rows that some query wants them for.

Rows that nobody asked about could raise errors for nobody; so what a slice holds of an argument is true of its askers'
rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from weft.plan.layout import may_overflow
from weft.plan.model import BoundQuery, Predicate, digest, key_column
from weft.query.model import Expression

KEEPING = frozenset({"min", "max", "min_by", "max_by"})
"""Aggregates whose partials are values of their arguments; those of others are numbers."""


@dataclass(frozen=True)
class AskedValue:
    """A key or an argument that a query wants evaluated, and for which rows."""

    expression: Expression
    column: str
    rows: Predicate
    kept: pa.DataType | None = field(default=None, compare=False)
    """The type of its values, where these are kept as they are: as keys, or by the aggregate."""

    @cached_property
    def name(self) -> str:
        """What it is called where it is written down since when these rows have it."""
        return digest("e", self.column, self.rows.name)

    @property
    def for_all(self) -> AskedValue:
        """The same for every row."""
        return replace(self, rows=Predicate())


def asked_by(query: BoundQuery) -> Iterator[AskedValue]:
    """All that a query wants evaluated; something may come twice."""
    for key, kind in zip(query.query.keys, query.key_types, strict=True):
        yield AskedValue(key, key_column(key), query.predicate, kind)
    for call in query.calls:
        summed = {may_overflow(template, call) for partial in call.partials for template in partial.measure.columns}
        keeps = call.call.function in KEEPING
        for argument, kind in zip(call.call.arguments, call.types, strict=True):
            for one in summed:
                column = argument_column(argument, one)
                yield AskedValue(argument, column, query.predicate_of(call), kind if keeps else None)


def argument_column(argument: Expression, summed: bool) -> str:
    """The column of an aggregate's argument; sums that may overflow have their own, as only their rows may reach it."""
    return digest("a", argument.canonical, *(["summed"] if summed else []))
