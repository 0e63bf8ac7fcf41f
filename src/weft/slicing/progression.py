"""Where windows start and end: edges as arithmetic progressions, in whole microseconds.

A window's edges repeat every slide, so a set of queries cuts a stream at a union of progressions. Which of them are
needed, which others already contain, and where exactly the cuts lie are answered here; how *many* cuts there are in
:mod:`weft.slicing.edge_rate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import Literal, Protocol

from weft.slicing.density import covers_everything, drop_contained

Alignment = Literal["start", "end"]
"""Which end of windows lies on ``offset + k * slide``: the start, as in Spark and 000, or the end, as in 004 §5.2.3."""


@dataclass(frozen=True, slots=True, order=True)
class Progression:
    """The edges ``offset + k * step`` for every integer k.

    Examples
    --------
    >>> Progression(step=5, offset=12)
    Progression(step=5, offset=2)
    """

    step: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise ValueError(f"a progression's step must be positive, got {self.step}")
        object.__setattr__(self, "offset", self.offset % self.step)


class Edged(Protocol):
    """Whatever cuts a stream."""

    def edges(self, alignment: Alignment = "start") -> tuple[Progression, ...]:
        """Where it does."""


def prune(progressions: Iterable[Progression]) -> tuple[Progression, ...]:
    """Drop every progression that another one contains; the rest in order of step and offset.

    Examples
    --------
    >>> prune([Progression(6, 3), Progression(3), Progression(6, 2)])
    (Progression(step=3, offset=0), Progression(step=6, offset=2))
    """
    needed = drop_contained((progression.step, progression.offset) for progression in progressions)
    return tuple(Progression(step, offset) for step, offset in needed)


def composite(windows: Iterable[Edged], alignment: Alignment = "start") -> tuple[Progression, ...]:
    """The edges of all ``windows`` together, as few progressions as possible without looking at unions.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> composite([TimeWindow(range=16, slide=4), TimeWindow(range=8, slide=4), TimeWindow(range=24, slide=8)])
    (Progression(step=4, offset=0),)
    """
    return prune(edge for window in windows for edge in window.edges(alignment))


def composite_slide(progressions: Iterable[Progression]) -> int:
    """After how long all edges repeat: the least common multiple of the steps.

    Examples
    --------
    >>> composite_slide([Progression(9), Progression(6, 4)])
    18
    """
    return lcm(*(progression.step for progression in progressions))


def contains(finer: Iterable[Progression], coarser: Progression | Iterable[Progression]) -> bool:
    """Whether every edge of ``coarser`` is an edge of the union of ``finer``, so that its windows fall on whole slices.

    Examples
    --------
    >>> contains([Progression(4)], Progression(8, 4)), contains([Progression(4)], Progression(8, 2))
    (True, False)
    >>> contains([Progression(4, 1), Progression(4, 3)], Progression(2, 1))
    True
    """
    cuts = tuple(finer)
    wanted = (coarser,) if isinstance(coarser, Progression) else coarser
    return all(_contains_one(cuts, progression) for progression in wanted)


def _contains_one(finer: Sequence[Progression], coarser: Progression) -> bool:
    return covers_everything(tuple(seen for one in finer if (seen := _seen_from(coarser, one)) is not None))


def _seen_from(base: Progression, other: Progression) -> tuple[int, int] | None:
    """The k for which ``base.offset + k * base.step`` is an edge of ``other``, as (modulus, residue); None without any.

    They exist iff the offsets agree modulo the gcd of the steps, the overlap check of 004 Eq. 5.6.
    """
    common = gcd(base.step, other.step)
    distance, remainder = divmod(other.offset - base.offset, common)
    if remainder:
        return None
    modulus = other.step // common
    return modulus, distance * pow(base.step // common, -1, modulus) % modulus


def edges_between(progressions: Iterable[Progression], low: int, high: int) -> list[int]:
    """All edges in the half-open interval (low, high], in order: ends of slices, as the papers list them.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> edges_between(composite([TimeWindow(range=12, slide=9), TimeWindow(range=10, slide=6)]), 0, 18)
    [3, 4, 6, 9, 10, 12, 16, 18]
    """
    edges: set[int] = set()
    for progression in progressions:
        first = low + 1 + (progression.offset - low - 1) % progression.step
        edges.update(range(first, high + 1, progression.step))
    return sorted(edges)
