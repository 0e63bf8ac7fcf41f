"""Windows in event time: a range and a slide from a start on, in whole microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from weft.slicing.arithmetic import Array, pane_numbers
from weft.slicing.progression import Alignment, Progression, contains
from weft.slicing.window import LEAST, MOST

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Half-open windows ``[start + k * slide, start + k * slide + range)``, in microseconds since the epoch.

    Examples
    --------
    >>> TimeWindow(range=600_000_000, slide=60_000_000).overlap
    10.0
    """

    range: int
    slide: int
    start: int = 0

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise ValueError(f"range and slide must be positive, got {self.range} and {self.slide}")
        object.__setattr__(self, "start", self.start % self.slide)

    @property
    def fragment(self) -> int:
        """Where in a slide windows end, counted from where they start; 0 if range is a multiple of slide."""
        return self.range % self.slide

    @property
    def tumbles(self) -> bool:
        """Whether each row lies in exactly one window."""
        return self.range == self.slide

    @property
    def has_gaps(self) -> bool:
        """Whether some rows lie in no window."""
        return self.range < self.slide

    @property
    def length(self) -> int:
        """How long a window is, in microseconds."""
        return self.range

    @property
    def period(self) -> int:
        """After how long edges repeat, in microseconds."""
        return self.slide

    # --------------------------------------------------------------------------------------------- where rows are cut

    def edges(self, alignment: Alignment = "start") -> tuple[Progression, ...]:
        """Where windows start and end: one progression if range is a multiple of slide, else two.

        Examples
        --------
        >>> TimeWindow(range=12, slide=9).edges()
        (Progression(step=9, offset=0), Progression(step=9, offset=3))
        >>> TimeWindow(range=12, slide=9).edges("end")
        (Progression(step=9, offset=0), Progression(step=9, offset=6))
        """
        aligned = Progression(self.slide, self.start)
        if self.fragment == 0:
            return (aligned,)
        shift = self.range if alignment == "start" else -self.range
        return (aligned, Progression(self.slide, self.start + shift))

    @property
    def slicing(self) -> TimeWindow:
        """The panes of this window, written as a window.

        Examples
        --------
        >>> TimeWindow(range=30, slide=10).slicing, TimeWindow(range=35, slide=10).slicing
        (TimeWindow(range=10, slide=10, start=0), TimeWindow(range=5, slide=10, start=0))
        """
        return TimeWindow(range=self.fragment or self.slide, slide=self.slide, start=self.start)

    def panes_nest_in(self, finer: TimeWindow) -> bool:
        """Whether its panes can be put together from those of a finer slicing.

        Examples
        --------
        >>> TimeWindow(15, 15).panes_nest_in(TimeWindow(5, 5)), TimeWindow(15, 15).panes_nest_in(TimeWindow(9, 9))
        (True, False)
        """
        return _nests(finer, self)

    def pane_numbers(self, starts: Array) -> Array:
        """The number of the pane that each instant lies in."""
        return pane_numbers(starts, self.slide, self.start, self.fragment)

    @property
    def extent(self) -> tuple[int, int]:
        """How many panes lie between the starts of two windows, and how many a window covers.

        Examples
        --------
        >>> TimeWindow(range=30, slide=10).extent, TimeWindow(range=35, slide=10).extent, TimeWindow(3, 10).extent
        ((1, 3), (2, 7), (2, 1))
        """
        whole = self.range // self.slide
        return (2, 2 * whole + 1) if self.fragment else (1, whole)

    # ------------------------------------------------------------------------------------------------ which windows

    def starts(self, numbers: Array) -> Array:
        """When windows of these numbers start."""
        return numbers * self.slide + self.start

    def ends(self, numbers: Array) -> Array:
        """When they end."""
        return numbers * self.slide + (self.start + self.range)

    def last_end(self, instant: int) -> int:
        """When the last window ends that ends then or before."""
        return instant - (instant - self.start - self.range) % self.slide

    def numbers(self, starts: Array) -> Array:
        """The numbers of windows that start then."""
        return (starts - self.start) // self.slide

    def covers(self, starts: Array) -> Array | None:
        """Which slices lie in any window at all; None if all do."""
        return (starts - self.start) % self.slide < self.range if self.has_gaps else None

    def covers_text(self, micros: str) -> str | None:
        """The same of an instant, as Spark SQL."""
        return f"pmod({micros} - {self.start}L, {self.slide}L) < {self.range}L" if self.has_gaps else None

    # ------------------------------------------------------------------------------------------------------- when

    def due(self, after: int | None, until: int | None, first: int | None = None) -> tuple[int, int]:
        """The least and the largest number of a window that ends after one instant and not after another.

        Examples
        --------
        >>> TimeWindow(range=30, slide=10).due(100, 120), TimeWindow(range=30, slide=10).due(100, 120, first=85)
        ((8, 9), (9, 9))
        >>> TimeWindow(range=30, slide=10).due(None, None) == (LEAST, MOST)
        True
        """
        offset = self.start + self.range
        least = LEAST if after is None else (after - offset) // self.slide + 1
        most = MOST if until is None else (until - offset) // self.slide
        return least if first is None else max(least, self._first_number(first)), most

    def _first_number(self, instant: int) -> int:
        """The number of the first window that starts at or after ``instant``."""
        return -((self.start - instant) // self.slide)

    def open_since(self, first: int | None, watermark: int | None) -> int | None:
        """When the earliest window starts that is still open; None if none was ever closed.

        Examples
        --------
        >>> TimeWindow(range=30, slide=10).open_since(None, 100), TimeWindow(range=30, slide=10).open_since(85, None)
        (80, 90)
        """
        least, _ = self.due(watermark, None, first)
        return None if least == LEAST else self.start + least * self.slide

    def last_starts(self, edges: Array) -> Array:
        """The last start at or before each edge."""
        return (edges - self.start) // self.slide * self.slide + self.start

    # -------------------------------------------------------------------------------------------------- how much work

    @property
    def overlap(self) -> float:
        """How many windows one row falls into, on average."""
        return self.range / self.slide

    @property
    def slices(self) -> int:
        """How many slices of a key one window needs at the least."""
        return (2 if self.fragment else 1) * self.range // self.slide

    @property
    def per_second(self) -> float:
        """Windows that end in a second of stream."""
        return MICROSECONDS / self.slide

    @property
    def fineness(self) -> tuple[int, int]:
        """Finer ones first."""
        return self.slide, self.range


@lru_cache(maxsize=1 << 16)
def _nests(finer: TimeWindow, coarser: TimeWindow) -> bool:
    return may_nest(finer, coarser) and contains(finer.edges(), coarser.edges())


def may_nest(finer: TimeWindow, coarser: TimeWindow) -> bool:
    """Whether the edges of one window might contain those of another: quick, and seldom wrong.

    At most two progressions of a step cover another one only if that step, or half of it, divides the other's.

    Examples
    --------
    >>> may_nest(TimeWindow(4, 4), TimeWindow(8, 8)), may_nest(TimeWindow(4, 4), TimeWindow(9, 9))
    (True, False)
    """
    return 2 * coarser.slide % finer.slide == 0
