"""Lengths of time as people write them, in whole microseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}

# Spark's window() knows the units in full only, singular or plural.
_SPARK_UNITS = {name: unit for unit in MICROSECONDS for name in (unit, f"{unit}s")}

_CQL_UNITS = _SPARK_UNITS | {
    short: unit
    for unit, shorts in {
        "microsecond": ("us", "usec", "usecs"),
        "millisecond": ("ms", "msec", "msecs"),
        "second": ("s", "sec", "secs"),
        "minute": ("m", "min", "mins"),
        "hour": ("h", "hr", "hrs"),
        "day": ("d",),
        "week": ("w", "wk", "wks"),
    }.items()
    for short in shorts
}

_MONTHS = {"month": 1, "months": 1, "year": 12, "years": 12}

_SPARK_TERM = re.compile(r"\s*([+-]?)\s*(\d*)(\.\d*)?\s+([a-z]+)(?=\s|$)", re.IGNORECASE)
_CQL_TERM = re.compile(r"\s*(\d+)(\.\d*)?\s*([a-z]+)(?![a-z])", re.IGNORECASE)

_LONGEST = 2**63 - 1


def spark_duration(text: str) -> int:
    """Read the string that Spark's ``window`` takes, and refuse what it refuses.

    Raises ValueError with a message that names the culprit.

    Examples
    --------
    >>> spark_duration("1 hour 30 minutes")
    5400000000
    >>> spark_duration("INTERVAL 1.5 seconds")
    1500000
    >>> spark_duration("10 min")
    Traceback (most recent call last):
    ...
    ValueError: no unit 'min': Spark knows microseconds, milliseconds, seconds, minutes, hours, days and weeks
    """
    body = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE)
    total = months = position = 0
    body = body.rstrip()
    while position < len(body) or not position:
        term = _SPARK_TERM.match(body, position)
        if term is None or not _is_spark_number(term):
            raise ValueError(f"cannot read {text!r} as a duration")
        sign = -1 if term[1] == "-" else 1
        unit = term[4].lower()
        if unit in _MONTHS and term[3] is None:
            months += sign * _MONTHS[unit] * int(term[2])
        else:
            total += sign * _microseconds(term[2], term[3], unit, _SPARK_UNITS)
        position = term.end()
    if months:
        raise ValueError("months and years are not of one length")
    return _bounded(total)


def cql_duration(text: str) -> int:
    """Read a length of the papers' CQL, which also knows abbreviations.

    Examples
    --------
    >>> cql_duration("10 min") == cql_duration("600s") == cql_duration("10 minutes")
    True
    >>> cql_duration("20")
    Traceback (most recent call last):
    ...
    ValueError: cannot read '20' as a duration: say which unit, such as '20 seconds'
    """
    total = position = 0
    body = text.rstrip()
    while position < len(body) or not position:
        term = _CQL_TERM.match(body, position)
        if term is None:
            bare = re.fullmatch(r"\s*[\d.]+\s*", body)
            hint = f": say which unit, such as '{body.strip()} seconds'" if bare else ""
            raise ValueError(f"cannot read {text.strip()!r} as a duration{hint}")
        total += _microseconds(term[1], term[2], term[3].lower(), _CQL_UNITS)
        position = term.end()
    return _bounded(total)


def _is_spark_number(term: re.Match[str]) -> bool:
    """Whether digits stand where Spark wants them: ``.5`` and ``5.`` are fine, nine decimals at most."""
    fraction = term[3] or ""
    return bool(term[2] or len(fraction) > 1) and len(fraction) <= 10


def _microseconds(whole: str, fraction: str | None, unit: str, units: Mapping[str, str]) -> int:
    if unit not in units:
        raise ValueError(
            f"no unit {unit!r}: Spark knows microseconds, milliseconds, seconds, minutes, hours, days and weeks"
            if units is _SPARK_UNITS
            else f"no unit {unit!r}: write us, ms, s, min, h, d or w, or a unit in full"
        )
    size = MICROSECONDS[units[unit]]
    if fraction is None:
        return int(whole) * size
    if units is _SPARK_UNITS and units[unit] != "second":
        raise ValueError("only seconds may have decimals")
    digits = fraction[1:] or "0"
    return int(whole or 0) * size + int(digits) * size // int(10 ** len(digits))


def _bounded(total: int) -> int:
    if abs(total) > _LONGEST:
        raise ValueError("longer than 292,471 years")
    return total
