"""How many edges a second a set of queries has together: exact, by three methods with one interface.

The papers' two methods are kept because they are what ours is measured against and checked by:

========  =======================================  =====================  =========================================
method    from                                     time                   gives up when
========  =======================================  =====================  =========================================
bitmap    000 §8.2, 004 §5.2.1                     composite slide        the composite slide exceeds the budget
f1        004 ch. 5, with its GCD memo             2^n groups             the groups exceed the budget
factored  ours, :mod:`weft.slicing.density`        far less, see there    never: past the budget it gives an interval
========  =======================================  =====================  =========================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from weft.slicing.density import BUDGET, uncovered
from weft.slicing.edges_bitmap import SHORT, EdgesBitmap, unit_of
from weft.slicing.f1 import f1
from weft.slicing.progression import Progression, composite_slide, prune

Method = Literal["auto", "bitmap", "f1", "factored"]
MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Rate:
    """Edges per microsecond, between ``low`` and ``high``; an exact fraction where the two are equal."""

    low: Fraction
    high: Fraction
    guess: float | None = None
    """Where in the interval the rate probably is, in edges per second; by default in the middle."""

    @property
    def exact(self) -> bool:
        """Whether the rate is known, not only bounded."""
        return self.low == self.high

    @property
    def value(self) -> Fraction:
        """The rate, or the best guess within the interval that holds it."""
        if self.guess is None:
            return (self.low + self.high) / 2
        return min(max(Fraction(self.guess) / MICROSECONDS, self.low), self.high)

    @property
    def per_second(self) -> float:
        """:attr:`value` in edges per second."""
        return float(self.value * MICROSECONDS)

    @property
    def bounds_per_second(self) -> tuple[float, float]:
        """:attr:`low` and :attr:`high` in edges per second."""
        return float(self.low * MICROSECONDS), float(self.high * MICROSECONDS)


def edge_rate(progressions: Iterable[Progression], method: Method = "auto", budget: int | None = None) -> Rate:
    """Edges per microsecond of the union of ``progressions``.

    Parameters
    ----------
    progressions
        Edges of the queries, see :meth:`weft.slicing.window.Window.edges`.
    method
        ``auto`` takes the cheapest of the three.
    budget
        Work allowed: cells of the bitmap, groups of F1, or classes visited by ``factored``.

    Raises
    ------
    weft.slicing.edges_bitmap.OverBudgetError
        If ``bitmap`` or ``f1`` was asked for and needs more than the budget.

    Examples
    --------
    >>> slides = [Progression(slide) for slide in (2, 3, 4, 5, 6)]
    >>> edge_rate(slides).value * 60
    Fraction(44, 1)
    >>> edge_rate(slides, method="f1") == edge_rate(slides, method="bitmap") == edge_rate(slides, method="factored")
    True
    """
    needed = prune(progressions)
    if not needed:
        return Rate(Fraction(0), Fraction(0))
    if method == "auto":
        return _cheapest(needed, budget)
    if method == "bitmap":
        return _exactly(EdgesBitmap.of(needed, **_limit(budget)).rate)
    if method == "f1":
        return _exactly(f1(needed, **_limit(budget)))
    return _factored(needed, budget)


def _cheapest(needed: tuple[Progression, ...], budget: int | None) -> Rate:
    if needed[0].step == needed[-1].step:  # equal steps, different offsets: no common edge
        return _exactly(Fraction(len(needed), needed[0].step))
    if composite_slide(needed) // unit_of(needed) <= SHORT:
        return _exactly(EdgesBitmap.of(needed).rate)
    return _factored(needed, budget)


def _factored(needed: tuple[Progression, ...], budget: int | None) -> Rate:
    low, high = uncovered(((one.step, one.offset) for one in needed), BUDGET if budget is None else budget)
    return Rate(1 - high, 1 - low)


def weaveability(one: Iterable[Progression], other: Iterable[Progression], budget: int | None = None) -> Fraction:
    """Common edges over all edges of two trees (000 Definition 1): 1 if they cut at the same places, 0 if nowhere.

    Examples
    --------
    >>> weaveability([Progression(9), Progression(9, 3)], [Progression(6), Progression(6, 4)])
    Fraction(1, 4)
    """
    left, right = tuple(one), tuple(other)
    together = edge_rate((*left, *right), budget=budget).value
    return (edge_rate(left, budget=budget).value + edge_rate(right, budget=budget).value - together) / together


def _exactly(rate: Fraction) -> Rate:
    return Rate(rate, rate)


def _limit(budget: int | None) -> dict[str, int]:
    return {} if budget is None else {"budget": budget}
