"""Expressions over nothing but the stream's columns: predicates, arguments of aggregates, keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from weft.query import calls, refusals
from weft.query.model import Expression
from weft.query.names import Names
from weft.query.placeholders import called
from weft.query.sources import Edit, Source
from weft.query.spans import Span, exact_span_of, without_parentheses

Expand = Callable[[exp.Column], "Expression | None"]
"""What a name stands for if it is not a column of the stream."""


def _nothing(_: exp.Column) -> Expression | None:
    return None


class Scalars:
    """Checks such expressions and cuts them out of the text."""

    def __init__(self, source: Source, names: Names) -> None:
        self.source = source
        self.names = names

    def expression(
        self, node: exp.Expr, where: str, expand: Expand = _nothing, also: Sequence[Edit] = ()
    ) -> Expression:
        """Check ``node`` and cut it out, with edits inside of it; ``where`` names the place in messages."""
        node = without_parentheses(node)
        edits = list(also)
        for part in node.walk(bfs=False):
            if isinstance(part, exp.Column):
                edits += self._column(part, where, expand)
            else:
                self._check(part, where)
        span = exact_span_of(node)
        path = self.names.path(node) if isinstance(node, exp.Column) else []
        return Expression(
            canonical=self._identity(node, span, edits),
            sql=self.source.sql(span, edits),
            at=span[0],
            column=path[0].name if len(path) == 1 else None,
        )

    def canonical(self, node: exp.Expr) -> str:
        """What ``expression`` would give as identity, with no check of what it means."""
        edits = [edit for column in node.find_all(exp.Column) for edit in self.names.edits(column)]
        return self._identity(node, exact_span_of(node), edits)

    def _identity(self, node: exp.Expr, span: Span, edits: list[Edit]) -> str:
        named = any(map(calls.names_fields, node.walk()))
        return self.source.canonical_with_names(span, edits) if named else self.source.canonical(span, edits)

    def _column(self, column: exp.Column, where: str, expand: Expand) -> list[Edit]:
        if meant := expand(column):
            sql = called(column.name, f"({meant.sql})") if calls.is_argument(column) else f"({meant.sql})"
            return [Edit(*exact_span_of(column), sql, f"( {meant.canonical} )")]
        if self.names.means_window(column):
            self.source.refuse(column, refusals.window_in(where))
        self.names.check(column, self.source)
        return list(self.names.edits(column))

    def _check(self, node: exp.Expr, where: str) -> None:
        if calls.is_aggregate(node):
            self.source.refuse(node, refusals.aggregate_in(where))
        if calls.is_window(node):
            self.source.refuse(node, refusals.window_in(where))
        calls.refuse_unsupported(node, self.source)
