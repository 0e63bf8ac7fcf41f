"""GROUP BY: ordinals, aliases and ALL resolved as Spark does, then parted into the window and the keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from weft.query import calls, refusals
from weft.query.model import Expression
from weft.query.scalars import Scalars
from weft.query.selects import Select, SelectItem
from weft.query.spans import exact_span_of, without_parentheses
from weft.query.windows import WindowOverTime, read_bracket, read_window


@dataclass(frozen=True, slots=True)
class GroupBy:
    """The window, and the keys beside it."""

    window: WindowOverTime
    keys: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One grouping expression: where GROUP BY says it, and what it says."""

    said: exp.Expr
    meant: exp.Expr


def read_grouping(select: Select, scalars: Scalars) -> GroupBy:
    """Part GROUP BY into the window and the keys."""
    entries = list(_entries(select, scalars))
    window = _the_window(select, entries, scalars)
    keys: dict[str, Expression] = {}
    derived: exp.Expr | None = None
    anchored = select.bracket is not None
    for entry in entries:
        if not _mentions_window(entry.meant, scalars):
            key = _key(entry, select, scalars)
            if entry.meant.find(exp.Column):  # a constant makes no groups
                keys.setdefault(key.canonical, key)
        elif _is_window_or_field(entry.meant):
            anchored = True
        else:
            _refuse_mixture(entry, scalars)
            derived = entry.said
    if not anchored and derived is not None:
        scalars.source.refuse(derived, refusals.DERIVED_WINDOW)
    return GroupBy(window, tuple(keys.values()))


def _entries(select: Select, scalars: Scalars) -> Iterator[_Entry]:
    if select.group is None:
        for item in select.items:
            if not calls.holds_aggregate(item.expression):
                yield _Entry(item.expression, without_parentheses(item.expression))
        return
    for said in select.group:
        pointed = _by_position(said, select, scalars) or _by_alias(said, select, scalars)
        if pointed and calls.holds_aggregate(pointed.expression):
            text = scalars.source.sql(exact_span_of(said))
            scalars.source.refuse(said, refusals.grouped_aggregate(text))
        yield _Entry(said, without_parentheses(pointed.expression if pointed else said))


def _by_position(said: exp.Expr, select: Select, scalars: Scalars) -> SelectItem | None:
    node = without_parentheses(said)
    sign = -1 if isinstance(node, exp.Neg) else 1
    number = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(number, exp.Literal) or not number.is_int:
        return None
    position = sign * int(number.name)
    if not 1 <= position <= len(select.items):
        scalars.source.refuse(said, refusals.ordinal(position, len(select.items)))
    return select.items[position - 1]


def _by_alias(said: exp.Expr, select: Select, scalars: Scalars) -> SelectItem | None:
    """The select item that a bare name stands for: columns come first in Spark."""
    column = without_parentheses(said)
    if not isinstance(column, exp.Column) or len(column.parts) > 1 or scalars.names.certainly_has(column):
        return None
    name = column.name.lower()
    for item in select.items:
        if item.alias is not None and item.alias.lower() == name:
            return item
    return None


def _the_window(select: Select, entries: list[_Entry], scalars: Scalars) -> WindowOverTime:
    window = read_bracket(select.bracket, scalars.source) if select.bracket else None
    for entry in entries:
        for call in filter(calls.is_window, entry.meant.find_all(exp.Anonymous)):
            found = read_window(call, scalars.names, scalars.source)
            if window is not None and found != window:
                scalars.source.refuse(call, refusals.TWO_WINDOWS)
            window = found
    if window is None:
        _refuse_without_window(select, entries, scalars)
    return window


def _refuse_without_window(select: Select, entries: list[_Entry], scalars: Scalars) -> NoReturn:
    for entry in entries:
        for part in entry.meant.walk(bfs=False):
            calls.refuse_unsupported(part, scalars.source)
    if select.group_clause is None:
        scalars.source.refuse(select.items_clause, refusals.NO_GROUP_BY)
    scalars.source.refuse(select.group_clause, refusals.NO_WINDOW)


def _mentions_window(node: exp.Expr, scalars: Scalars) -> bool:
    return any(calls.is_window(part) or scalars.names.means_window(part) for part in node.walk())


def _is_window_or_field(node: exp.Expr) -> bool:
    """Whether grouping by ``node`` is grouping by the window."""
    return calls.is_window(node) or (isinstance(node, exp.Dot) and calls.is_window(node.this))


def _refuse_mixture(entry: _Entry, scalars: Scalars) -> None:
    """Refuse a function of the window and of columns; one of the window alone adds nothing to the groups."""
    for part in entry.meant.walk(prune=calls.is_window):
        if isinstance(part, exp.Column) and not scalars.names.means_window(part):
            scalars.source.refuse(entry.said, refusals.WINDOW_IN_KEY)
        calls.refuse_unsupported(part, scalars.source)


def _key(entry: _Entry, select: Select, scalars: Scalars) -> Expression:
    if select.group is None or without_parentheses(entry.said) is not entry.meant:
        return scalars.expression(entry.meant, "GROUP BY")

    def expand(column: exp.Column) -> Expression | None:
        item = _by_alias(column, select, scalars)
        return scalars.expression(item.expression, "GROUP BY") if item else None

    return scalars.expression(entry.meant, "GROUP BY", expand)
