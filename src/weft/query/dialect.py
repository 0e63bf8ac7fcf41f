"""Spark's expression grammar on sqlglot, with the place of every operand.

Three things differ from sqlglot's own Spark dialect:

- functions are kept as they were called (sqlglot folds synonyms and rewrites arguments to ease translation between
  dialects, while here the user's own words go to Spark);
- operators bind as in Spark's grammar (SqlBaseParser.g4, ``booleanExpression`` and ``valueExpression``), as a
  placeholder must take the place of exactly what Spark sees as a sub-expression;
- what no query of ours can hold (sub-queries, OVER, parameters) is refused where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Concatenate, NoReturn, ParamSpec, TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

from weft.errors import QueryError
from weft.query import refusals
from weft.query.refusals import Refusal
from weft.query.spans import Span, UnreadableError, note, place_of, span_of

_WITH_UNIT = frozenset({"DATEADD", "DATE_ADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"})

P = ParamSpec("P")
T = TypeVar("T")


class UnaryPlus(exp.Unary):
    """``+x``, which sqlglot drops; it is no empty word in Spark, where it makes a number of a string."""


def _spanned(
    parse: Callable[Concatenate[ExpressionParser, P], exp.Expr | None],
) -> Callable[Concatenate[ExpressionParser, P], exp.Expr | None]:
    """Let a method of the grammar note the stretch of text that it read."""

    def parse_and_note(self: ExpressionParser, /, *args: P.args, **kwargs: P.kwargs) -> exp.Expr | None:
        first = self._index
        node = parse(self, *args, **kwargs)
        if node is not None and self._index > first:
            note(node, (self._tokens[first].start, self._prev.end + 1))
        return node

    return parse_and_note


class ExpressionParser(SparkParser):
    """sqlglot's expression parser, bent to Spark's grammar."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    # Only what has a syntax of its own inside the parentheses.
    FUNCTION_PARSERS: ClassVar = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM")
    }
    # array(a)[0] is an element of an array; sqlglot takes it for a way to write array(0)
    ARRAY_CONSTRUCTORS: ClassVar = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    COLUMN_OPERATORS: ClassVar = {
        token: SparkParser.COLUMN_OPERATORS[token] for token in (TokenType.DOT, TokenType.DCOLON)
    }
    RANGE_PARSERS: ClassVar = {
        token: SparkParser.RANGE_PARSERS[token]
        for token in (
            TokenType.BETWEEN,
            TokenType.ILIKE,
            TokenType.IN,
            TokenType.IS,
            TokenType.LIKE,
            TokenType.RLIKE,
        )
    }
    TERM: ClassVar = {
        TokenType.DASH: exp.Sub,
        TokenType.PLUS: exp.Add,
        TokenType.DPIPE: exp.DPipe,
    }
    FACTOR: ClassVar = {
        TokenType.DIV: exp.IntDiv,
        TokenType.MOD: exp.Mod,
        TokenType.SLASH: exp.Div,
        TokenType.STAR: exp.Mul,
    }
    # How tightly they bind; all of them do tighter than comparisons.
    BITS: ClassVar = {
        TokenType.PIPE: (0, exp.BitwiseOr),
        TokenType.CARET: (1, exp.BitwiseXor),
        TokenType.AMP: (2, exp.BitwiseAnd),
    }
    COMPARISONS: ClassVar = SparkParser.EQUALITY | SparkParser.COMPARISON
    UNARY_PARSERS: ClassVar = SparkParser.UNARY_PARSERS | {
        TokenType.PLUS: lambda self: self.expression(UnaryPlus(this=self._parse_unary())),
    }

    def read_expression(self, tokens: Sequence[Token], text: str) -> exp.Expr:
        """Read one expression."""
        return self._read(self._expression, tokens, text)

    def _read(self, parse: Callable[[], T], tokens: Sequence[Token], text: str) -> T:
        self.reset()
        self.sql = text
        self._chunks = [list(tokens)]
        self._advance_chunk()
        result = parse()
        if self._curr:
            self._refuse_here(self._unexpected_or(refusals.unexpected(self._curr.text)))
        return result

    def _expression(self) -> exp.Expr:
        expression = self._parse_disjunction()
        if expression is None:
            self._refuse_here(refusals.missing("an expression"))
        return expression

    def _at(self, *kinds: TokenType) -> bool:
        return self._curr.token_type in kinds

    def _unexpected_or(self, refusal: Refusal) -> Refusal:
        """Better words where the token begins a clause that is known."""
        return refusals.clause(self._curr.text) or refusal

    def _refuse_here(self, refusal: Refusal) -> NoReturn:
        token = self._curr or self._prev
        self._refuse((token.start, token.end + 1) if self._curr else (token.end + 1, token.end + 2), refusal)

    def _refuse(self, span: Span, refusal: Refusal) -> NoReturn:
        raise QueryError(
            refusal.message, text=self.sql, at=span[0], length=span[1] - span[0], hint=refusal.hint or None
        )

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise at once, with the place as a number (sqlglot's own carries a picture of it)."""
        token = token or self._curr or self._prev
        if message.startswith("Required keyword"):  # sqlglot's words for a node with a hole in it
            message = "Something is missing"
        raise UnreadableError(message, (token.start, token.end + 1) if token else (0, 1))

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._at(TokenType.SELECT, TokenType.WITH, TokenType.FROM):
            self._refuse_here(refusals.SUBQUERY)
        return None

    def _parse_placeholder(self) -> exp.Expr | None:
        if self._curr.token_type in self.PLACEHOLDER_PARSERS:
            self._refuse_here(refusals.PARAMETER)
        return None

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        """What may follow a function call; the windows of OVER are refused."""
        if isinstance(this, exp.Anonymous):
            _mark_unit(this)
        if self._curr.text.upper() == "WITHIN" and self._next.text.upper() == "GROUP":
            self._refuse_here(refusals.WITHIN_GROUP)
        if self._match_pair(TokenType.FILTER, TokenType.L_PAREN):
            if not self._match(TokenType.WHERE):
                self._refuse_here(refusals.missing("WHERE"))
            this = self.expression(exp.Filter(this=this, expression=self._expression()))
            self._match_r_paren()
        this = self._parse_respect_or_ignore_nulls(this)
        if self._at(TokenType.OVER):
            self._refuse_here(refusals.OVER)
        return this

    @_spanned
    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        """Spark's ``valueExpression predicate?``: BETWEEN, IN, LIKE and IS bind looser than comparisons."""
        this = self._parse_bitwise()
        return self._parse_range(this, parse_is=True) if this is not None and parse_is else this

    def _parse_bitwise(self) -> exp.Expr | None:
        """Spark's ``valueExpression``: what sqlglot takes as operand of predicates and of TRIM, OVERLAY and others."""
        this = self._bits()
        while this is not None and self._match_set(self.COMPARISONS):
            operator = self.COMPARISONS[self._prev.token_type]
            this = self.expression(operator(this=this, expression=self._operand(self._bits)))
        return this

    def _bits(self, loosest: int = 0) -> exp.Expr | None:
        this = self._shift()
        while this is not None and self._curr.token_type in self.BITS:
            binding, operator = self.BITS[self._curr.token_type]
            if binding < loosest:
                break
            self._advance()
            right = self._operand(partial(self._bits, binding + 1))
            this = self.expression(operator(this=this, expression=right))
        return this

    def _shift(self) -> exp.Expr | None:
        this = self._parse_term()
        while this is not None and self._match_shift():
            this = self.expression(exp.BitwiseLeftShift(this=this, expression=self._operand(self._parse_term)))
        return this

    def _match_shift(self) -> bool:
        """``<<``, ``>>`` or ``>>>``, which are single characters to the tokenizer."""
        first = self._curr.token_type
        if first not in (TokenType.LT, TokenType.GT) or self._next.token_type is not first:
            return False
        self._advance(2)
        if first is TokenType.GT:
            self._match(TokenType.GT)
        return True

    def _operand(self, parse: Callable[[], exp.Expr | None]) -> exp.Expr:
        operand = parse()
        if operand is None:
            self._refuse_here(refusals.missing("an expression"))
        return operand

    def _parse_overlay(self) -> Any:
        """``OVERLAY(a PLACING b FROM c)``, and the plain call with commas that sqlglot does not know."""
        index = self._index
        self._parse_bitwise()
        placing = self._curr.text.upper() == "PLACING"
        self._retreat(index)
        if placing:
            return super()._parse_overlay()
        return self.expression(exp.Anonymous(this="overlay", expressions=self._parse_csv(self._parse_lambda)))

    @_spanned
    def _parse_unary(self) -> exp.Expr | None:
        return super()._parse_unary()

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        this = super()._parse_type(parse_interval, fallback_to_identifier)
        # In Spark COLLATE belongs to the operand, in sqlglot it binds like a plus.
        while this is not None and self._match(TokenType.COLLATE):
            this = self.expression(exp.Collate(this=this, expression=self._parse_id_var()))
        return this

    @_spanned
    def _parse_column_reference(self) -> exp.Expr | None:
        return super()._parse_column_reference()

    @_spanned
    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        return super()._parse_lambda(alias)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        # sqlglot comes here after every step of a chain a.b[0].c: the place to note where the step ends.
        if isinstance(this, exp.Column) and isinstance(this.this, exp.Identifier) and "start" not in this.this.meta:
            this.this.update_positions(self._prev)  # sqlglot forgets it for t.true and t.null
        if this is not None and (place := _first_place(this)):
            note(this, (place[0], self._prev.end + 1))
        return super()._parse_bracket(this)


def _mark_unit(call: exp.Anonymous) -> None:
    """DAY in ``date_diff(DAY, a, b)`` is a keyword, though it looks like a column."""
    if call.name.upper() in _WITH_UNIT and len(call.expressions) == 3 and isinstance(call.expressions[0], exp.Column):
        call.expressions[0].replace(exp.var(call.expressions[0].name))


def _first_place(node: exp.Expr) -> Span | None:
    while (span := span_of(node)) is None and isinstance(node.this, exp.Expr):
        node = node.this
    return span or place_of(node)


class WeftSpark(Spark):
    """Spark SQL in which ``window`` is a function like any other, not a keyword."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens without WINDOW."""

        KEYWORDS: ClassVar = {
            word: token for word, token in Spark.Tokenizer.KEYWORDS.items() if token is not TokenType.WINDOW
        }

    Parser = ExpressionParser
