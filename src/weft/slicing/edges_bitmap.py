"""The Edges Bitmap of 000 §8.2 and its probing reorder (§8.3): a bit for every instant of the composite slide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from weft.errors import WeftError
from weft.slicing.progression import Progression, composite_slide

SHORT = 1 << 16
"""A composite slide up to which counting bits beats everything else."""
CELLS = 1 << 28
"""Default limit: 256 MiB, a byte an instant."""


class OverBudgetError(WeftError):
    """An exact method that needs more memory or time than it was given."""


@dataclass(frozen=True)
class EdgesBitmap:
    """Which instants of the composite slide are edges, one mark for every ``unit`` of time.

    Examples
    --------
    >>> one = EdgesBitmap.of([Progression(5), Progression(5, 2)])
    >>> other = EdgesBitmap.of([Progression(3)], unit=1)
    >>> one.common(other), one.woven(other).rate
    (2, Fraction(3, 5))
    """

    marks: npt.NDArray[np.bool_]
    unit: int

    @classmethod
    def of(cls, progressions: Sequence[Progression], budget: int = CELLS, unit: int | None = None) -> EdgesBitmap:
        """Mark the edges of every progression; bitmaps that are to be compared need the same unit."""
        unit = unit or unit_of(progressions)
        marks = np.zeros(_affordable(composite_slide(progressions) // unit, budget), dtype=np.bool_)
        for progression in progressions:
            marks[progression.offset // unit :: progression.step // unit] = True
        return cls(marks, unit)

    @property
    def edges(self) -> int:
        """Edges in one composite slide."""
        return int(np.count_nonzero(self.marks))

    @property
    def rate(self) -> Fraction:
        """Edges per microsecond."""
        return Fraction(self.edges, self.marks.size * self.unit)

    def common(self, other: EdgesBitmap, budget: int = CELLS) -> int:
        """Common edges in the composite slide of both, by probing: the one with fewer edges asks the other."""
        probing, probed = (self, other) if self.rate <= other.rate else (other, self)
        period = _affordable(lcm(self.marks.size, other.marks.size), budget)
        first = np.flatnonzero(probing.marks)
        turns = np.arange(0, period, probing.marks.size)
        return int(np.count_nonzero(probed.marks[(first[None, :] + turns[:, None]) % probed.marks.size]))

    def woven(self, other: EdgesBitmap, budget: int = CELLS) -> EdgesBitmap:
        """The edges of both."""
        period = _affordable(lcm(self.marks.size, other.marks.size), budget)
        mine, others = (np.tile(one.marks, period // one.marks.size) for one in (self, other))
        return EdgesBitmap(mine | others, self.unit)


def unit_of(progressions: Iterable[Progression]) -> int:
    """The longest time that all edges are whole multiples of.

    Examples
    --------
    >>> unit_of([Progression(9_000_000, 3_000_000), Progression(6_000_000)])
    3000000
    """
    return gcd(*(number for progression in progressions for number in (progression.step, progression.offset)))


def _affordable(period: int, budget: int) -> int:
    if period > budget:
        raise OverBudgetError(
            f"the composite slide has {_digits(period)} instants, more than the {budget} that a bitmap may take: "
            "count with method='factored'"
        )
    return period


def _digits(number: int) -> str:
    return str(number) if number < 10**15 else f"about 10^{int(number.bit_length() * 0.30103)}"
