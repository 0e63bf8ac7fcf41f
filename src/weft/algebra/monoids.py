"""The monoids that Weft compiles: what each partial's columns mean, its identity, and what techniques may rely on.

Integers wrap modulo 2**64 (or 2**128 for the wide ones), so their sums have an exact inverse whatever passed through.
Sums of doubles have none: ``1e16`` or an infinity that was added cannot be taken out again (semantics 3), so they are
not declared invertible. NaN is the largest double, as in Spark. Wide integers are two's complement: ``hi`` holds the
signed upper 64 bits, ``lo`` the lower 64 as ``uint64`` (view an ``int64`` bit pattern with ``.view("uint64")``).

Where a partial names a row (``argmax``, ``first``, ...) it is the row's index, and -1 stands for "no row". Of tied
rows the older one wins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from weft.algebra.monoid import Monoid

INT64_MIN = np.int64(np.iinfo(np.int64).min)
INT64_MAX = np.int64(np.iinfo(np.int64).max)
UINT64_MAX = np.uint64(np.iinfo(np.uint64).max)
_ZERO = np.int64(0)
_WIDE_ZERO = (np.int64(0), np.uint64(0))
_NO_ROW = np.int64(-1)
ROUNDING = 2.3e-16
"""What one addition of doubles may round, as a share of the sum."""

compiled = njit(cache=True, nogil=True)


@compiled
def _add(older: Any, newer: Any) -> Any:
    return older + newer


@compiled
def _subtract(total: Any, oldest: Any) -> Any:
    return total - oldest


@compiled
def _add_wide(older: Any, newer: Any) -> Any:
    low = older[1] + newer[1]
    carry = np.int64(low < older[1])
    return older[0] + newer[0] + carry, low


@compiled
def _subtract_wide(total: Any, oldest: Any) -> Any:
    borrow = np.int64(total[1] < oldest[1])
    return total[0] - oldest[0] - borrow, total[1] - oldest[1]


@compiled
def _max_int(older: Any, newer: Any) -> Any:
    return newer if newer > older else older


@compiled
def _min_int(older: Any, newer: Any) -> Any:
    return newer if newer < older else older


# The comparisons below use | and & on purpose: both sides are evaluated, so that the choice compiles to a select
# rather than to branches that random data mispredicts.


@compiled
def _max_float(older: Any, newer: Any) -> Any:
    return newer if (newer > older) | (newer != newer) else older


@compiled
def _min_float(older: Any, newer: Any) -> Any:
    return newer if (newer < older) | (older != older) else older


@compiled
def _max_wide(older: Any, newer: Any) -> Any:
    return newer if (newer[0] > older[0]) | ((newer[0] == older[0]) & (newer[1] > older[1])) else older


@compiled
def _min_wide(older: Any, newer: Any) -> Any:
    return newer if (newer[0] < older[0]) | ((newer[0] == older[0]) & (newer[1] < older[1])) else older


@compiled
def _and(older: Any, newer: Any) -> Any:
    return older & newer


@compiled
def _or(older: Any, newer: Any) -> Any:
    return older | newer


@compiled
def _xor(older: Any, newer: Any) -> Any:
    return older ^ newer


# Pairwise updates of central moments: Chan, Golub & LeVeque 1979 (m2) and Pébay 2008 (m3, m4). The empty partial is
# returned untouched rather than computed with: an infinity times a count of zero would be NaN.


@compiled
def _apart(older: float, newer: float, older_spread: float, newer_spread: float, n: float) -> float:
    """How far two means are apart: not at all where nothing spreads and only rounding of the sums tells them apart.

    What never changes has no spread, exactly; a slope, a correlation or a skewness of it is NULL.
    """
    delta = newer - older
    if older_spread == 0.0 and newer_spread == 0.0 and abs(delta) <= n * ROUNDING * abs(older):
        return 0.0
    return delta


@compiled
def _moments2(older: Any, newer: Any) -> Any:
    if older[0] == 0.0:
        return newer
    if newer[0] == 0.0:
        return older
    n = older[0] + newer[0]
    delta = _apart(older[1], newer[1], older[2], newer[2], n)
    step = delta / n
    mean = older[1] + step * newer[0]
    m2 = older[2] + newer[2] + delta * step * older[0] * newer[0]
    return n, mean, m2


@compiled
def _third_moment(older: Any, newer: Any, step: float) -> Any:
    cross = older[0] * newer[0]
    n = older[0] + newer[0]
    cubed = step * step * step * n * cross * (older[0] - newer[0])
    return older[3] + newer[3] + cubed + 3.0 * step * (older[0] * newer[2] - newer[0] * older[2])


@compiled
def _fourth_moment(older: Any, newer: Any, step: float) -> Any:
    cross = older[0] * newer[0]
    n = older[0] + newer[0]
    fourth = step**4 * n * cross * (older[0] * older[0] - cross + newer[0] * newer[0])
    squares = 6.0 * step * step * (older[0] * older[0] * newer[2] + newer[0] * newer[0] * older[2])
    return older[4] + newer[4] + fourth + squares + 4.0 * step * (older[0] * newer[3] - newer[0] * older[3])


@compiled
def _moments3(older: Any, newer: Any) -> Any:
    if older[0] == 0.0:
        return newer
    if newer[0] == 0.0:
        return older
    n, mean, m2 = _moments2(older[:3], newer[:3])
    step = _apart(older[1], newer[1], older[2], newer[2], n) / n
    return n, mean, m2, _third_moment(older, newer, step)


@compiled
def _moments4(older: Any, newer: Any) -> Any:
    if older[0] == 0.0:
        return newer
    if newer[0] == 0.0:
        return older
    n, mean, m2 = _moments2(older[:3], newer[:3])
    step = _apart(older[1], newer[1], older[2], newer[2], n) / n
    return n, mean, m2, _third_moment(older, newer, step), _fourth_moment(older, newer, step)


@compiled
def _covariance(older: Any, newer: Any) -> Any:
    if older[0] == 0.0:
        return newer
    if newer[0] == 0.0:
        return older
    n = older[0] + newer[0]
    dx, dy = newer[1] - older[1], newer[2] - older[2]
    xmean = older[1] + dx / n * newer[0]
    ymean = older[2] + dy / n * newer[0]
    ck = older[3] + newer[3] + dx * (dy / n) * older[0] * newer[0]
    return n, xmean, ymean, ck


@compiled
def _correlation(older: Any, newer: Any) -> Any:
    if older[0] == 0.0:
        return newer
    if newer[0] == 0.0:
        return older
    n = older[0] + newer[0]
    dx = _apart(older[1], newer[1], older[4], newer[4], n)
    dy = _apart(older[2], newer[2], older[5], newer[5], n)
    xmean = older[1] + dx / n * newer[0]
    ymean = older[2] + dy / n * newer[0]
    ck = older[3] + newer[3] + dx * (dy / n) * older[0] * newer[0]
    m2x = older[4] + newer[4] + dx * (dx / n) * older[0] * newer[0]
    m2y = older[5] + newer[5] + dy * (dy / n) * older[0] * newer[0]
    return n, xmean, ymean, ck, m2x, m2y


@compiled
def _argmax_int(older: Any, newer: Any) -> Any:
    return newer if (newer[1] >= 0) & ((older[1] < 0) | (newer[0] > older[0])) else older


@compiled
def _argmin_int(older: Any, newer: Any) -> Any:
    return newer if (newer[1] >= 0) & ((older[1] < 0) | (newer[0] < older[0])) else older


@compiled
def _argmax_float(older: Any, newer: Any) -> Any:
    larger = (newer[0] > older[0]) | ((newer[0] != newer[0]) & (older[0] == older[0]))
    return newer if (newer[1] >= 0) & ((older[1] < 0) | larger) else older


@compiled
def _argmin_float(older: Any, newer: Any) -> Any:
    smaller = (newer[0] < older[0]) | ((older[0] != older[0]) & (newer[0] == newer[0]))
    return newer if (newer[1] >= 0) & ((older[1] < 0) | smaller) else older


@compiled
def _argmax_tied(older: Any, newer: Any) -> Any:
    larger = (newer[0] > older[0]) | ((newer[0] == older[0]) & (newer[1] > older[1]))
    return newer if (newer[2] >= 0) & ((older[2] < 0) | larger) else older


@compiled
def _argmin_tied(older: Any, newer: Any) -> Any:
    smaller = (newer[0] < older[0]) | ((newer[0] == older[0]) & (newer[1] < older[1]))
    return newer if (newer[2] >= 0) & ((older[2] < 0) | smaller) else older


@compiled
def _first(older: Any, newer: Any) -> Any:
    return older if older >= 0 else newer


@compiled
def _last(older: Any, newer: Any) -> Any:
    return newer if newer >= 0 else older


def _floats(width: int) -> tuple[tuple[str, ...], tuple[float, ...]]:
    return ("float64",) * width, (0.0,) * width


_INT = ("int64",)
_FLOAT = ("float64",)
_WIDE = ("int64", "uint64")

add_int = Monoid("add_int", _INT, (_ZERO,), _add, invert=_subtract)
"""Sum or count of integers, modulo 2**64."""
add_float = Monoid("add_float", _FLOAT, (0.0,), _add)
"""Sum of doubles; not invertible, see the module's head."""
add_wide = Monoid("add_wide", _WIDE, _WIDE_ZERO, _add_wide, invert=_subtract_wide)
"""Sum of 128-bit integers ``(hi, lo)``, modulo 2**128."""

max_int = Monoid("max_int", _INT, (INT64_MIN,), _max_int, selective=True)
min_int = Monoid("min_int", _INT, (INT64_MAX,), _min_int, selective=True)
max_float = Monoid("max_float", _FLOAT, (-math.inf,), _max_float, selective=True)
min_float = Monoid("min_float", _FLOAT, (math.nan,), _min_float, selective=True)
max_wide = Monoid("max_wide", _WIDE, (INT64_MIN, np.uint64(0)), _max_wide, selective=True)
min_wide = Monoid("min_wide", _WIDE, (INT64_MAX, UINT64_MAX), _min_wide, selective=True)

and_int = Monoid("and_int", _INT, (np.int64(-1),), _and)
or_int = Monoid("or_int", _INT, (_ZERO,), _or)
xor_int = Monoid("xor_int", _INT, (_ZERO,), _xor, invert=_xor)

moments2 = Monoid("moments2", *_floats(3), _moments2)
"""``(n, mean, m2)``: count, mean and the sum of squared deviations; n = 0 is empty."""
moments3 = Monoid("moments3", *_floats(4), _moments3)
"""``(n, mean, m2, m3)``."""
moments4 = Monoid("moments4", *_floats(5), _moments4)
"""``(n, mean, m2, m3, m4)``."""
covariance = Monoid("covariance", *_floats(4), _covariance)
"""``(n, xmean, ymean, ck)``, ck the sum of products of deviations."""
correlation = Monoid("correlation", *_floats(6), _correlation)
"""``(n, xmean, ymean, ck, m2x, m2y)``."""

argmax_int = Monoid("argmax_int", _INT * 2, (_ZERO, _NO_ROW), _argmax_int, commutative=False, selective=True)
"""``(order, row)`` of the row with the largest order; the older of tied rows."""
argmin_int = Monoid("argmin_int", _INT * 2, (_ZERO, _NO_ROW), _argmin_int, commutative=False, selective=True)
argmax_float = Monoid("argmax_float", _FLOAT + _INT, (0.0, _NO_ROW), _argmax_float, commutative=False, selective=True)
argmin_float = Monoid("argmin_float", _FLOAT + _INT, (0.0, _NO_ROW), _argmin_float, commutative=False, selective=True)

_TIED = (_ZERO, _ZERO, _NO_ROW)
argmax_tied = Monoid("argmax_tied", _INT * 3, _TIED, _argmax_tied, commutative=False, selective=True)
"""``(order, value, row)``: of rows tied by order the one with the larger value. What rows are merged with to slices."""
argmin_tied = Monoid("argmin_tied", _INT * 3, _TIED, _argmin_tied, commutative=False, selective=True)
"""The same for the smallest order, and the smaller value."""

first = Monoid("first", _INT, (_NO_ROW,), _first, commutative=False, selective=True)
"""The oldest row's index, -1 being no row."""
last = Monoid("last", _INT, (_NO_ROW,), _last, commutative=False, selective=True)
"""The newest row's index, -1 being no row."""

MONOIDS: dict[str, Monoid] = {
    monoid.name: monoid
    for monoid in (
        *(add_int, add_float, add_wide),
        *(max_int, min_int, max_float, min_float, max_wide, min_wide),
        *(and_int, or_int, xor_int),
        *(moments2, moments3, moments4, covariance, correlation),
        *(argmax_int, argmin_int, argmax_float, argmin_float),
        *(first, last),
    )
}
