"""``covar_pop``, ``covar_samp``, ``corr``: joint moments of pairs without NULL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from weft.algebra import monoids
from weft.algebra.aggregate import Aggregate, Types
from weft.algebra.lifting import double_input, doubles, present
from weft.algebra.measure import (
    Answered,
    Decoded,
    Decoder,
    Lift,
    Lifted,
    Lowering,
    Measure,
    Recipe,
    stored_doubles,
)
from weft.algebra.monoid import Monoid
from weft.algebra.numbers import as_floats, typed

COLUMNS = (
    "regr_count({1}, {0})",
    "sum(nvl2({1}, double({0}), null))",
    "sum(nvl2({0}, double({1}), null))",
    "regr_sxy({1}, {0})",
    "regr_sxx({1}, {0})",
    "regr_syy({1}, {0})",
)


def decoder(monoid: Monoid) -> Decoder:
    """The count of pairs, both means, the co-moment and, for corr, both spreads."""

    def decode(columns: Sequence[pa.Array]) -> Decoded:
        n, *others = (as_floats(column, 0.0) for column in columns)
        means = [total / np.maximum(n, 1.0) for total in others[:2]]
        # beside what is not finite Spark's own co-moment goes by the order of rows, and of the arguments
        finite = np.isfinite(others[0]) & np.isfinite(others[1])
        return Decoded(monoid, (n, *means, np.where(finite, others[2], np.nan), *others[3:]))

    return decode


def encode(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    """Sums instead of means again."""
    n, *others = merged.values
    return stored_doubles([n, others[0] * n, others[1] * n, *others[2:]], n == 0, originals)


def lift(monoid: Monoid, types: Types) -> Lift:
    """A pair has no spread; but what is not finite spreads to NaN, as in Spark."""
    counts, statistics = pa.array([], pa.int64()), [pa.array([], pa.float64())] * (monoid.width - 1)

    def rows(columns: Sequence[pa.Array], length: int) -> Lifted:
        both = present(columns, length)
        x, y = (np.where(both, doubles(column), 0.0) for column in columns)
        with np.errstate(invalid="ignore"):
            spreads = ((x - x) + (y - y), x - x, y - y)
        numbers = (both.astype(np.float64), x, y, *spreads[: monoid.width - 3])
        return Lifted(Decoded(monoid, numbers), [counts, *statistics])

    return Lift((double_input(0, types), double_input(1, types)), rows)


def _joined(columns: tuple[str, ...], monoid: Monoid) -> Measure:
    return Measure(columns, decoder(monoid), monoid, encode, lift=partial(lift, monoid))


COVARIANCE = _joined(COLUMNS[:4], monoids.covariance)
CORRELATION = _joined(COLUMNS, monoids.correlation)


def _covariance(*, population: bool) -> Lowering:
    def lower(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
        n, _, _, co_moment = measures[0].values
        degrees = n if population else n - 1
        with np.errstate(all="ignore"):
            return typed(co_moment / degrees, result, degrees > 0)

    return lower


def _correlation(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Pearson's; NULL below two pairs and where one side does not spread, also if the other does not end."""
    n, _, _, co_moment, spread_x, spread_y = measures[0].values
    with np.errstate(all="ignore"):
        # one after the other, as Spark divides: the product of two spreads may be too small for a number, or too large
        values = co_moment / np.sqrt(spread_x) / np.sqrt(spread_y)
    return typed(values, result, (n > 1) & (spread_x != 0) & (spread_y != 0))


def _joint(name: str, measure: Measure, lowering: Lowering) -> Aggregate:
    return Aggregate(name, lambda _: Recipe((measure,), lowering), least=2, most=2, category="algebraic")


AGGREGATES = (
    _joint("covar_pop", COVARIANCE, _covariance(population=True)),
    _joint("covar_samp", COVARIANCE, _covariance(population=False)),
    _joint("corr", CORRELATION, _correlation),
)
