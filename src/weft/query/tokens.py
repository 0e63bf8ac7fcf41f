"""The tokens of a text, and a first quick look at it: where statements end, and where constants stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import Token
from sqlglot.errors import TokenError

from weft.errors import QueryError
from weft.query.dialect import WeftSpark
from weft.query.spans import Span

# In this order, as a quote inside a comment is no quote and the other way round.
_MARKS = re.compile(
    r"""(?P<comment>--[^\n]*)|(?P<block>/\*)|(?P<end>;)"""
    r"""|(?P<string>'[^'\\]*')"""
    r"""|(?P<quoted>(?<!\w)[rR]'[^']*'|(?<!\w)[rR]"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)"""
    r"""|(?P<open>['"`])"""
    r"""|(?<![\w.])(?:(?P<integer>\d+)|(?P<decimal>\d+\.\d+))(?![\w.])""",
    re.DOTALL,
)
_BLOCKS = re.compile(r"/\*|\*/")


class Literal(NamedTuple):
    """A constant of a statement that is one plain token: ``'XNAS'``, ``10`` or ``2.5``."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a text, not yet read: nothing around it is a part of it but ``before``."""

    before: str
    """White space and comments before it."""
    span: Span
    literals: tuple[Literal, ...]


def pieces(text: str) -> Iterator[Piece]:
    """The statements of a text, with semicolons between."""
    begin = position = last = 0
    first: int | None = None
    literals: list[Literal] = []
    for kind, start, end in _marks(text):
        stretch = text[position:start]
        if stretch and not stretch.isspace():
            if first is None:
                first = start - len(stretch.lstrip())
            last = position + len(stretch.rstrip())
        position = end
        if kind == "end":
            if first is not None:
                yield Piece(text[begin:first], (first, last), tuple(literals))
            begin, first, literals = end, None, []
        elif kind not in {"comment", "block"}:
            first, last = start if first is None else first, end
            if kind != "quoted":
                literals.append(Literal(start, end, kind))


def _marks(text: str) -> Iterator[tuple[str, int, int]]:
    """What is no plain text, in order; the end of the text is the end of a statement."""
    position = 0
    while found := _MARKS.search(text, position):
        kind, (start, position) = found.lastgroup or "", found.span()
        if kind == "block":
            position = _end_of_block(text, start)
        elif kind == "open":
            raise _endless(text, start)
        yield kind, start, position
    yield "end", len(text), len(text)


def _end_of_block(text: str, start: int) -> int:
    """Where a comment ends that may hold others."""
    depth = 0
    for bracket in _BLOCKS.finditer(text, start):
        depth += 1 if bracket.group() == "/*" else -1
        if depth == 0:
            return bracket.end()
    raise _endless(text, start)


def tokens_of(text: str, span: Span) -> list[Token]:
    """The tokens of a stretch of a text; their positions count from the beginning of the text."""
    start, end = span
    try:
        tokens = WeftSpark().tokenize(text[start:end])
    except TokenError as error:
        raise _endless(text, start) from error
    for token in tokens:
        token.start += start
        token.end += start
    return tokens


def _endless(text: str, at: int) -> QueryError:
    what = {"/": "comment", "`": "name"}.get(text[at], "string")
    return QueryError(f"this {what} never ends", text=text, at=at, hint="close it")
