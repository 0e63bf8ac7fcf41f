"""How long the parts of a batch take, and how far event time is."""

from __future__ import annotations

import time


class Clock:
    """Adds up the time of the parts of a batch."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self.began = self._since = time.perf_counter()

    def note(self, part: str) -> None:
        """The time since the last note belongs to ``part``."""
        now = time.perf_counter()
        self.parts[part] = self.parts.get(part, 0.0) + now - self._since
        self._since = now

    @property
    def seconds(self) -> float:
        """All of it so far."""
        return time.perf_counter() - self.began


def largest_of(one: int | None, other: int | None) -> int | None:
    """The larger of two event times, as far as there are any.

    Examples
    --------
    >>> largest_of(3, None), largest_of(None, None)
    (3, None)
    """
    return max((instant for instant in (one, other) if instant is not None), default=None)


def watermark_after(before: int | None, largest: int | None, lateness: int) -> int | None:
    """The largest event time less the allowed lateness; it never goes back.

    Examples
    --------
    >>> watermark_after(None, 100, 10), watermark_after(95, 100, 10), watermark_after(None, None, 10)
    (90, 95, None)
    """
    if largest is None:
        return before
    return largest - lateness if before is None else max(before, largest - lateness)
