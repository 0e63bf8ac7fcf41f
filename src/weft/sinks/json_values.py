"""Answers as JSON, by the rules of Spark's ``to_json`` where JSON itself has none."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any


def text(row: Mapping[str, Any]) -> str:
    """One row as a line of JSON.

    Examples
    --------
    >>> text({"at": datetime(2026, 1, 1, tzinfo=UTC), "total": Decimal("1.50"), "mean": math.nan})
    '{"at":"2026-01-01T00:00:00.000000Z","total":"1.50","mean":"NaN"}'
    """
    return json.dumps({name: plain(value) for name, value in row.items()}, separators=(",", ":"), ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value that JSON knows: instants in UTC, decimals as text so that no digit is lost, bytes in Base64."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case datetime():
            return instant(value)
        case Decimal() | date():
            return str(value)
        case timedelta():
            return f"PT{value.total_seconds():.6f}S"
        case bytes():
            return b64encode(value).decode()
        case Mapping():
            return {name: plain(item) for name, item in value.items()}
        case list() if value and all(isinstance(item, tuple) for item in value):  # a map, as Arrow gives it
            return {str(plain(name)): plain(item) for name, item in value}
        case list():
            return [plain(item) for item in value]
        case _:
            return str(value)


def instant(value: datetime) -> str:
    """A point in time, to the microsecond; without a zone it stays without one."""
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
