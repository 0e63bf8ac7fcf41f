"""Edges of all items on one stretch of time, as bits: the Edges Bitmap of 000 §8.2, but of a length we can afford.

Where the composite slide of everything fits, the stretch is the composite slide and counting on it is exact. Otherwise
it is a sample: as long as the limit allows, beginning at an arbitrary instant, because at 0 all queries have an edge.
Where edges are sparse, only instants that are an edge of some item get a bit, so that the stretch becomes longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np
import numpy.typing as npt

from weft.optimize.items import Item
from weft.slicing.edge_rate import MICROSECONDS
from weft.slicing.edges_bitmap import unit_of
from weft.slicing.progression import Progression

Words = npt.NDArray[np.uint64]

_ARBITRARY = 1_315_423_911_000_003


@dataclass(frozen=True)
class Horizon:
    """The instants ``start <= t < start + length`` that have a bit."""

    start: int
    length: int
    unit: int
    """Instants that are no multiple of this are nobody's edge."""
    instants: npt.NDArray[np.int64] | None
    """Those with a bit, ascending; None if all multiples of ``unit`` have one."""
    exact: bool
    """Whether the stretch is the composite slide of everything."""

    @property
    def words(self) -> int:
        """64-bit words that an item takes."""
        return -(-self.bits // 64)

    @property
    def bits(self) -> int:
        """Instants that have a bit."""
        return self.length // self.unit if self.instants is None else self.instants.size

    @property
    def per_second(self) -> float:
        """The edge rate that one marked bit stands for."""
        return MICROSECONDS / self.length

    def mark(self, progressions: Iterable[Progression], words: Words) -> None:
        """Set the bits of all edges of ``progressions``."""
        flags = np.zeros(words.size * 64, dtype=np.bool_)
        for progression in progressions:
            first = (progression.offset - self.start) % progression.step
            if self.instants is None:
                flags[first // self.unit : self.length // self.unit : progression.step // self.unit] = True
            else:
                edges = np.arange(first, self.length, progression.step, dtype=np.int64)
                flags[np.searchsorted(self.instants, edges)] = True
        words[:] = np.packbits(flags, bitorder="little").view(np.uint64)


def horizon_of(items: Sequence[Item], bits: int) -> Horizon:
    """The stretch on which to compare ``items`` with at most ``bits`` bits each."""
    progressions = sorted({progression for item in items for progression in item.progressions})
    unit = unit_of(progressions)
    period = 1
    for step in {progression.step for progression in progressions}:
        period = lcm(period, step)
        if period > bits * unit:
            break
    if period <= bits * unit:
        return Horizon(0, period, unit, None, exact=True)
    start = _ARBITRARY * unit
    density = sum(1 / progression.step for progression in progressions)
    if density * unit >= 1:
        return Horizon(start, bits * unit, unit, None, exact=False)
    length = int(bits / density)
    edges = [np.arange((one.offset - start) % one.step, length, one.step, dtype=np.int64) for one in progressions]
    return Horizon(start, length, unit, np.unique(np.concatenate(edges)), exact=False)
