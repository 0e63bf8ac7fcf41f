"""The one statement that Weft runs, read strictly: a clause that is not known is refused where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import Token, TokenType, exp

from weft.query import refusals
from weft.query.dialect import ExpressionParser
from weft.query.spans import Span

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One entry of the select list."""

    expression: exp.Expr
    alias: str | None


@dataclass(frozen=True, slots=True)
class Select:
    """The parts of ``SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ...``, and where the clauses stand."""

    items: tuple[SelectItem, ...]
    items_clause: Span
    stream: tuple[str, ...]
    alias: str | None
    bracket: Span | None
    """The inside of CQL's ``[WINDOW ... SLIDE ...]``."""
    from_clause: Span
    where: exp.Expr | None
    group: tuple[exp.Expr, ...] | None
    """None for GROUP BY ALL, empty without a GROUP BY."""
    group_clause: Span | None
    having: exp.Expr | None
    having_clause: Span | None

    @property
    def expressions(self) -> Iterator[exp.Expr]:
        """Every expression, clause by clause."""
        yield from (item.expression for item in self.items)
        yield from self.group or ()
        yield from (clause for clause in (self.where, self.having) if clause is not None)


class SelectParser(ExpressionParser):
    """Reads a SELECT; its expressions are read by sqlglot."""

    def read_select(self, tokens: Sequence[Token], text: str) -> Select:
        """Read one SELECT of a file: ``tokens`` are its own, ``text`` is the whole file's."""
        return self._read(self._read_select, tokens, text)

    def _read_select(self) -> Select:
        start = self._curr.start if self._curr else 0
        self._read_head()
        items = tuple(self._separated(self._item))
        items_clause = self._since(start)
        if not self._match(TokenType.FROM):
            self._refuse_here(self._unexpected_or(refusals.NO_FROM))
        start = self._prev.start
        stream, alias, bracket = self._stream()
        from_clause = self._since(start)
        where = self._expression() if self._match(TokenType.WHERE) else None
        group, group_clause = self._clause(TokenType.GROUP_BY, self._group)
        having, having_clause = self._clause(TokenType.HAVING, self._expression)
        return Select(
            items=items,
            items_clause=items_clause,
            stream=stream,
            alias=alias,
            bracket=bracket,
            from_clause=from_clause,
            where=where,
            group=group if group_clause else (),
            group_clause=group_clause,
            having=having,
            having_clause=having_clause,
        )

    def _clause(self, keyword: TokenType, parse: Callable[[], T]) -> tuple[T | None, Span | None]:
        if not self._match(keyword):
            return None, None
        start = self._prev.start
        return parse(), self._since(start)

    def _since(self, start: int) -> Span:
        return start, self._prev.end + 1

    def _read_head(self) -> None:
        if not self._match(TokenType.SELECT):
            self._refuse_here(refusals.statement(self._curr.text))
        if self._at(TokenType.HINT):
            self._refuse_here(refusals.HINT)
        if self._at(TokenType.DISTINCT):
            self._refuse_here(refusals.SELECT_DISTINCT)
        if self._at(TokenType.ALL) and self._next.token_type is not TokenType.DOT:
            self._advance()

    def _item(self) -> SelectItem:
        expression = self._expression()
        named = bool(self._match(TokenType.ALIAS))
        string = self._at(TokenType.STRING)
        alias = None if string else self._parse_id_var(any_token=named, tokens=self.ALIAS_TOKENS)
        if named and not alias:
            self._refuse_here(refusals.missing("a name after AS"))
        return SelectItem(expression, alias.name if alias else None)

    def _stream(self) -> tuple[tuple[str, ...], str | None, Span | None]:
        if self._at(TokenType.L_PAREN, TokenType.VALUES, TokenType.LATERAL):
            self._refuse_here(refusals.SUBQUERY)
        parts = [self._name("the stream's name")]
        while self._match(TokenType.DOT):
            parts.append(self._name("the rest of the stream's name"))
        bracket = self._bracket()
        alias = self._stream_alias()
        bracket = bracket or self._bracket()
        if self._at(TokenType.L_PAREN):
            self._refuse_here(refusals.TABLE_FUNCTION)
        if self._at(TokenType.COMMA):
            self._refuse_here(refusals.SEVERAL_TABLES)
        return tuple(parts), alias, bracket

    def _stream_alias(self) -> str | None:
        if self._match(TokenType.ALIAS):
            return self._name("the stream's alias")
        if refusals.clause(self._curr.text) and self._curr.token_type is not TokenType.IDENTIFIER:
            return None
        alias = self._parse_id_var(any_token=False, tokens=self.TABLE_ALIAS_TOKENS)
        return alias.name if alias else None

    def _bracket(self) -> Span | None:
        if not self._match(TokenType.L_BRACKET):
            return None
        start = self._prev.end + 1
        while self._curr and self._curr.token_type is not TokenType.R_BRACKET:
            self._advance()
        if not self._match(TokenType.R_BRACKET):
            self._refuse_here(refusals.missing("]"))
        return start, self._prev.start

    def _group(self) -> tuple[exp.Expr, ...] | None:
        if self._at(TokenType.ALL) and self._next.token_type is not TokenType.DOT:
            self._advance()
            return None
        return tuple(self._separated(self._group_item))

    def _group_item(self) -> exp.Expr:
        if refusal := refusals.grouping(self._curr.text):
            self._refuse_here(refusal)
        return self._expression()

    def _separated(self, parse: Callable[[], T]) -> list[T]:
        """One or more, with commas between; unlike sqlglot's, none may be missing."""
        found = [parse()]
        while self._match(TokenType.COMMA):
            found.append(parse())
        return found

    def _name(self, what: str) -> str:
        identifier = self._parse_id_var(any_token=False)
        if identifier is None:
            self._refuse_here(refusals.missing(what))
        return identifier.name
