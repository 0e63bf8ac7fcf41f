"""Monoids over items rather than over slices' partials: means of numbers, and the first or last of them themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from weft.algebra.monoid import Monoid
from weft.algebra.monoids import add_wide
from weft.algebra.numbers import Columns

_ZERO = np.int64(0)
_add_wide = add_wide.merge
_subtract_wide = add_wide.invert


@njit(cache=True, nogil=True)
def _merge_mean_int(older: Any, newer: Any) -> Any:
    high, low = _add_wide(older[:2], newer[:2])
    return high, low, older[2] + newer[2]


@njit(cache=True, nogil=True)
def _invert_mean_int(total: Any, oldest: Any) -> Any:
    high, low = _subtract_wide(total[:2], oldest[:2])  # type: ignore[misc]
    return high, low, total[2] - oldest[2]


@njit(cache=True, nogil=True)
def _merge_mean_float(older: Any, newer: Any) -> Any:
    return older[0] + newer[0], older[1] + newer[1]


@njit(cache=True, nogil=True)
def _first(older: Any, newer: Any) -> Any:
    return older if older[1] > 0 else newer


@njit(cache=True, nogil=True)
def _last(older: Any, newer: Any) -> Any:
    return newer if newer[1] > 0 else older


MEAN_INT = Monoid(
    "mean_int", ("int64", "uint64", "int64"), (_ZERO, np.uint64(0), _ZERO), _merge_mean_int, _invert_mean_int
)
"""A 128-bit sum (see ``add_wide``) and a count, so that an average never overflows."""
MEAN_FLOAT = Monoid("mean_float", ("float64", "int64"), (0.0, _ZERO), _merge_mean_float)
"""A sum of doubles and a count."""


def _edge(name: str, dtype: str, merge: Any) -> Monoid:
    """The item itself and whether there is one."""
    return Monoid(name, (dtype, "int64"), (0, 0), merge, commutative=False, selective=True)


FIRST_INT = _edge("first_int", "int64", _first)
FIRST_FLOAT = _edge("first_float", "float64", _first)
LAST_INT = _edge("last_int", "int64", _last)
LAST_FLOAT = _edge("last_float", "float64", _last)


def lift_present(items: np.ndarray) -> Columns:
    """Items that are there."""
    return items, np.ones(len(items), np.int64)
