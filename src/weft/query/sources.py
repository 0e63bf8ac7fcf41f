"""A registered text, its tokens, and expressions cut out of it with some stretches replaced."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, NoReturn

from sqlglot import Token, exp

from weft.errors import QueryError
from weft.query.refusals import Refusal
from weft.query.spans import Span, place_of, span_of
from weft.query.tokens import tokens_of


class Edit(NamedTuple):
    """A stretch of the text that reads differently in an expression cut out of it."""

    start: int
    end: int
    sql: str | None
    """What Spark gets instead; None leaves the user's own characters."""
    canonical: str = ""
    """What stands there in the identity of the expression."""


@dataclass(frozen=True)
class Source:
    """One statement: ``span`` is where it stands, positions count from the beginning of the whole ``text``."""

    text: str
    span: Span

    @cached_property
    def tokens(self) -> Sequence[Token]:
        """Its own; read when somebody asks for them."""
        return tokens_of(self.text, self.span)

    def sql(self, span: Span, edits: Iterable[Edit] = ()) -> str:
        """The user's characters of ``span`` with the edits made."""
        pieces = []
        position, end = span
        for edit in sorted(edits, key=lambda edit: edit.start):
            if edit.sql is not None:
                pieces += [self.text[position : edit.start], edit.sql]
                position = edit.end
        pieces.append(self.text[position:end])
        return "".join(pieces)

    def canonical(self, span: Span, edits: Iterable[Edit] = ()) -> str:
        """The identity of an expression: tokens in lower case but for literals, no white space, no comments.

        Nothing is reordered, folded or evaluated, so that equal texts mean the same; that some which differ mean
        the same too only costs sharing.
        """
        stretches = {edit.start: edit for edit in edits}
        words: list[str] = []
        position = span[0]
        for token in self.tokens_in(span):
            if token.start < position:  # inside of an edit, or a suffix of a number: 1L is three tokens of one stretch
                continue
            edit = stretches.get(token.start)
            if edit is not None:
                words.append(edit.canonical)
            else:
                word = self.text[token.start : token.end + 1]
                words.append(word if _is_literal(word) else word.lower())
            position = edit.end if edit else token.end + 1
        return " ".join(word for word in words if word)

    def canonical_with_names(self, span: Span, edits: Iterable[Edit] = ()) -> str:
        """The identity of an expression in which names become names of fields: these keep their letter case."""
        own = [edit._replace(canonical=edit.sql or "") for edit in edits if edit.sql is not None]
        stretches = {edit.start: edit for edit in own}
        words: list[str] = []
        position = span[0]
        for token in self.tokens_in(span):
            if token.start >= position:
                edit = stretches.get(token.start)
                position = edit.end if edit else token.end + 1
                words.append(edit.canonical if edit else self.text[token.start : position])
        return " ".join(word for word in words if word)

    def squeezed(self, span: Span, edits: Iterable[Edit] = ()) -> str:
        """The text of ``span`` with the edits made and one blank for any white space and comments between tokens."""
        stretches = {edit.start: edit for edit in edits}
        pieces: list[str] = []
        position = span[0]
        for token in self.tokens_in(span):
            if token.start < position:
                continue
            if token.start > position and pieces:
                pieces.append(" ")
            edit = stretches.get(token.start)
            replaced = edit.sql if edit is not None else None
            position = edit.end if edit is not None and replaced is not None else token.end + 1
            pieces.append(self.text[token.start : position] if replaced is None else replaced)
        return "".join(pieces)

    def tokens_in(self, span: Span) -> Sequence[Token]:
        """The tokens that begin in ``span``."""
        first = bisect_left(self.tokens, span[0], key=lambda token: token.start)
        last = bisect_left(self.tokens, span[1], key=lambda token: token.start)
        return self.tokens[first:last]

    def refuse(self, where: exp.Expr | Span, refusal: Refusal) -> NoReturn:
        """Raise with the caret under ``where``."""
        raise self.error(where, refusal)

    def error(self, where: exp.Expr | Span, refusal: Refusal) -> QueryError:
        """The refusal with the caret under ``where``."""
        span = (span_of(where) or place_of(where)) if isinstance(where, exp.Expr) else where
        start, end = span or (self.tokens[0].start, self.tokens[0].end + 1)
        return QueryError(
            refusal.message, text=self.text, at=start, length=max(1, end - start), hint=refusal.hint or None
        )


def _is_literal(word: str) -> bool:
    """Whether a token's letter case is data: numbers, and whatever is quoted, with a prefix or without."""
    return word[0].isdigit() or not {"'", '"', "`"}.isdisjoint(word)
