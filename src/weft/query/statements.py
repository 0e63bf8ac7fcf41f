"""A file of queries, cut into statements and their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from weft.errors import QueryError
from weft.query import refusals
from weft.query.dialect import WeftSpark
from weft.query.sources import Source
from weft.query.spans import Span
from weft.query.tokens import Literal, Piece, pieces

BYTE_ORDER_MARK = "\ufeff"
"""What editors of Windows put before a text in UTF-8."""
_NAME_COMMENT = re.compile(r"^[ \t]*--[ \t]*name[ \t]*:[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)

_UNFIT = re.compile(r"[/\\\x00-\x1f\x7f]|^\.")
"""What no name holds, as answers lie in folders, tables and topics of that name."""


_WRITTEN_NAME = re.compile(r"`[^`]*`|[^\s(]*")


_VIEW = re.compile(
    r"CREATE\s+(?:(?P<replaces>OR\s+REPLACE)\s+(?:TEMP(?:ORARY)?\s+)?|(?:MATERIALIZED|TEMP(?:ORARY)?)\s+)?VIEW\s+"
    r"(?P<name>[^\W\d]\w*)\s+AS\s+(?=SELECT\b)",
    re.IGNORECASE,
)
"""The head of a view as nearly everybody writes it: no token has to be looked at."""
_SELECT = re.compile(r"SELECT\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a file."""

    name: str | None
    """None where the user gave none."""
    name_at: Span
    source: Source
    body_at: int
    """Where the query begins, after CREATE VIEW ... AS if that is there."""
    literals: tuple[Literal, ...]
    """The plain constants of the query, in order."""
    replaces: bool = False
    """Whether it may take the place of an earlier one of that name."""

    @property
    def body(self) -> Sequence[Token]:
        """The tokens of the query."""
        return self.source.tokens_in((self.body_at, self.source.span[1]))


def is_empty(text: str) -> bool:
    """Whether a file holds no statement.

    Examples
    --------
    >>> is_empty(" -- nothing\\n ; "), is_empty("SELECT 1")
    (True, False)
    """
    try:
        return next(pieces(text.removeprefix(BYTE_ORDER_MARK)), None) is None
    except QueryError:
        return False


def read_statement(text: str, piece: Piece) -> Statement:
    """Find a statement's name: its view's, else that of the comment before it."""
    source = Source(text, piece.span)
    start = piece.span[0]
    if found := _VIEW.match(text, start):
        name = found["name"]
        if name.upper() not in WeftSpark.Tokenizer.KEYWORDS:
            return _statement(piece, source, name, found.span("name"), found.end(), bool(found["replaces"]))
    if found := _SELECT.match(text, start):
        place = found.span()
    elif source.tokens[0].token_type is TokenType.CREATE:
        return _read_view(piece, source)
    else:
        place = (source.tokens[0].start, source.tokens[0].end + 1)
    names = _NAME_COMMENT.findall(piece.before) if piece.before else []
    if names and not names[-1]:
        source.refuse(place, refusals.missing("the name in the comment before this query"))
    if names and _UNFIT.search(names[-1]):
        source.refuse(place, refusals.unfit_name(names[-1]))
    return _statement(piece, source, names[-1] if names else None, place, start)


def _statement(
    piece: Piece, source: Source, name: str | None, name_at: Span, body_at: int, replaces: bool = False
) -> Statement:
    literals = tuple(literal for literal in piece.literals if literal.start >= body_at)
    return Statement(name, name_at, source, body_at, literals, replaces)


def _read_view(piece: Piece, source: Source) -> Statement:
    """``CREATE [OR REPLACE] [TEMPORARY] VIEW name AS`` or ``CREATE MATERIALIZED VIEW name AS``."""
    words = _Words(source)
    words.expect("CREATE")
    replaces = words.match("OR")
    if replaces:
        words.expect("REPLACE")
        words.match("TEMPORARY", "TEMP")
    elif not words.match("MATERIALIZED"):
        words.match("TEMPORARY", "TEMP")
    words.expect("VIEW")
    start = words.here
    parts = [words.name()]
    while words.match("."):
        parts.append(words.name())
    span = (start[0], words.last[1])
    words.expect("AS")
    if not words.rest:
        source.refuse(words.here, refusals.missing("the query"))
    return _statement(piece, source, ".".join(parts), span, words.here[0], replaces)


class _Words:
    """A reader of the few words before a view's query."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._index = 0

    @property
    def rest(self) -> Sequence[Token]:
        return self._source.tokens[self._index :]

    @property
    def here(self) -> Span:
        return (self.rest[0].start, self.rest[0].end + 1) if self.rest else (self.last[1], self.last[1] + 1)

    @property
    def last(self) -> Span:
        token = self._source.tokens[self._index - 1]
        return token.start, token.end + 1

    def match(self, *words: str) -> bool:
        found = bool(self.rest) and self._source.text[slice(*self.here)].upper() in words
        self._index += found
        return found

    def expect(self, word: str) -> None:
        if not self.match(word):
            self._source.refuse(self.here, refusals.view(word))

    def name(self) -> str:
        if not self.rest or self.rest[0].text.upper() == "AS":
            self._source.refuse(self.here, refusals.missing("the view's name"))
        # as far as a person takes it for the name: ../x is four tokens
        found = _WRITTEN_NAME.match(self._source.text, self.here[0])
        if found and _UNFIT.search(found.group().strip("`")):
            self._source.refuse(found.span(), refusals.unfit_name(found.group().strip("`")))
        if not re.match(r"\w", self.rest[0].text):
            self._source.refuse(self.here, refusals.missing("the view's name"))
        self._index += 1
        return self._source.tokens[self._index - 1].text
