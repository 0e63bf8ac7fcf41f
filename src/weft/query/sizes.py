"""How large values are that a query's own constants ask for: ``repeat('x', 500000000)`` is told before it is made.

Spark makes such a value while it plans, before any row is seen and before anybody could look at its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from weft.errors import QueryError
from weft.query.dialect import WeftSpark
from weft.query.limits import Limits
from weft.query.model import Query
from weft.query.spans import UnreadableError

ELEMENT = 8
"""Bytes that an element of an array takes at least."""
_GROWING = re.compile(r"\b(repeat|space|[lr]pad|array_repeat|sequence|format_string|printf)\s*\(", re.IGNORECASE)
_WIDTH = re.compile(r"%[-+ #0,(]*(\d+)")


@dataclass(frozen=True)
class Sized:
    """A call of a function that makes large values, and the bytes of its result."""

    function: str
    bytes: int


def too_large(query: Query, limits: Limits) -> QueryError | None:
    """What is wrong with a query whose constants ask for a value that is larger than any may be."""
    sized = max(_sized_in(query), key=lambda one: one.bytes, default=None)
    if sized is None:
        return None
    what = f"{sized.function} makes a value of {sized.bytes:,} bytes here"
    message = limits.beyond("value_bytes", sized.bytes, what)
    if message is None:
        return None
    at = query.text.lower().find(sized.function)
    return QueryError(message, text=query.text, at=max(at, 0), length=len(sized.function), query=query.name)


def _sized_in(query: Query) -> Iterator[Sized]:
    if not _GROWING.search(query.text):
        return
    expressions = [query.where, *query.keys]
    for call in query.calls:
        expressions += [call.filter, *call.arguments]
    texts = [expression.sql for expression in expressions if expression is not None]
    texts += [output.sql for output in query.outputs] + ([query.having] if query.having else [])
    for text in texts:
        if _GROWING.search(text):
            yield from sizes(text)


def sizes(text: str) -> list[Sized]:
    """The calls of an expression whose results have a size that its own constants tell.

    Examples
    --------
    >>> sizes("max(repeat('xy', 5 * 100)) + length(rpad(s, 40, ' '))")
    [Sized(function='repeat', bytes=1000), Sized(function='rpad', bytes=40)]
    >>> sizes("repeat(s, n)")
    []
    """
    try:
        tree = sqlglot.parse_one(text, dialect=WeftSpark)
    except (SqlglotError, UnreadableError, QueryError, RecursionError):
        return []  # whoever reads it for what it means tells what is wrong with it
    found = ((call, _bytes(call)) for call in tree.find_all(exp.Anonymous))
    return [Sized(call.name.lower(), size) for call, size in found if size is not None]


def _bytes(node: exp.Expr) -> int | None:
    """The bytes of a value; None if its constants do not tell."""
    if isinstance(node, exp.Paren | exp.Cast | exp.TryCast):
        return _bytes(node.this)
    if isinstance(node, exp.Literal):
        return len(node.name.encode()) if node.is_string else ELEMENT
    if not isinstance(node, exp.Anonymous):
        return None
    name, arguments = node.name.lower(), node.expressions
    if name in {"format_string", "printf"} and arguments and isinstance(arguments[0], exp.Literal):
        return sum(int(width) for width in _WIDTH.findall(arguments[0].name))
    numbers = [_number(argument) for argument in arguments]
    match name, numbers:
        case (("repeat" | "array_repeat"), [_, int(times)]):
            least = ELEMENT if name == "array_repeat" else 1
            # of a column nobody knows how long its values are: at least that
            return max(_bytes(arguments[0]) or least, least) * max(times, 0)
        case "space", [int(times)]:
            return max(times, 0)
        case (("lpad" | "rpad"), [_, int(width), *_]):
            return max(width, 0)
        case "sequence", [int(first), int(last), *steps]:
            step = steps[0] if steps else 1
            return None if not step else ELEMENT * (abs(last - first) // abs(step) + 1)
    return None


def _number(node: exp.Expr) -> int | None:
    """The number that a constant expression stands for; None if it is none."""
    match node:
        case exp.Paren() | exp.Cast() | exp.TryCast():
            return _number(node.this)
        case exp.Literal():
            try:
                return int(float(node.name))
            except (ValueError, OverflowError):
                return None
        case exp.Neg():
            inner = _number(node.this)
            return None if inner is None else -inner
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv():
            left, right = _number(node.left), _number(node.right)
            if left is None or right is None:
                return None
            return _OPERATIONS[type(node)](left, right)
        case exp.Anonymous() if node.name.lower() in _FUNCTIONS and len(node.expressions) == 2:
            left, right = (_number(argument) for argument in node.expressions)
            if left is None or right is None or abs(right) > 62:
                return None
            return _FUNCTIONS[node.name.lower()](left, right)
    return None


_Operation = Callable[[int, int], int | None]
_OPERATIONS: dict[type[exp.Expr], _Operation] = {
    exp.Add: lambda left, right: left + right,
    exp.Sub: lambda left, right: left - right,
    exp.Mul: lambda left, right: left * right,
    exp.Div: lambda left, right: left // right if right else None,
    exp.IntDiv: lambda left, right: left // right if right else None,
}
_FUNCTIONS: dict[str, _Operation] = {
    "pow": lambda left, right: int(float(left) ** right) if left else 0,
    "power": lambda left, right: int(float(left) ** right) if left else 0,
    "shiftleft": lambda left, right: left << right if right >= 0 else None,
}
