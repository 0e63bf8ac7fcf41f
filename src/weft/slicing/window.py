"""What a kind of window is: where rows are cut for it, which windows a slice belongs to, when they are due, and since
when slices must be kept. One file a kind; nobody outside this room reads a range or a slide.

Windows of a kind are numbered; a window is answered for the stretches (*panes*) that it covers, and windows with
the same panes share them.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

from weft.slicing.arithmetic import Array
from weft.slicing.progression import Alignment, Progression

LEAST, MOST = -(2**62), 2**62
"""Numbers that no window has: without bounds."""


class Window(Protocol):
    """One window definition, frozen and hashable: equal ones share everything."""

    # --------------------------------------------------------------------------------------------- where rows are cut

    def edges(self, alignment: Alignment = "start") -> tuple[Progression, ...]:
        """Where windows start and end."""

    @property
    def slicing(self) -> Self:
        """The panes of this window, written as a window: those with the same panes share them."""

    def panes_nest_in(self, finer: Self) -> bool:
        """Whether its panes can be put together from those of a finer slicing."""

    def pane_numbers(self, starts: Array) -> Array:
        """The number of the pane that each instant lies in."""

    @property
    def extent(self) -> tuple[int, int]:
        """How many panes lie between the starts of two windows, and how many a window covers."""

    @property
    def period(self) -> int:
        """After how long edges repeat, in microseconds."""

    @property
    def has_gaps(self) -> bool:
        """Whether some rows lie in no window."""

    @property
    def tumbles(self) -> bool:
        """Whether each row lies in exactly one window."""

    # ------------------------------------------------------------------------------------------------ which windows

    @property
    def length(self) -> int:
        """How long a window is, in microseconds."""

    def starts(self, numbers: Array) -> Array:
        """When windows of these numbers start."""

    def ends(self, numbers: Array) -> Array:
        """When they end."""

    def numbers(self, starts: Array) -> Array:
        """The numbers of windows that start then."""

    def covers(self, starts: Array) -> Array | None:
        """Which slices lie in any window at all; None if all do."""

    def covers_text(self, micros: str) -> str | None:
        """The same of an instant, as Spark SQL."""

    # ------------------------------------------------------------------------------------------------------- when

    def due(self, after: int | None, until: int | None, first: int | None = None) -> tuple[int, int]:
        """The least and the largest number of a window that ends after one instant and not after another.

        None starts before ``first``, if that is given. The least is larger than the largest if there is none.
        """

    def open_since(self, first: int | None, watermark: int | None) -> int | None:
        """When the earliest window starts that is still open; None if none was ever closed."""

    def last_end(self, instant: int) -> int:
        """When the last window ends that ends then or before."""

    def last_starts(self, edges: Array) -> Array:
        """The last start at or before each edge."""

    # -------------------------------------------------------------------------------------------------- how much work

    @property
    def overlap(self) -> float:
        """How many windows one row falls into, on average."""

    @property
    def slices(self) -> int:
        """How many slices of a key one window needs at the least."""

    @property
    def per_second(self) -> float:
        """Windows that end in a second of stream."""

    @property
    def fineness(self) -> tuple[Any, ...]:
        """Finer ones first: the order in which coarser panes find finer ones made already."""
