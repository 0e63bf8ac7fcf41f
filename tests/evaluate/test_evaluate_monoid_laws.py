"""Every built-in monoid keeps its word: identity, associativity, inverse, selectivity, commutativity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.algebra import monoids
from weft.algebra.monoid import Monoid
from weft.algebra.monoids import MONOIDS
from weft.evaluate.columns import identity_of

EXACT = [monoid for monoid in MONOIDS.values() if "float64" not in monoid.dtypes or monoid.selective]
MOMENTS = [monoids.moments2, monoids.moments3, monoids.moments4]
thorough = settings(max_examples=60, deadline=None)


def partials_of(monoid: Monoid) -> st.SearchStrategy[Any]:
    columns = []
    for position, dtype in enumerate(monoid.dtypes):
        if monoid.name in ("first", "last") or (monoid.name.startswith("arg") and position == 1):
            columns.append(st.integers(-1, 5).map(np.int64))
        elif dtype == "float64":
            columns.append(st.sampled_from([-math.inf, -1.0, 0.0, 2.5, math.inf, math.nan]).map(np.float64))
        else:
            limits = np.iinfo(dtype)
            ends = st.sampled_from([limits.min, limits.max, 0, 1])
            columns.append((ends | st.integers(limits.min, limits.max)).map(np.dtype(dtype).type))
    return columns[0] if monoid.width == 1 else st.tuples(*columns)


def alike(one: Any, other: Any) -> bool:
    return bool(np.array_equal(np.array(one, float), np.array(other, float), equal_nan=True))


def typed(monoid: Monoid, partial: Any) -> Any:
    """What a kernel returned, with the columns' own types again."""
    values = partial if isinstance(partial, tuple) else (partial,)
    columns = tuple(np.dtype(dtype).type(value) for dtype, value in zip(monoid.dtypes, values, strict=True))
    return columns[0] if monoid.width == 1 else columns


def merge(monoid: Monoid, *partials: Any) -> Any:
    total = partials[0]
    for partial in partials[1:]:
        total = typed(monoid, monoid.merge(total, partial))
    return total


@pytest.mark.parametrize("monoid", EXACT, ids=lambda monoid: monoid.name)
@given(data=st.data())
@thorough
def test_exact_monoids_keep_the_laws(monoid: Monoid, data: st.DataObject) -> None:
    x, y, z = (data.draw(partials_of(monoid)) for _ in range(3))
    empty = identity_of(monoid)
    if not monoid.name.startswith("arg") or x[1] >= 0:  # all partials without a row are one empty partial
        assert alike(merge(monoid, empty, x), x)
        assert alike(merge(monoid, x, empty), x)
    left, right = merge(monoid, merge(monoid, x, y), z), merge(monoid, x, merge(monoid, y, z))
    assert alike(left, right) or (monoid.name.startswith("arg") and left[1] == right[1] == -1)
    if monoid.commutative:
        assert alike(merge(monoid, x, y), merge(monoid, y, x))
    if monoid.selective:
        assert alike(merge(monoid, x, y), x) or alike(merge(monoid, x, y), y)
    if monoid.invert is not None:
        assert alike(monoid.invert(merge(monoid, x, y), x), y)


@given(x=st.integers(-(2**127), 2**127 - 1), y=st.integers(-(2**127), 2**127 - 1))
@thorough
def test_wide_integers_are_128_bit_twos_complement(x: int, y: int) -> None:
    def split(value: int) -> tuple[np.int64, np.uint64]:
        return np.int64(value >> 64), np.uint64(value & (2**64 - 1))

    def joined(partial: tuple[int, int]) -> int:
        return int(partial[0]) * 2**64 + int(partial[1])

    wrapped = (x + y + 2**127) % 2**128 - 2**127
    assert joined(monoids.add_wide.merge(split(x), split(y))) == wrapped
    assert joined(monoids.max_wide.merge(split(x), split(y))) == max(x, y)
    assert joined(monoids.min_wide.merge(split(x), split(y))) == min(x, y)


@pytest.mark.parametrize("monoid", MOMENTS, ids=lambda monoid: monoid.name)
def test_moments_merge_to_those_of_all_items(monoid: Monoid) -> None:
    items = np.random.default_rng(5).gamma(2.0, size=40) + 1e3

    def moments(part: np.ndarray) -> tuple[float, ...]:
        deviations = part - part.mean()
        return float(len(part)), part.mean(), *((deviations**k).sum() for k in range(2, monoid.width))

    assert monoid.merge(moments(items[:13]), moments(items[13:])) == pytest.approx(moments(items), rel=1e-9, abs=1e-6)


def test_covariance_and_correlation_merge_to_those_of_all_items() -> None:
    random = np.random.default_rng(5)
    x = random.normal(size=40)
    y = x + random.normal(size=40)

    def joint(at: slice) -> tuple[float, ...]:
        dx, dy = x[at] - x[at].mean(), y[at] - y[at].mean()
        return float(len(dx)), x[at].mean(), y[at].mean(), (dx * dy).sum(), (dx * dx).sum(), (dy * dy).sum()

    first, second, whole = joint(slice(0, 25)), joint(slice(25, 40)), joint(slice(0, 40))
    assert monoids.correlation.merge(first, second) == pytest.approx(whole)
    assert monoids.covariance.merge(first[:4], second[:4]) == pytest.approx(whole[:4])


def test_of_tied_rows_the_older_one_wins() -> None:
    assert monoids.argmax_int.merge((7, 1), (7, 2)) == (7, 1)
    assert monoids.argmin_float.merge((math.nan, 1), (math.nan, 2))[1] == 1
    assert monoids.argmax_float.merge((1.0, 1), (math.nan, 2))[1] == 2
    assert monoids.argmin_float.merge((math.nan, 1), (1.0, 2))[1] == 2
