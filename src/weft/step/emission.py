"""Which windows are answered now: a batch run answers all, a micro-batch those that the watermark has just reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.plan.model import BoundQuery
from weft.query.limits import DEFAULT, Limits
from weft.slicing.window import Window


@dataclass(frozen=True, slots=True)
class Emission:
    """Windows that end after ``after`` and not after ``until``, in microseconds; None is without bound.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> Emission(after=100, until=120).numbers(TimeWindow(range=30, slide=10))
    (8, 9)
    >>> Emission(after=100, until=120, first={"q": 85}).numbers(TimeWindow(range=30, slide=10), "q")
    (9, 9)
    >>> from weft.slicing.window import LEAST, MOST
    >>> Emission().numbers(TimeWindow(range=30, slide=10)) == (LEAST, MOST)
    True
    """

    after: int | None = None
    until: int | None = None
    first: Mapping[str, int] = field(default_factory=dict)
    """By a query's name: when its first window may start, where it came after the stream had begun."""
    limits: Limits = DEFAULT
    """How many answers a query may have, and how many keys."""

    def numbers(self, window: Window, name: str = "") -> tuple[int, int]:
        """The least and the largest number of a window that is answered now; the first is larger if none is."""
        return window.due(self.after, self.until, self.first.get(name))

    def of(self, query: BoundQuery) -> tuple[int, int]:
        """The same for a query."""
        return self.numbers(query.window, query.name)

    def first_windows(self, windows: Mapping[str, Window]) -> dict[str, int]:
        """By a query's name: when its first window starts that is answered now or later, where that is bounded.

        Examples
        --------
        >>> from weft.slicing.time_window import TimeWindow
        >>> Emission(after=100, first={"q": 85}).first_windows({"q": TimeWindow(30, 10), "r": TimeWindow(30, 10)})
        {'q': 90, 'r': 80}
        """
        starts = {name: window.open_since(self.first.get(name), self.after) for name, window in windows.items()}
        return {name: start for name, start in starts.items() if start is not None}


EVERYTHING = Emission()
"""A batch run: the watermark is at infinity and nothing was answered before."""
