"""Figures as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.filesize import decimal

NONE = "-"


def count(value: float | None) -> str:
    """A number with thousands apart.

    Examples
    --------
    >>> count(1234567), count(3.14159), count(None)
    ('1,234,567', '3.1', '-')
    """
    if value is None:
        return NONE
    return f"{value:,.1f}" if isinstance(value, float) and abs(value) < 100 and value % 1 else f"{value:,.0f}"


def size(value: int | None) -> str:
    """A number of bytes.

    Examples
    --------
    >>> size(34_500_000)
    '34.5 MB'
    """
    return NONE if value is None else decimal(value)


def span(seconds: float | None) -> str:
    """A length of time in its two largest units.

    Examples
    --------
    >>> span(0.0421), span(3.2), span(75), span(7260), span(200_000)
    ('42 ms', '3.2 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds is None:
        return NONE
    if abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    if abs(seconds) < 60:
        return f"{seconds:.1f} s"
    for unit, length, part, inner in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if abs(seconds) >= length:
            whole, rest = divmod(int(seconds), length)
            return f"{whole} {unit} {rest // inner} {part}"
    raise AssertionError(seconds)


def instant(microseconds: int | None) -> str:
    """A point of event time, in UTC.

    Examples
    --------
    >>> instant(1_700_000_000_000_000)
    '2023-11-14 22:13:20'
    """
    if microseconds is None:
        return NONE
    try:
        return f"{datetime.fromtimestamp(microseconds // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        # a drained stream's watermark is the end of time
        return "end of time" if microseconds > 0 else "beginning of time"
