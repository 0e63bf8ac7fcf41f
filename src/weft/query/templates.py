"""Texts that differ only in constants are read once.

People register hundreds of queries that one program wrote: the same words, another symbol in the WHERE, another window.
The first of them is parsed. What its constants in WHERE and window became is known by their places, so the next text
with the same words between its constants needs no parser. Constants elsewhere decide what a query is (an ordinal in
GROUP BY, two equal arguments), so there they have to be the same. What would be refused is parsed anew: only the parser
knows the words for it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from sqlglot import exp

from weft.query import calls
from weft.query.functions import MOVING_MOMENTS
from weft.query.model import Call, Expression, Query
from weft.query.scalars import Scalars
from weft.query.selects import Select
from weft.query.sources import Edit
from weft.query.spans import Span, exact_span_of, span_of, without_parentheses
from weft.query.statements import Statement
from weft.query.tokens import Literal
from weft.query.windows import window_of
from weft.slicing.window import Window

MOST = 20_000
"""So many are remembered; then they begin anew."""

_HOLE = re.compile(r"\0(\d+)\0")
_WHAT = {"string": "\1", "integer": "\2", "decimal": "\3"}
"""What stands for a constant in the words of a text."""

Context = tuple[frozenset[str] | None, frozenset[str] | None]
"""The columns of the stream and the functions of the session: the same words mean other things elsewhere."""


@dataclass(frozen=True, slots=True)
class Template:
    """A query, and where constants stood in the text that it was read from."""

    query: Query
    begin: int
    """Where the query began in its text, after the name."""
    end: int
    literals: tuple[Span, ...]
    where: tuple[Sequence[str], Sequence[str]]
    """The WHERE for Spark and its identity: text and numbers of constants by turns."""

    def filled(self, statement: Statement, name: str, window: Window) -> Query:
        """The query of another text with the same words."""
        text, known = statement.source.text, self.query
        start = statement.source.span[0]
        at = self._places(statement)
        where = known.where
        if where is not None:
            sql, canonical = (_joined(pieces, statement) for pieces in self.where)
            where = Expression(canonical, sql, at(where.at), where.column)
        return replace(
            known,
            name=name,
            window=window,
            where=where,
            keys=tuple(_moved(key, at) for key in known.keys),
            calls=tuple(_moved_call(call, at) for call in known.calls),
            text=text[start : at(self.end)],
            at=start,
        )

    def _places(self, statement: Statement) -> Callable[[int], int]:
        """Where in the new text stands what stood somewhere in the old one."""
        longer = (
            (new.end - new.start) - (end - start)
            for new, (start, end) in zip(statement.literals, self.literals, strict=True)
        )
        shifts = list(accumulate(longer, initial=statement.body_at - self.begin))
        ends = [end for _, end in self.literals]
        return lambda place: place + shifts[bisect_right(ends, place)]


def _joined(pieces: Sequence[str], statement: Statement) -> str:
    words = list(pieces)
    for index in range(1, len(words), 2):
        words[index] = _text(statement, int(words[index]))
    return "".join(words)


def _moved(expression: Expression, at: Callable[[int], int]) -> Expression:
    return Expression(expression.canonical, expression.sql, at(expression.at), expression.column)


def _moved_call(call: Call, at: Callable[[int], int]) -> Call:
    return Call(
        call.function,
        tuple(_moved(argument, at) for argument in call.arguments),
        None if call.filter is None else _moved(call.filter, at),
        call.ignore_nulls,
        at(call.at),
    )


@dataclass(slots=True)
class Family:
    """All texts with the same words between constants."""

    stream: str
    of_where: tuple[int, ...]
    """The constants that stand in WHERE, by number."""
    of_window: tuple[int, ...]
    """Those that are the durations of the window."""
    fixed: tuple[int, ...]
    """All others: they have to be equal."""
    known: dict[tuple[object, ...], Template] = field(default_factory=dict)

    def window(self, statement: Statement) -> Window | None:
        """The window that the statement asks for; None if the window is not left to it, or cannot be."""
        return window_of(*(_text(statement, index) for index in self.of_window)) if self.of_window else None

    def key(self, statement: Statement, context: Context, window: Window | None) -> tuple[object, ...]:
        """What has to be the same for the same template."""
        # whether a window slides shows in the output schema
        kind = window.tumbles if window is not None else None
        return context, kind, *(_text(statement, index) for index in self.fixed)

    def may_move(self, statement: Statement) -> bool:
        """Whether a constant may be a word for the day of the run: ``DATE 'today'``."""
        return any(
            statement.literals[index].kind == "string" and _first_word(_text(statement, index)) in MOVING_MOMENTS
            for index in self.of_where
        )


def _text(statement: Statement, index: int) -> str:
    literal = statement.literals[index]
    return statement.source.text[literal.start : literal.end]


def _first_word(string: str) -> str:
    return next(iter(string[1:-1].lower().split()), "")


class Templates:
    """What was read so far."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._known = 0

    def find(self, statement: Statement, name: str, context_of: Callable[[str], Context]) -> Query | None:
        """The statement's query, if one with the same words was read before; None: it has to be parsed."""
        family = self._families.get(_words(statement))
        if family is None or family.may_move(statement):
            return None
        window = family.window(statement)
        if window is None and family.of_window:
            return None
        template = family.known.get(family.key(statement, context_of(family.stream), window))
        return None if template is None else template.filled(statement, name, window or template.query.window)

    def learn(self, statement: Statement, select: Select, scalars: Scalars, query: Query, context: Context) -> None:
        """Remember how a statement was read."""
        if "\0" in query.text:
            return
        if self._known >= MOST:
            self._families.clear()
            self._known = 0
        family = self._families.setdefault(_words(statement), _family(statement, select, query))
        if family.may_move(statement):
            return
        where = _where_with_holes(statement, select, scalars, family.of_where)
        template = Template(
            query,
            statement.body_at,
            statement.source.tokens[-1].end + 1,
            tuple((literal.start, literal.end) for literal in statement.literals),
            where,
        )
        family.known[family.key(statement, context, family.window(statement))] = template
        self._known += 1


def _words(statement: Statement) -> str:
    """The text of a statement's query but for its constants."""
    text, position = statement.source.text, statement.body_at
    words: list[str] = []
    for start, end, kind in statement.literals:
        words += (text[position:start], _WHAT[kind])
        position = end
    words.append(text[position : statement.source.span[1]])
    return "".join(words)


def _family(statement: Statement, select: Select, query: Query) -> Family:
    tokens = {(token.start, token.end + 1) for token in statement.body}
    numbers = {
        (literal.start, literal.end): number
        for number, literal in enumerate(statement.literals)
        if (literal.start, literal.end) in tokens
    }
    of_where: tuple[int, ...] = ()
    if select.where is not None:
        start, end = exact_span_of(without_parentheses(select.where))
        of_where = tuple(number for span, number in numbers.items() if start <= span[0] and span[1] <= end)
    of_window = _durations(select, numbers)
    taken = {*of_where, *of_window}
    fixed = tuple(number for number in range(len(statement.literals)) if number not in taken)
    return Family(query.stream, of_where, of_window, fixed)


def _durations(select: Select, numbers: dict[Span, int]) -> tuple[int, ...]:
    """The constants of the one call of ``window``; none if there are several, which have to be equal."""
    windows = [call for root in select.expressions for call in root.find_all(exp.Anonymous) if calls.is_window(call)]
    if len(windows) != 1 or select.bracket is not None:
        return ()
    spans = [span_of(without_parentheses(argument)) for argument in windows[0].expressions[1:]]
    found = [numbers.get(span) for span in spans if span is not None]
    return tuple(number for number in found if number is not None) if None not in found else ()


def _where_with_holes(
    statement: Statement, select: Select, scalars: Scalars, of_where: Sequence[int]
) -> tuple[Sequence[str], Sequence[str]]:
    if select.where is None:
        return (), ()
    holes = []
    for index in of_where:
        literal: Literal = statement.literals[index]
        holes.append(Edit(literal.start, literal.end, f"\0{index}\0", f"\0{index}\0"))
    where = scalars.expression(select.where, "WHERE", also=holes)
    return _HOLE.split(where.sql), _HOLE.split(where.canonical)
