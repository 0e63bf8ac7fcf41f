"""Which windows are answered now: a batch run answers all, a micro-batch those that the watermark has just reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.plan.model import BoundQuery
from weft.query.limits import DEFAULT, Limits
from weft.query.model import Window

LEAST, MOST = -(2**62), 2**62
"""Numbers that no window has: without bounds."""


@dataclass(frozen=True, slots=True)
class Emission:
    """Windows that end after ``after`` and not after ``until``, in microseconds; None is without bound.

    Examples
    --------
    >>> Emission(after=100, until=120).numbers(Window(range=30, slide=10))
    (8, 9)
    >>> Emission(after=100, until=120, first={"q": 85}).numbers(Window(range=30, slide=10), "q")
    (9, 9)
    >>> Emission().numbers(Window(range=30, slide=10)) == (LEAST, MOST)
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
        offset = window.start + window.range
        least = LEAST if self.after is None else (self.after - offset) // window.slide + 1
        most = MOST if self.until is None else (self.until - offset) // window.slide
        if name in self.first:
            least = max(least, first_number(window, self.first[name]))
        return least, most

    def of(self, query: BoundQuery) -> tuple[int, int]:
        """The same for a query."""
        return self.numbers(query.query.window, query.name)

    def first_windows(self, windows: Mapping[str, Window]) -> dict[str, int]:
        """By a query's name: when its first window starts that is answered now or later, where that is bounded.

        Examples
        --------
        >>> Emission(after=100, first={"q": 85}).first_windows({"q": Window(30, 10), "r": Window(30, 10)})
        {'q': 90, 'r': 80}
        """
        numbers = {name: self.numbers(window, name)[0] for name, window in windows.items()}
        starts = {name: window.start + numbers[name] * window.slide for name, window in windows.items()}
        return {name: start for name, start in starts.items() if numbers[name] > LEAST}


EVERYTHING = Emission()
"""A batch run: the watermark is at infinity and nothing was answered before."""


def first_number(window: Window, instant: int) -> int:
    """The number of the first window that starts at or after ``instant``.

    Examples
    --------
    >>> first_number(Window(range=30, slide=10), 85)
    9
    """
    return -((window.start - instant) // window.slide)


def earliest_open(window: Window, watermark: int) -> int:
    """When the first window that ends after ``watermark`` starts.

    Examples
    --------
    >>> earliest_open(Window(range=30, slide=10), 100)
    80
    """
    number = (watermark - window.start - window.range) // window.slide + 1
    return window.start + number * window.slide
