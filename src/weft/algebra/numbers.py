"""Arrow's columns as numbers and back: what decoding and lowering are written with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from weft.errors import WeftError

Array = npt.NDArray[Any]
Columns = tuple[np.ndarray, ...]

INT64 = np.iinfo(np.int64)
LARGEST_NARROW_DECIMAL = 18
"""Decimals of at most this many digits fit 64 bits."""


class DataError(WeftError):
    """A value that the query's result type cannot hold, as ANSI Spark would say."""


def flatten(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One contiguous Arrow array; a single chunk is not copied."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def validity(array: pa.Array) -> Array | None:
    """1 where a value stands, 0 where NULL, or None where nothing is NULL."""
    if array.null_count == 0:
        return None
    return np.asarray(pc.is_valid(array).cast(pa.int8())).astype(np.int64)


def as_integers(array: pa.Array, fill: int) -> Array:
    """Values as int64 (booleans, dates, timestamps, narrow decimals by their unscaled value), NULL as ``fill``."""
    integers = wide_parts(array)[1].astype(np.int64) if pa.types.is_decimal(array.type) else raw_int64(array)
    if array.null_count:
        integers = np.where(np.asarray(pc.is_valid(array)), integers, fill)
    return integers


def raw_int64(array: pa.Array) -> Array:
    """Integers of any width, booleans, dates and timestamps as int64, whatever stands where NULL is."""
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    return np.asarray(array.fill_null(0)).astype(np.int64, copy=False)


def as_floats(array: pa.Array, fill: float) -> Array:
    """Values as float64, NULL as ``fill``."""
    return np.asarray(array.cast(pa.float64()).fill_null(fill)).astype(np.float64, copy=False)


def wide_parts(array: pa.Array) -> tuple[Array, Array]:
    """High and low 64 bits of 128-bit decimals' unscaled values; whatever stands where NULL is."""
    if len(array) == 0:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    words = np.frombuffer(array.buffers()[1], dtype=np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
    return words[1::2].astype(np.int64), words[0::2].copy()


def wide_or_zero(array: pa.Array) -> tuple[Array, Array]:
    """High and low 64 bits of decimals, 0 where NULL is."""
    high, low = wide_parts(array)
    if array.null_count:
        present = np.asarray(pc.is_valid(array))
        high, low = np.where(present, high, 0), np.where(present, low, np.uint64(0))
    return high, low


def is_ranked(kind: pa.DataType) -> bool:
    """Whether values of this type are compared by their rank among those present."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def rank(array: pa.Array) -> tuple[Array, pa.Array]:
    """Ranks among the distinct values present (0 where NULL) and these values in order.

    Strings rank by their bytes, as Spark's default collation does.

    Examples
    --------
    >>> ranks, values = rank(pa.array(["b", "a", "b"]))
    >>> ranks.tolist(), values.to_pylist()
    ([1, 0, 1], ['a', 'b'])
    """
    encoded = array.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary.cast(pa.binary())))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    codes = np.asarray(encoded.indices.fill_null(0)).astype(np.int64)
    return (ranks[codes] if len(order) else codes), encoded.dictionary.take(pa.array(order))


def sortable(array: pa.Array) -> Array:
    """int64 numbers that sort as the values do: NaN last, -0.0 and 0.0 alike."""
    if pa.types.is_floating(array.type):
        floats = as_floats(array, 0.0) + 0.0
        bits = np.where(np.isnan(floats), np.nan, floats).view(np.int64)
        return np.where(bits < 0, bits ^ INT64.max, bits)
    if is_ranked(array.type):
        return rank(array)[0]
    if pa.types.is_decimal(array.type) and array.type.precision > LARGEST_NARROW_DECIMAL:
        high, low = wide_parts(array)
        return np.unique(np.rec.fromarrays([high, low]), return_inverse=True)[1].astype(np.int64)
    return as_integers(array, 0)


def typed(values: Array, kind: pa.DataType, valid: Array | None) -> pa.Array:
    """Numbers as a column of a type; NULL where they are not valid."""
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


def widened(parts: tuple[Array, ...]) -> tuple[Array, Array]:
    """Integers of 64 or 128 bits in 128."""
    if len(parts) == 2:
        return parts[0], parts[1]
    return parts[0] >> 63, parts[0].astype(np.uint64)


def as_double(parts: tuple[Array, ...]) -> Array:
    """Integers of 64 or 128 bits as doubles."""
    if len(parts) == 1:
        return parts[0].astype(np.float64, copy=False)
    high, low = parts
    negative = high < 0
    # from the magnitude: -1 is -2**64 + (2**64 - 1), and the second of these is 2**64 as a double
    low = np.where(negative, ~low + np.uint64(1), low)
    high = np.where(negative, ~high + (low == 0), high).view(np.uint64)
    magnitude = high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    return np.where(negative, -magnitude, magnitude)


def decimals(high: Array, low: Array, kind: pa.DataType, valid: Array | None) -> pa.Array:
    """128-bit unscaled values as decimals, refused where they have more digits than the type."""
    limit = 10**kind.precision
    fits = within(high, low, np.int64(limit >> 64), np.uint64(limit & (2**64 - 1)))
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
def negated(high: Any, low: Any) -> Any:
    """The opposite of an integer of 128 bits."""
    flipped = ~low + np.uint64(1)
    return (~high + np.int64(1) if flipped == 0 else ~high), flipped


@njit(cache=True, nogil=True)
def within(high: Array, low: Array, limit_high: Any, limit_low: Any) -> Array:
    """Whether the magnitude stays below the limit."""
    fits = np.empty(len(high), np.bool_)
    for i in range(len(high)):
        h, w = high[i], low[i]
        if h < 0:
            h, w = negated(h, w)
        fits[i] = h >= 0 and (h < limit_high or (h == limit_high and w < limit_low))
    return fits


@njit(cache=True, nogil=True)
def divided(high: Array, low: Array, count: Array, shift: int) -> tuple[Array, Array, Array]:
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
            h, w = negated(h, w)
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
            h, w = negated(h, w)
        out_high[i], out_low[i] = h, w
    return out_high, out_low, lost
