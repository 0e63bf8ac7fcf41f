"""A file of queries, cut into statements and their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from weft.errors import QueryError
from weft.query import refusals
from weft.query.dialect import WeftSpark
from weft.query.sources import Source
from weft.query.spans import Span

BYTE_ORDER_MARK = "\ufeff"
"""What editors of Windows put before a text in UTF-8."""
_NAME_COMMENT = re.compile(r"^[ \t]*--[ \t]*name[ \t]*:[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)

# In this order, as a quote inside a comment is no quote and the other way round.
_QUOTED_OR_COMMENT = re.compile(
    r"""--[^\n]*|/\*.*?\*/|[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|(?P<open>['"`]|/\*)""",
    re.DOTALL,
)


_UNFIT = re.compile(r"[/\\\x00-\x1f\x7f]|^\.")
"""What no name holds, as answers lie in folders, tables and topics of that name."""


_WRITTEN_NAME = re.compile(r"`[^`]*`|[^\s(]*")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a file; ``body`` is what stands after CREATE VIEW ... AS, if that is there."""

    name: str | None
    """None where the user gave none."""
    name_at: Span
    source: Source
    body: Sequence[Token]
    replaces: bool = False
    """Whether it may take the place of an earlier one of that name."""

    @property
    def span(self) -> Span:
        """Where it stands in the file."""
        return self.source.tokens[0].start, self.source.tokens[-1].end + 1


def tokens_of(text: str) -> list[Token]:
    """The tokens of a file."""
    try:
        return WeftSpark().tokenize(text)
    except TokenError as error:
        opened = next((found for found in _QUOTED_OR_COMMENT.finditer(text) if found["open"]), None)
        at = opened.start() if opened else 0
        what = {"/*": "comment", "`": "name"}.get(opened[0] if opened else "", "string")
        raise QueryError(f"this {what} never ends", text=text, at=at, hint="close it") from error


def split(text: str) -> Iterator[tuple[str, Sequence[Token]]]:
    """Each statement's tokens, with the white space and comments that stand before them."""
    end = 0
    statement: list[Token] = []
    for token in [*tokens_of(text), None]:
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
            continue
        if statement:
            yield text[end : statement[0].start], statement
        statement = []
        end = token.end + 1 if token else len(text)


def is_empty(text: str) -> bool:
    """Whether a file holds no statement.

    Examples
    --------
    >>> is_empty(" -- nothing\\n ; "), is_empty("SELECT 1")
    (True, False)
    """
    try:
        return next(split(text.removeprefix(BYTE_ORDER_MARK)), None) is None
    except QueryError:
        return False


def read_statement(text: str, tokens: Sequence[Token], before: str) -> Statement:
    """Find a statement's name: its view's, else that of the comment before it."""
    source = Source(text, tokens)
    if tokens[0].token_type is TokenType.CREATE:
        return _read_view(source)
    place = (tokens[0].start, tokens[0].end + 1)
    names = _NAME_COMMENT.findall(before)
    if names and not names[-1]:
        source.refuse(place, refusals.missing("the name in the comment before this query"))
    if names and _UNFIT.search(names[-1]):
        source.refuse(place, refusals.unfit_name(names[-1]))
    return Statement(names[-1] if names else None, place, source, tokens)


def _read_view(source: Source) -> Statement:
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
    return Statement(".".join(parts), span, source, words.rest, replaces)


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
