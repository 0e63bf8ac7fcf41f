"""``regr_*(y, x)``: the straight line through pairs without NULL, from the joint moments that ``corr`` keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weft.algebra.aggregate import Aggregate, Types
from weft.algebra.aggregates.counts import counted, lower
from weft.algebra.aggregates.covariances import COLUMNS, CORRELATION
from weft.algebra.aggregates.sums import lower_averages, refuse_order, summed
from weft.algebra.lifting import lift_of
from weft.algebra.measure import Answered, Lift, Recipe
from weft.algebra.numbers import Array, typed

PAIRS = counted(COLUMNS[0])
"""How many pairs there are."""


@dataclass(frozen=True, slots=True)
class Line:
    """What is kept of pairs (y, x): y is the first argument, so the first of what ``corr`` keeps."""

    pairs: Array
    mean_y: Array
    mean_x: Array
    sxy: Array
    syy: Array
    sxx: Array

    @property
    def slope(self) -> Array:
        """By least squares."""
        return np.asarray(self.sxy / self.sxx)

    @property
    def intercept(self) -> Array:
        """Where the line stands at zero."""
        return np.asarray(self.mean_y - self.slope * self.mean_x)

    @property
    def r2(self) -> Array:
        """How much of the spread of y the line explains: all of it where there is none."""
        return np.where(self.syy == 0, 1.0, (self.sxy / np.sqrt(self.sxx * self.syy)) ** 2)

    @property
    def has_pairs(self) -> Array:
        """Whether there is any pair."""
        return self.pairs > 0

    @property
    def has_slope(self) -> Array:
        """Whether x spreads; one pair alone does not."""
        return np.asarray(self.has_pairs & (self.sxx != 0))


def _line(name: str, statistic: Callable[[Line], Array], where: Callable[[Line], Array]) -> Aggregate:
    """A statistic of the line; NULL where there is none."""

    def lowered(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
        line = Line(*measures[0].values)
        with np.errstate(all="ignore"):
            return typed(statistic(line), result, where(line))

    return Aggregate(name, lambda _: Recipe((CORRELATION,), lowered), least=2, most=2, category="algebraic")


def _mean(name: str, of: int) -> Aggregate:
    """The average of one side where the other is there too; of its own type, as ``avg`` gives it."""

    def build(types: Types) -> Recipe:
        total = summed(types[of])
        paired = f"nvl2({{{1 - of}}}, {{{of}}}, null)"
        columns = tuple(column.format(paired) for column in total.columns)

        def lift(_: Types) -> Lift:
            alone = lift_of(total, [types[of]])
            return Lift(tuple(text.format(paired) for text in alone.inputs), alone.rows)

        return Recipe((replace(total, columns=columns, lift=lift), PAIRS), lower_averages)

    def lenient(types: Types) -> Recipe:
        refuse_order(name, types[of])
        return build(types)

    return Aggregate(name, build, lenient, least=2, most=2, category="algebraic")


AGGREGATES = (
    Aggregate("regr_count", lambda _: Recipe((PAIRS,), lower), least=2, most=2),
    _mean("regr_avgx", of=1),
    _mean("regr_avgy", of=0),
    _line("regr_sxx", lambda line: line.sxx, lambda line: line.has_pairs),
    _line("regr_syy", lambda line: line.syy, lambda line: line.has_pairs),
    _line("regr_sxy", lambda line: line.sxy, lambda line: line.has_pairs),
    _line("regr_slope", lambda line: line.slope, lambda line: line.has_slope),
    _line("regr_intercept", lambda line: line.intercept, lambda line: line.has_slope),
    _line("regr_r2", lambda line: line.r2, lambda line: line.has_slope),
)
