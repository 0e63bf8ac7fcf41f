"""Lowering: merged measures of a window become the answer's Arrow column, in exactly the type that Spark gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from weft.algebra.measures import Array
from weft.errors import WeftError


class DataError(WeftError):
    """A value that the query's result type cannot hold, as ANSI Spark would say."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One measure merged over every window: an entry an answer."""

    values: tuple[Array, ...]
    valid: Array | None = None
    """Booleans; None where every answer has a value."""
    dictionary: pa.Array | None = None
    scale: int = 0
    """Digits behind the point, where the values are unscaled decimals."""


Lowering = Callable[[Sequence[Answered], pa.DataType], pa.Array]


def integers(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Counts."""
    return _array(measures[0].values[0], result, None)


def sums(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Sums; those of integers and decimals fail where the result type cannot hold them."""
    (total,) = measures
    if pa.types.is_floating(result):
        return _array(total.values[0], result, total.valid)
    if pa.types.is_decimal(result):
        high, low = _wide(total.values)
        return _decimal(high, low, result, total.valid)
    if len(total.values) == 2:
        high, low = total.values
        word = low.astype(np.int64)
        lost = high != (word >> 63)
        if (lost if total.valid is None else lost & total.valid).any():
            raise DataError(f"a sum does not fit {result}; sum CAST(... AS DECIMAL(38)) instead")
        return _array(word, result, total.valid)
    return _array(total.values[0], result, total.valid)


def wrapped_sums(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """The same, but that sums of integers which do not fit go round, as Java's do."""
    (total,) = measures
    if pa.types.is_integer(result) and len(total.values) == 2:
        return _array(total.values[1].astype(np.int64), result, total.valid)
    return sums(measures, result)


def averages(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Sum over count, exactly rounded for decimals."""
    total, count = measures
    n = count.values[0]
    present = n > 0
    if pa.types.is_decimal(result):
        shift = result.scale - total.scale
        high, low = _wide(total.values)
        if n.size and int(n.max()) >= 1 << 32:
            raise DataError("an average of decimals over more than 2**32 rows")
        high, low, lost = _divide(high, low, np.maximum(n, 1), shift)
        if (lost & present).any():
            raise DataError(f"an average does not fit {result}")
        return _decimal(high, low, result, present)
    with np.errstate(all="ignore"):
        return _array(_as_float(total.values) / n, result, present)


def values(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """The merged value itself, back in its own type."""
    (answer,) = measures
    if answer.dictionary is not None:
        ranks = answer.values[0] if answer.valid is None else np.where(answer.valid, answer.values[0], 0)
        return answer.dictionary.take(_array(ranks, pa.int64(), answer.valid)).cast(result)
    if pa.types.is_decimal(result):
        high, low = _wide(answer.values)
        return _decimal(high, low, result, answer.valid)
    return _array(answer.values[0], result, answer.valid)


def carried(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """The value of the winning row."""
    (answer,) = measures
    if answer.dictionary is None:
        raise AssertionError("min_by and max_by carry their values")
    rows = answer.values[1]
    return answer.dictionary.take(_array(rows, pa.int64(), rows >= 0)).cast(result)


def variance(*, population: bool) -> Lowering:
    """var_pop or var_samp: NULL without rows, and for a sample of one."""

    def lower(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
        n, _, m2 = measures[0].values
        degrees = n if population else n - 1
        with np.errstate(all="ignore"):
            return _array(m2 / degrees, result, degrees > 0)

    return lower


def deviation(*, population: bool) -> Lowering:
    """The square root of the variance."""

    def lower(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
        n, _, m2 = measures[0].values
        degrees = n if population else n - 1
        with np.errstate(all="ignore"):
            return _array(np.sqrt(m2 / degrees), result, degrees > 0)

    return lower


def skewness(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """NULL where nothing spreads."""
    n, _, m2, m3 = measures[0].values
    with np.errstate(all="ignore"):
        return _array(np.sqrt(n) * m3 / np.sqrt(m2 * m2 * m2), result, (n > 0) & (m2 != 0))


def kurtosis(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Excess kurtosis; NULL where nothing spreads."""
    n, _, m2, _, m4 = measures[0].values
    with np.errstate(all="ignore"):
        return _array(n * m4 / (m2 * m2) - 3.0, result, (n > 0) & (m2 != 0))


def covariance(*, population: bool) -> Lowering:
    """covar_pop or covar_samp."""

    def lower(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
        n, _, _, co_moment = measures[0].values
        degrees = n if population else n - 1
        with np.errstate(all="ignore"):
            return _array(co_moment / degrees, result, degrees > 0)

    return lower


def correlation(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Pearson's; NULL below two pairs and where one side does not spread."""
    n, _, _, co_moment, spread_x, spread_y = measures[0].values
    scale = np.sqrt(spread_x * spread_y)
    with np.errstate(all="ignore"):
        return _array(co_moment / scale, result, (n > 1) & (scale != 0))


def _array(values: Array, kind: pa.DataType, valid: Array | None) -> pa.Array:
    mask = None if valid is None or valid.all() else ~valid
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64(), mask=mask).view(kind)
    if pa.types.is_date32(kind):
        return (
            pa.array(values if mask is None else np.where(mask, 0, values), pa.int64(), mask=mask)
            .cast(pa.int32())
            .view(kind)
        )
    if pa.types.is_boolean(kind):
        return pa.array(values == 1, mask=mask)
    if mask is not None and pa.types.is_integer(kind):
        values = np.where(mask, 0, values)
    return pa.array(values.astype(kind.to_pandas_dtype(), copy=False), kind, mask=mask)


def _wide(parts: tuple[Array, ...]) -> tuple[Array, Array]:
    if len(parts) == 2:
        return parts[0], parts[1]
    return parts[0] >> 63, parts[0].astype(np.uint64)


def _as_float(parts: tuple[Array, ...]) -> Array:
    if len(parts) == 1:
        return parts[0].astype(np.float64, copy=False)
    high, low = parts
    negative = high < 0
    # from the magnitude: -1 is -2**64 + (2**64 - 1), and the second of these is 2**64 as a double
    low = np.where(negative, ~low + np.uint64(1), low)
    high = np.where(negative, ~high + (low == 0), high).view(np.uint64)
    magnitude = high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    return np.where(negative, -magnitude, magnitude)


def _decimal(high: Array, low: Array, kind: pa.DataType, valid: Array | None) -> pa.Array:
    """128-bit unscaled values as decimals, refused where they have more digits than the type."""
    limit = 10**kind.precision
    fits = _within(high, low, np.int64(limit >> 64), np.uint64(limit & (2**64 - 1)))
    if valid is None:
        valid = np.ones(len(high), np.bool_)
    if (~fits & valid).any():
        raise DataError(f"a value does not fit {kind}")
    words = np.empty((len(high), 2), np.uint64)
    words[:, 0] = low
    words[:, 1] = high.astype(np.uint64)
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(kind, len(high), [bitmap, pa.py_buffer(words)])


@njit(cache=True, nogil=True)
def _negate(high: Any, low: Any) -> Any:
    flipped = ~low + np.uint64(1)
    return (~high + np.int64(1) if flipped == 0 else ~high), flipped


@njit(cache=True, nogil=True)
def _within(high: Array, low: Array, limit_high: Any, limit_low: Any) -> Array:
    """Whether the magnitude stays below the limit."""
    fits = np.empty(len(high), np.bool_)
    for i in range(len(high)):
        h, w = high[i], low[i]
        if h < 0:
            h, w = _negate(h, w)
        fits[i] = h >= 0 and (h < limit_high or (h == limit_high and w < limit_low))
    return fits


@njit(cache=True, nogil=True)
def _divide(high: Array, low: Array, count: Array, shift: int) -> tuple[Array, Array, Array]:
    """Half-up ``value * 10**shift / count`` in limbs of 32 bits; the third array says where 128 bits are too few."""
    n = len(high)
    out_high, out_low, lost = np.empty(n, np.int64), np.empty(n, np.uint64), np.zeros(n, np.bool_)
    mask = np.uint64(0xFFFFFFFF)
    half_word = np.uint64(32)
    limbs = np.zeros(8, np.uint64)
    for i in range(n):
        h, w = high[i], low[i]
        negative = h < 0
        if negative:
            h, w = _negate(h, w)
        limbs[:] = 0
        limbs[0], limbs[1] = w & mask, w >> half_word
        limbs[2], limbs[3] = np.uint64(h) & mask, np.uint64(h) >> half_word
        for _ in range(shift):
            carry = np.uint64(0)
            for j in range(8):
                product = limbs[j] * np.uint64(10) + carry
                limbs[j], carry = product & mask, product >> half_word
        divisor = np.uint64(count[i])
        remainder = np.uint64(0)
        for j in range(7, -1, -1):
            part = (remainder << half_word) | limbs[j]
            limbs[j] = part // divisor
            remainder = part - limbs[j] * divisor
        if remainder * np.uint64(2) >= divisor:
            for j in range(8):
                limbs[j] = (limbs[j] + np.uint64(1)) & mask
                if limbs[j] != 0:
                    break
        lost[i] = limbs[4] != 0 or limbs[5] != 0 or limbs[6] != 0 or limbs[7] != 0 or (limbs[3] >> np.uint64(31)) != 0
        w = limbs[0] | (limbs[1] << half_word)
        h = np.int64(limbs[2] | (limbs[3] << half_word))
        if negative:
            h, w = _negate(h, w)
        out_high[i], out_low[i] = h, w
    return out_high, out_low, lost
