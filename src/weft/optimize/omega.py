"""Ω: how many operations a technique needs per edge of a tree (004 Table 11 and §7.2, with the errata).

nP = range times the tree's edge rate is how many partials a window is assembled from. It grows with every query that
joins the tree, so Ω has to be computed anew for every merge. A window of one partial (nP <= 1) costs nothing, except
with the papers' panes, which always count range / slide.

``bulk`` is what the Spark step does with a whole batch of slices: for every slicing among the tree's queries each
slice is merged into a pane once, and windows are then read off the panes, an operation an answer. So Ω is how many
slicings there are, and what windows cost is counted with the answers.

Errata followed (see docs/optimizers.md): SlickDeque (Inv) keeps the factor 2 that Eq. 7.6 drops; the mean length of the
monotonic deque is the harmonic number of nP, not the sum of 1/i!.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from math import floor, log, log2

from numba import njit

from weft.slicing.progression import composite, composite_slide, edges_between
from weft.slicing.window import Window

B_INT = 1.5
"""B-Int answers from dyadic intervals: FlatFAT's count times this."""


class TechniqueCode(IntEnum):
    """How answers are built from partials; the value is what the compiled code is told."""

    PANES = 0
    FLATFAT = 1
    FLATFIT = 2
    SLICKDEQUE_INV = 3
    SLICKDEQUE_NONINV = 4
    PANES_INV = 5
    TWOSTACKS = 6
    DABA = 7
    B_INT = 8
    TWOSTACKS_LITE = 9
    DABA_LITE = 10
    BULK = 11

    @property
    def label(self) -> str:
        """Its name on the command line."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def named(cls, label: str) -> TechniqueCode:
        """The technique with this name.

        Examples
        --------
        >>> TechniqueCode.named("slickdeque-inv")
        <TechniqueCode.SLICKDEQUE_INV: 3>
        """
        try:
            return cls[label.upper().replace("-", "_")]
        except KeyError:
            raise ValueError(f"no technique {label!r}: one of {', '.join(one.label for one in cls)}") from None


SUMS = (TechniqueCode.PANES, TechniqueCode.BULK)
"""Techniques whose Ω is a plain sum over the tree's items."""


def overlap(technique: TechniqueCode, windows_per_edge: float, ranges: Sequence[int], edge_rate: float) -> float:
    """Ω of a tree.

    Parameters
    ----------
    technique
        How answers are built.
    windows_per_edge
        Sum of range / slide over the tree's queries; with ``bulk`` the number of slicings.
    ranges
        Distinct ranges, ascending, in any unit of time.
    edge_rate
        Edges of the tree in the same unit of time.

    Examples
    --------
    >>> overlap(TechniqueCode.PANES, 6.0, [8, 16], 0.25)
    6.0
    >>> overlap(TechniqueCode.SLICKDEQUE_INV, 6.0, [8, 16], 0.25)
    4.0
    """
    if technique in SUMS:
        return windows_per_edge
    tally = (0, 0.0, -1.0, 0.0)
    # kernels are kept on disk by the types of their arguments: a class of ours may change its name
    code = int(technique)
    for one in ranges:
        tally = with_range(code, tally, one * edge_rate)
    return float(tallied(code, tally))


@njit(cache=True)
def with_range(
    technique: int, tally: tuple[int, float, float, float], partials: float
) -> tuple[int, float, float, float]:
    """Add one distinct range, longest last: (ranges, operations, last whole number of partials, longest)."""
    ranges, operations, last, _ = tally
    partials = floor(partials * 1e6 + 0.5) / 1e6  # the formulas jump at whole numbers, which must be met exactly
    if partials <= 1.0:
        return tally
    if technique in (TechniqueCode.FLATFAT, TechniqueCode.B_INT):  # Eq. 7.4
        below = floor(log2(partials - 1.0)) if partials > 2.0 else 0.0
        operations += below + (partials - 1.0) / 2.0 ** floor(log2(partials))
    elif (
        technique == TechniqueCode.SLICKDEQUE_INV
    ):  # Eq. 7.6: running aggregates over the same number of partials are one
        whole = floor(partials + 0.5)
        if whole != last:
            operations += 2.0
        last = float(whole)
    return ranges + 1, operations, last, partials


@njit(cache=True)
def tallied(technique: int, tally: tuple[int, float, float, float]) -> float:
    """Ω when all ranges were counted."""
    ranges, operations, _, longest = tally
    if ranges == 0:
        return 0.0
    if technique in (TechniqueCode.FLATFIT, TechniqueCode.TWOSTACKS, TechniqueCode.TWOSTACKS_LITE):
        return 3.0 * ranges  # Eq. 7.5
    if technique == TechniqueCode.SLICKDEQUE_NONINV:  # Eq. 7.7
        return 2.0 - 2.0 / longest + ranges + harmonic(longest)
    if technique == TechniqueCode.PANES_INV:
        return 2.0 * ranges
    if technique == TechniqueCode.DABA:
        return 5.0 * ranges
    if technique == TechniqueCode.DABA_LITE:
        return 4.0 * ranges
    if technique == TechniqueCode.B_INT:
        return B_INT * operations
    return operations


@njit(cache=True)
def harmonic(count: float) -> float:
    """H_n: the mean number of right-to-left maxima among n random values, so the mean length of a monotonic deque."""
    if count >= 32.0:
        return log(count) + 0.5772156649015329 + 0.5 / count
    total = 0.0
    for index in range(1, floor(count) + 1):
        total += 1.0 / index
    return total + (count - floor(count)) / (floor(count) + 1)


def running_aggregates(windows: Sequence[Window]) -> int:
    """Running aggregates that SlickDeque (Inv) really keeps: numbers of partials that occur at some edge (004 §7.2).

    Walks the composite slide, so only for sets with a short one; twice this is the exact Ω that
    :func:`overlap` approximates.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> running_aggregates([TimeWindow(range=12, slide=9), TimeWindow(range=10, slide=6)])
    3
    """
    cuts = composite(windows)
    period = composite_slide(cuts)
    longest = max(window.length for window in windows)
    edges = edges_between(cuts, -longest - period, period)
    place = {edge: at for at, edge in enumerate(edges)}
    counts = {
        place[end] - place[end - window.length]
        for window in windows
        for end in edges
        if end > 0 and window.last_end(end) == end
    }
    return len(counts)
