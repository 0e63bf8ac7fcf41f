"""Windows from a file: a JSON object a line, for planning without the rest of the queries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from weft.errors import QueryError
from weft.optimize.items import Question
from weft.query.durations import cql_duration
from weft.slicing.edge_rate import MICROSECONDS
from weft.slicing.time_window import TimeWindow

_FIELDS = {"name", "range", "slide", "start"}


def windows_of(lines: Iterable[str]) -> Iterator[Question]:
    """Read ``{"name": ..., "range": ..., "slide": ...}`` lines: seconds, or texts like "10 min"; ``start`` may follow.

    Examples
    --------
    >>> list(windows_of(['{"name": "a", "range": "1 min", "slide": 2.5}']))
    [('a', TimeWindow(range=60000000, slide=2500000, start=0))]
    """
    windows: dict[tuple[Any, Any, Any], TimeWindow] = {}
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            entry = json.loads(line)
            key = (entry["range"], entry["slide"], entry.get("start", 0))
            if len(entry) > 3:
                _refuse_unknown(entry)
            if key not in windows:
                windows[key] = TimeWindow(*(_microseconds(length) for length in key))
            yield str(entry["name"]), windows[key]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise QueryError(
                f"line {number} is no window: {_reason(error)}",
                text=line.rstrip("\n"),
                at=0,
                length=len(line.rstrip("\n")),
                hint='write {"name": "q1", "range": "10 min", "slide": 30}',
            ) from error


def _refuse_unknown(entry: dict[str, Any]) -> None:
    if unknown := entry.keys() - _FIELDS:
        raise ValueError(f"no such field as {', '.join(sorted(unknown))}")


def _microseconds(length: float | str) -> int:
    if isinstance(length, str):
        return cql_duration(length)
    if isinstance(length, bool) or round(length * MICROSECONDS) != length * MICROSECONDS:
        raise ValueError(f"{length} is no whole number of microseconds")
    return round(length * MICROSECONDS)


def _reason(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
