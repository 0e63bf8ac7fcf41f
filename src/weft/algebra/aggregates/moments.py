"""Variances, standard deviations, skewness and kurtosis: central moments, merged pairwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from weft.algebra import monoids
from weft.algebra.aggregate import Aggregate, Resolved, Types, by_kind
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
from weft.algebra.numbers import Array, Columns, as_floats, typed

MOMENTS = {2: monoids.moments2, 3: monoids.moments3, 4: monoids.moments4}
COLUMNS = ("var_pop({0})", "skewness({0})", "kurtosis({0})")


def decoder(order: int) -> Decoder:
    """Central moments up to ``order`` from Spark's count, sum, var_pop, skewness and kurtosis of a slice."""
    monoid = MOMENTS[order]

    def decode(columns: Sequence[pa.Array]) -> Decoded:
        n = as_floats(columns[0], 0.0)
        mean = as_floats(columns[1], 0.0) / np.maximum(n, 1.0)
        m2 = as_floats(columns[2], 0.0) * n
        values = [n, mean, m2]
        with np.errstate(all="ignore"):
            if order >= 3:
                values.append(_central(as_floats(columns[3], 0.0) * np.sqrt(m2 * m2 * m2) / np.sqrt(n), n, m2))
            if order >= 4:
                values.append(_central((as_floats(columns[4], -3.0) + 3.0) * m2 * m2 / n, n, m2))
        return Decoded(monoid, tuple(values))

    return decode


def _central(moment: Array, n: Array, m2: Array) -> Array:
    # skewness and kurtosis are NULL without spread, and 0 / 0 where there is no row
    return np.where((n > 0) & (m2 != 0), moment, 0.0)


def encode(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    """Spark's statistics of the merged rows."""
    n, mean, m2, *higher = merged.values
    with np.errstate(all="ignore"):
        columns = [n, mean * n, m2 / n]
        if higher:
            columns.append(np.where(m2 != 0, np.sqrt(n) * higher[0] / np.sqrt(m2 * m2 * m2), np.nan))
        if len(higher) > 1:
            columns.append(np.where(m2 != 0, n * higher[1] / (m2 * m2) - 3.0, np.nan))
    return stored_doubles(columns, n == 0, originals)


def lift(order: int, types: Types) -> Lift:
    """A row is its own mean and has no spread; but what is not finite spreads to NaN, as in Spark."""
    counts, statistics = pa.array([], pa.int64()), [pa.array([], pa.float64())] * order

    def rows(columns: Sequence[pa.Array], length: int) -> Lifted:
        value = doubles(columns[0])
        with np.errstate(invalid="ignore"):
            spread = value - value
        count = present(columns, length).astype(np.float64)
        return Lifted(Decoded(MOMENTS[order], (count, value, *[spread] * (order - 1))), [counts, *statistics])

    return Lift((double_input(0, types),), rows)


def _recipe(order: int, lowering: Lowering) -> Callable[[Types], Recipe]:
    decode, monoid = decoder(order), MOMENTS[order]

    def build(types: Types) -> Recipe:
        # doubles share their sum with sum and avg; an integer's exact sum would be another column
        total = "sum({0})" if pa.types.is_floating(types[0]) else "sum(double({0}))"
        columns = ("count({0})", total, *COLUMNS[: order - 1])
        return Recipe((Measure(columns, decode, monoid, encode, lift=partial(lift, order)),), lowering)

    return build


Statistic = Callable[[Array, Array], Array]
"""Of the count and the sum of squared deviations."""


def _spread(name: str, statistic: Statistic, population: bool, *synonyms: str) -> Aggregate:
    """A statistic of count and spread: NULL without rows, and for a sample of one."""

    def lower(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
        n, _, m2 = measures[0].values
        with np.errstate(all="ignore"):
            return typed(statistic(n, m2), result, n > (0 if population else 1))

    def lower_items(columns: Columns) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return statistic(columns[0], columns[2])

    resolved = Resolved(monoids.moments2, _lift, lower_items)
    items = by_kind(name, i=resolved, f=resolved)
    return Aggregate(name, _recipe(2, lower), items=items, synonyms=synonyms, category="algebraic")


def _lift(items: np.ndarray) -> Columns:
    return np.ones(len(items)), items.astype(np.float64), np.zeros(len(items))


def _skewness(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """NULL where nothing spreads."""
    n, _, m2, m3 = measures[0].values
    with np.errstate(all="ignore"):
        return typed(np.sqrt(n) * m3 / np.sqrt(m2 * m2 * m2), result, (n > 0) & (m2 != 0))


def _kurtosis(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Excess kurtosis; NULL where nothing spreads."""
    n, _, m2, _, m4 = measures[0].values
    with np.errstate(all="ignore"):
        return typed(n * m4 / (m2 * m2) - 3.0, result, (n > 0) & (m2 != 0))


AGGREGATES = (
    _spread("var_pop", lambda n, m2: m2 / n, True),
    _spread("var_samp", lambda n, m2: m2 / (n - 1), False, "variance"),
    _spread("stddev_pop", lambda n, m2: np.sqrt(m2 / n), True),
    _spread("stddev_samp", lambda n, m2: np.sqrt(m2 / (n - 1)), False, "stddev", "std"),
    Aggregate("skewness", _recipe(3, _skewness), category="algebraic"),
    Aggregate("kurtosis", _recipe(4, _kurtosis), category="algebraic"),
)
