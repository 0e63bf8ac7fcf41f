"""Function calls: which are aggregates, what they were given, and which are refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser

from weft.algebra.aggregate import Aggregate
from weft.query import refusals
from weft.query.allowed import ALLOWED, KNOWN, OF_THE_SESSION
from weft.query.functions import (
    AGGREGATES_OF_SPARK,
    GENERATORS,
    MOVING_MOMENTS,
    NONDETERMINISTIC,
    NONDETERMINISTIC_WITHOUT_ARGUMENTS,
    REFLECTION,
    SUPPORTED,
    TIME_WINDOWS,
    WINDOW_FUNCTIONS,
    is_unsupported_aggregate,
)
from weft.query.refusals import Refusal
from weft.query.sources import Source
from weft.query.spans import without_parentheses

NAMES_FIELDS = frozenset({"struct", "arrays_zip"})
"""Functions that call fields as their arguments are called."""

_NULLS = (exp.IgnoreNulls, exp.RespectNulls)
_WITHOUT_PARENTHESES = tuple(SparkParser.NO_PAREN_FUNCTIONS.values())
_NO_ARGUMENTS = (exp.Star, exp.Order, exp.Limit, exp.HavingMax, exp.Alias, exp.Kwarg, exp.Lambda, *_NULLS)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate call taken apart, its pieces still as parsed."""

    function: Aggregate
    arguments: tuple[exp.Expr, ...]
    filter: exp.Expr | None
    ignore_nulls: bool


def is_aggregate(node: exp.Expr) -> bool:
    """Whether ``node`` is a call of an aggregate that Weft supports, with FILTER and IGNORE NULLS or not."""
    return _called(node) in SUPPORTED


def is_window(node: exp.Expr) -> bool:
    """Whether ``node`` is a call ``window(...)``."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def is_argument(node: exp.Expr) -> bool:
    """Whether a function is given ``node``, which it may ask for its name; parentheses are nothing to Spark."""
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return isinstance(around, (exp.Anonymous, exp.Tuple))  # around several values they are a call of struct


def names_fields(node: exp.Expr) -> bool:
    """Whether ``node`` makes structs, whose fields keep the letter case of what is written in it."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in NAMES_FIELDS
    return isinstance(node, (exp.Tuple, exp.ColumnDef))  # (a, b) and STRUCT<a: INT>


def read_aggregate(node: exp.Expr, source: Source) -> AggregateCall:
    """Take an aggregate call apart, and refuse what cannot be shared."""
    ignore_nulls, condition, call = False, None, node
    while not isinstance(call, exp.Anonymous):
        ignore_nulls |= isinstance(call, exp.IgnoreNulls)
        condition = call.expression if isinstance(call, exp.Filter) else condition
        call = call.this
    function = SUPPORTED[call.name.lower()]
    arguments = list(call.expressions)
    _refuse_arguments(node, call, function, source)
    if function.orders_nulls:
        ignore_nulls |= _ignores_nulls(arguments, source)
    elif ignore_nulls:
        source.refuse(node, refusals.no_nulls_option(call.name))
    if arguments and isinstance(arguments[0], exp.Star):
        arguments = []
    return AggregateCall(function, tuple(arguments), condition, ignore_nulls)


def _refuse_arguments(node: exp.Expr, call: exp.Anonymous, function: Aggregate, source: Source) -> None:
    arguments = call.expressions
    for argument in arguments:
        if isinstance(argument, exp.Distinct):
            source.refuse(argument, refusals.DISTINCT_AGGREGATE)
        if isinstance(argument, exp.Star) and function.name == "count" and len(arguments) == 1:
            continue
        if isinstance(argument, _NULLS) and function.orders_nulls:
            continue
        if isinstance(argument, _NO_ARGUMENTS):
            source.refuse(argument, refusals.argument(call.name))
    if len(arguments) < function.least or (function.most is not None and len(arguments) > function.most):
        source.refuse(node, refusals.argument_count(call.name, function.takes, len(arguments)))


def _ignores_nulls(arguments: list[exp.Expr], source: Source) -> bool:
    """Take ``IGNORE NULLS`` inside the parentheses, or the flag that says the same, off the arguments."""
    ignores = isinstance(arguments[0], exp.IgnoreNulls)
    if isinstance(arguments[0], _NULLS):
        arguments[0] = arguments[0].this
    if len(arguments) > 1:
        flag = without_parentheses(arguments.pop())
        if not isinstance(flag, exp.Boolean):
            source.refuse(flag, refusals.NULLS_FLAG)
        ignores |= bool(flag.this)
    return ignores


def refuse_unsupported(node: exp.Expr, source: Source) -> None:
    """Refuse a function, or a form of call, that has no place in a shared query."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, (exp.Anonymous, exp.Filter, *_NULLS)):
        source.refuse(node, refusals.QUALIFIED_FUNCTION)
    if isinstance(node, exp.Star):
        source.refuse(node, refusals.STAR)
    if isinstance(node, (exp.Distinct, exp.Order, exp.Limit, exp.HavingMax)):
        source.refuse(node, refusals.argument("this function"))
    if (moment := _moving_moment(node)) is not None:
        source.refuse(node, refusals.nondeterministic(moment))
    name = _called(node) or _keyword_function(node)
    if name and (refusal := _refusal(name, bool(node.expressions))):
        source.refuse(node, refusal)
    if isinstance(node, (exp.Filter, *_NULLS)):
        source.refuse(node, refusals.FILTER_WITHOUT_AGGREGATE)


def refuse_unknown(node: exp.Expr, source: Source, registered: Collection[str] | None) -> None:
    """Refuse a call of what is neither a function of Spark's nor ``registered`` by the user; None: nobody knows yet."""
    for part in node.walk(bfs=False):
        name = _called(part)
        if name is None or name == "window" or name in (registered or ()):
            continue
        if name not in KNOWN:
            if registered is not None:
                source.refuse(part, unknown(name, registered))
        elif name not in ALLOWED and name not in SUPPORTED and _refusal(name, has_arguments=True) is None:
            source.refuse(part, refusals.not_allowed(name))


def unknown(name: str, registered: Collection[str] = ()) -> Refusal:
    """The words for a function that there is not."""
    close = get_close_matches(name, sorted({*ALLOWED, *SUPPORTED, *registered}), n=1)
    return refusals.no_function(name, close[0] if close else None)


def unknown_around(node: exp.Expr) -> exp.Anonymous | None:
    """The call of something that is no function of Spark's in whose parentheses ``node`` stands."""
    around = node.find_ancestor(exp.Anonymous)
    return around if around is not None and around.name.lower() not in KNOWN else None


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate, supported or not, stands anywhere in ``node``."""
    names = (part.name.lower() for part in node.find_all(exp.Anonymous))
    return any(name in SUPPORTED or name in AGGREGATES_OF_SPARK for name in names)


def _called(node: exp.Expr) -> str | None:
    while isinstance(node, (exp.Filter, *_NULLS)):
        node = node.this
    return node.name.lower() if isinstance(node, exp.Anonymous) else None


def _keyword_function(node: exp.Expr) -> str | None:
    """The name of a function that needs no parentheses."""
    return str(node.sql_name()).lower() if isinstance(node, _WITHOUT_PARENTHESES) else None


def _moving_moment(node: exp.Expr) -> str | None:
    """The word in ``DATE 'today'``, which Spark takes for the day of the run."""
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal):
        return None
    words = node.this.name.lower().split()
    return words[0] if words and words[0] in MOVING_MOMENTS else None


def _refusal(name: str, has_arguments: bool) -> Refusal | None:
    if is_unsupported_aggregate(name):
        return refusals.unsupported_aggregate(name)
    if name in WINDOW_FUNCTIONS:
        return refusals.OVER
    if name in GENERATORS:
        return refusals.generator(name)
    if name in REFLECTION:
        return refusals.not_allowed(name)
    if name in NONDETERMINISTIC or (name in NONDETERMINISTIC_WITHOUT_ARGUMENTS and not has_arguments):
        return refusals.nondeterministic(name)
    if name in OF_THE_SESSION:
        return refusals.of_the_session(name)
    if name in TIME_WINDOWS and name != "window":
        return refusals.other_window(name)
    return None
