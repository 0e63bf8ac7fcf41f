"""``window(ts, '10 minutes', '1 minute', '30 seconds')``, read as Spark reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot import exp

from weft.query import refusals
from weft.query.durations import cql_duration, spark_duration
from weft.query.names import Names
from weft.query.refusals import Refusal
from weft.query.sources import Source
from weft.query.spans import Span, span_of, without_parentheses
from weft.slicing.time_window import TimeWindow

_MICROSECONDS = re.compile(r"-?\s*\d+L?", re.IGNORECASE)
_BRACKET = re.compile(
    r"\s*(?:WINDOW|RANGE)\s+(?P<range>.+?)\s*(?:\bSLIDE\s+(?P<slide>.+?)\s*)?", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class WindowOverTime:
    """A window with the column whose time it cuts; None leaves the column to the stream."""

    event_time: str | None
    window: TimeWindow
    column: str | None = field(default=None, compare=False)
    """The event time as the user wrote it; ``event_time`` is in lower case."""


def read_window(call: exp.Anonymous, names: Names, source: Source) -> WindowOverTime:
    """Read the arguments of ``window``; range < slide is fine here, though not in Spark."""
    if not 2 <= len(call.expressions) <= 4:
        source.refuse(call, refusals.WINDOW_ARGUMENTS)
    time, *durations = (without_parentheses(argument) for argument in call.expressions)
    path = names.path(time) if isinstance(time, exp.Column) else []
    if len(path) != 1 or not isinstance(time, exp.Column):
        source.refuse(time, refusals.EVENT_TIME)
    names.check(time, source)
    lengths = [_microseconds(duration, source) for duration in durations]
    spans = [span_of(duration) or (0, 0) for duration in durations]
    window = _window(lengths, spans, source)
    return WindowOverTime(path[0].name.lower(), window, path[0].name)


@lru_cache(4096)
def window_of(*durations: str) -> TimeWindow | None:
    """The window whose durations are written so, each a plain string or number; None where Spark would refuse it.

    Examples
    --------
    >>> window_of("'1 hour'", "60000000"), window_of("'1 fortnight'")
    (TimeWindow(range=3600000000, slide=60000000, start=0), None)
    """
    try:
        lengths = [int(text) if text.isdigit() else spark_duration(text[1:-1]) for text in durations]
    except ValueError:
        return None
    length, slide, start = _three(lengths)
    return TimeWindow(length, slide, start) if min(length, slide) > 0 and abs(start) < slide else None


def _three(lengths: list[int]) -> tuple[int, int, int]:
    """Length, slide and start, of which only the length has to be given."""
    length, slide, start = (*lengths, *[lengths[0], 0][len(lengths) - 1 :])
    return length, slide, start


def read_bracket(span: Span, source: Source) -> WindowOverTime:
    """Read what stands between the brackets of ``FROM S [WINDOW 10 min SLIDE 2 min]``."""
    found = _BRACKET.fullmatch(source.text, *span)
    if found is None:
        source.refuse(span, refusals.BRACKET)
    parts = [part for part in ("range", "slide") if found[part] is not None]
    spans = [found.span(part) for part in parts]
    lengths = []
    for place in spans:
        try:
            lengths.append(cql_duration(source.text[slice(*place)]))
        except ValueError as error:
            source.refuse(place, Refusal(str(error), "write for example 10 min, 1 h or 30 s"))
    return WindowOverTime(None, _window(lengths, spans, source))


def _window(lengths: list[int], spans: list[Span], source: Source) -> TimeWindow:
    """Check what Spark checks, each complaint under its own argument."""
    length, slide, start = _three(lengths)
    for value, span, what in zip(lengths[:2], spans, ("length", "slide"), strict=False):
        if value <= 0:
            source.refuse(span, refusals.not_positive(what))
    if abs(start) >= slide:
        source.refuse(spans[2], refusals.WINDOW_START)
    return TimeWindow(length, slide, start)


def _microseconds(node: exp.Expr, source: Source) -> int:
    span = span_of(node)
    text = source.text[slice(*span)] if span else ""
    if _MICROSECONDS.fullmatch(text):
        return int(re.sub(r"[\sLl]", "", text))
    literal = _string(node)
    if literal is None:
        source.refuse(node, refusals.NOT_A_DURATION)
    try:
        return spark_duration(literal)
    except ValueError as error:
        source.refuse(node, Refusal(str(error), "write for example '10 minutes' or '1 hour 30 minutes'"))


def _string(node: exp.Expr) -> str | None:
    """The value of a string literal, which may be in several pieces, as 'a' 'b' is."""
    if isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string):
        return node.name
    if isinstance(node, exp.Concat):
        pieces = [_string(piece) for piece in node.expressions]
        return None if None in pieces else "".join(piece for piece in pieces if piece)
    return None
