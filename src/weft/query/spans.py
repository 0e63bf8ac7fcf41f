"""Where in the text an expression stands.

sqlglot keeps the positions of names only. The parser of ``weft.query.dialect`` notes the stretch of text of everything
that it parses as an operand; what lies between is put together here.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError

Span = tuple[int, int]
"""Half-open, in characters of the text that was registered."""

_META = "weft_span"

_INFIX = (
    *(exp.And, exp.Or),
    *(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift),
    *(exp.Add, exp.Sub, exp.DPipe, exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
)


class UnreadableError(ParseError):
    """The parser's complaint, with the place it is about."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message = message
        self.span = span


def note(node: exp.Expr, span: Span) -> None:
    """Remember where ``node`` stands. The first note counts: outer grammar levels may have swallowed a prefix."""
    node.meta.setdefault(_META, span)


def span_of(node: exp.Expr) -> Span | None:
    """The stretch of text that is exactly ``node``, or None where that is not known."""
    noted: Span | None = node.meta.get(_META)
    if noted is not None:
        return noted
    if isinstance(node, exp.Identifier):
        return (node.meta["start"], node.meta["end"] + 1) if "start" in node.meta else None
    if isinstance(node, exp.Column):
        return _from_first_to_last(node.parts[0], node.parts[-1])
    if isinstance(node, _INFIX):
        # In a chain a + b + c only the operands passed the parser's levels, a + b did not.
        return _from_first_to_last(node.this, node.expression)
    return None


def exact_span_of(node: exp.Expr) -> Span:
    """The same for a node that has to have one; those that lack it come of texts that Spark would refuse too."""
    span = span_of(node)
    if span is None:
        raise UnreadableError("Not understood", place_of(node) or (0, 1))
    return span


def place_of(node: exp.Expr) -> Span | None:
    """A stretch to point at: the node's own, else its first known part."""
    return next((span for part in node.walk(bfs=False) if (span := span_of(part))), None)


def without_parentheses(node: exp.Expr) -> exp.Expr:
    """The expression inside any number of redundant parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _from_first_to_last(first: exp.Expr, last: exp.Expr) -> Span | None:
    start, end = span_of(first), span_of(last)
    return (start[0], end[1]) if start and end else None
