"""The Edges Bitmap of 000 §8.2 and its probing reorder (§8.3): a bit for every instant of the composite slide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

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
    """Which instants of the composite slide are edges.

    Examples
    --------
    >>> one = EdgesBitmap.of([Progression(5), Progression(5, 2)])
    >>> other = EdgesBitmap.of([Progression(3)])
    >>> one.common(other), one.woven(other).rate
    (2, Fraction(3, 5))
    """

    marks: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, progressions: Sequence[Progression], budget: int = CELLS) -> EdgesBitmap:
        """Mark the edges of every progression."""
        period = _affordable(composite_slide(progressions), budget)
        marks = np.zeros(period, dtype=np.bool_)
        for progression in progressions:
            marks[progression.offset :: progression.step] = True
        return cls(marks)

    @property
    def edges(self) -> int:
        """Edges in one composite slide."""
        return int(np.count_nonzero(self.marks))

    @property
    def rate(self) -> Fraction:
        """Edges per microsecond."""
        return Fraction(self.edges, self.marks.size)

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
        return EdgesBitmap(
            np.tile(self.marks, period // self.marks.size) | np.tile(other.marks, period // other.marks.size)
        )


def _affordable(period: int, budget: int) -> int:
    if period > budget:
        raise OverBudgetError(
            f"the composite slide has {_digits(period)} instants, more than the {budget} that a bitmap may take: "
            "count with method='factored'"
        )
    return period


def _digits(number: int) -> str:
    return str(number) if number < 10**15 else f"about 10^{int(number.bit_length() * 0.30103)}"
