"""The select list and HAVING, rewritten over placeholders for what the engine computes.

Some of Spark's functions take names from what they are given: ``struct(s, sum(n))`` has the fields ``s`` and ``col2``,
and ``to_json`` and ``typeof`` show them. So inside a call a placeholder goes by the name that the user's own text would
have there (:func:`~weft.query.placeholders.called`), or by none
where that has none (:func:`~weft.query.placeholders.nameless`).
"""

from __future__ import annotations

import re

from sqlglot import exp

from weft.query import calls, refusals
from weft.query.grouping import GroupBy
from weft.query.model import AGGREGATE, KEY, WINDOW, Call, Output, Part
from weft.query.names import identity
from weft.query.placeholders import called, nameless
from weft.query.scalars import Scalars
from weft.query.selects import SelectItem
from weft.query.sources import Edit
from weft.query.spans import exact_span_of, span_of, without_parentheses
from weft.query.windows import read_window

_BARE = re.compile(
    rf"{KEY}(?P<key>\d+)|{AGGREGATE}(?P<aggregate>\d+)|{WINDOW}(?:\s*\.\s*`?(?P<field>start|end)`?)?", re.IGNORECASE
)


class Rewriter:
    """Rewrites one query's expressions; equal keys and equal aggregate calls get the same placeholder."""

    def __init__(self, scalars: Scalars, grouping: GroupBy) -> None:
        self._scalars = scalars
        self._source = scalars.source
        self._names = scalars.names
        self._window = grouping.window
        self._keys = {key.canonical: index for index, key in enumerate(grouping.keys)}
        self._only_columns = all(key.column is not None for key in grouping.keys)
        self._calls: dict[Call, int] = {}
        self._aliases: dict[str, str] = {}

    @property
    def calls(self) -> tuple[Call, ...]:
        """The aggregate calls met so far, each once."""
        return tuple(self._calls)

    def output(self, item: SelectItem) -> Output:
        """Rewrite the next entry of the select list; its alias is known to the entries after it."""
        node = without_parentheses(item.expression)
        edits = self._edits(node, in_having=False)
        sql = self._source.sql(exact_span_of(node), edits)
        bare = _BARE.fullmatch(sql)
        if item.alias is not None:
            self._aliases.setdefault(item.alias.lower(), sql if bare else f"({sql})")
        if bare is None:
            return Output(sql, item.alias)
        index = int(bare["key"] or bare["aggregate"] or 0)
        # Spark names a bare column as it is written here
        written = node.name if isinstance(node, exp.Column) and bare["key"] else None
        return Output(sql, item.alias or written, _part(bare), index)

    def having(self, node: exp.Expr) -> str:
        """Rewrite the HAVING; it sees all aliases of the select list."""
        edits = self._edits(node, in_having=True)
        return self._source.sql(exact_span_of(node), edits)

    def _edits(self, node: exp.Expr, *, in_having: bool) -> list[Edit]:
        if isinstance(node, exp.Column):
            return [self._column(node, in_having)]
        if (key := self._key(node)) is not None:
            return [_replaced(node, f"{KEY}{key}")]
        if calls.is_aggregate(node):
            return [_replaced(node, f"{AGGREGATE}{self._call(node)}")]
        if isinstance(node, exp.Anonymous) and calls.is_window(node):
            if read_window(node, self._names, self._source) != self._window:
                self._source.refuse(node, refusals.TWO_WINDOWS)
            return [_replaced(node, WINDOW)]
        calls.refuse_unsupported(node, self._source)
        return [edit for part in node.iter_expressions() for edit in self._edits(part, in_having=in_having)]

    def _key(self, node: exp.Expr) -> int | None:
        # What holds no column is left alone: it may have to be a literal, as in round(x, 2) or DECIMAL(10, 2).
        if self._only_columns or span_of(node) is None or node.find(exp.Column) is None:
            return None
        return self._keys.get(self._scalars.canonical(node))

    def _column(self, column: exp.Column, in_having: bool) -> Edit:
        if not isinstance(column.this, exp.Identifier):
            self._source.refuse(column, refusals.STAR)
        path = self._names.path(column)
        start = exact_span_of(column)[0]
        in_call = calls.is_argument(column)
        for length in range(len(path), 0, -1):
            key = self._keys.get(" . ".join(identity(part.name) for part in path[:length]))
            if key is not None:
                last = path[length - 1]
                named = in_call and length == len(path)
                text = called(last.name, f"{KEY}{key}") if named else f"{KEY}{key}"
                return Edit(start, exact_span_of(last)[1], text)
        if self._names.means_window(column):
            if len(path) > 2 or (len(path) == 2 and path[1].name.lower() not in ("start", "end")):
                self._source.refuse(column, refusals.WINDOW_FIELD)
            named = in_call and len(path) == 1
            return Edit(*exact_span_of(path[0]), called(path[0].name, WINDOW) if named else WINDOW)
        alias = self._aliases.get(path[0].name.lower())
        # In HAVING an alias hides a column that is no key, in the select list it does not.
        if (
            alias is not None
            and len(path) == len(column.parts)
            and (in_having or not self._names.certainly_has(column))
        ):
            named = in_call and len(path) == 1
            return Edit(*exact_span_of(path[0]), called(path[0].name, alias) if named else alias)
        self._names.check(column, self._source)
        if (call := calls.unknown_around(column)) is not None:
            self._source.refuse(call, calls.unknown(call.name))
        raise self._source.error(column, refusals.not_grouped(self._source.sql(exact_span_of(column))))

    def _call(self, node: exp.Expr) -> int:
        read = calls.read_aggregate(node, self._source)
        call = Call(
            function=read.function.name,
            arguments=tuple(self._scalars.expression(argument, "an aggregate") for argument in read.arguments),
            filter=self._scalars.expression(read.filter, "FILTER") if read.filter else None,
            ignore_nulls=read.ignore_nulls,
            at=exact_span_of(node)[0],
        )
        return self._calls.setdefault(call, len(self._calls))


def _replaced(node: exp.Expr, placeholder: str) -> Edit:
    """A placeholder for a whole expression, by the name that a function around would see."""
    if calls.is_argument(node):
        name = _own_name(node)
        placeholder = nameless(placeholder) if name is None else called(name, placeholder)
    return Edit(*exact_span_of(node), placeholder)


def _own_name(node: exp.Expr) -> str | None:
    """The name that Spark gives what is no column: a field's, ``f(x).a`` and ``m['a']``; anything else has none."""
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1:
        (index,) = node.expressions
        return str(index.name) if isinstance(index, exp.Literal) and index.is_string else None
    return None


def _part(bare: re.Match[str]) -> Part:
    if bare["key"]:
        return Part.KEY
    if bare["aggregate"]:
        return Part.AGGREGATE
    field = bare["field"]
    return Part(f"window.{field.lower()}") if field else Part.WINDOW
