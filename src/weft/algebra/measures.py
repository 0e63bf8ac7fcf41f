"""Measures: what Spark computes over a slice, and how those columns become the numbers that a monoid merges.

A measure is the mergeable state behind one or more aggregates. Its columns are Spark aggregate expressions over the
argument columns ``{0}``, ``{1}``; ``decode`` turns their Arrow arrays into the monoid's arrays. Equal measures of
different queries are computed once. ``lift`` of the textbook is the JVM's part (over a slice) and ``decode``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra import monoids
from weft.algebra.monoid import Monoid

Array = npt.NDArray[Any]

INT64 = np.iinfo(np.int64)
LARGEST_NARROW_DECIMAL = 18
"""Decimals of at most this many digits fit 64 bits."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The columns of one measure for some rows, as numbers."""

    monoid: Monoid
    values: tuple[Array, ...]
    valid: Array | None = None
    """1 where the slice held a value, 0 where it held only NULLs; None if all do."""
    dictionary: pa.Array | None = None
    """What ranks or row numbers in ``values`` stand for."""
    scale: int = 0
    """Digits behind the point, where ``values`` are unscaled decimals."""

    def having(self, values: tuple[Array, ...], valid: Array | None) -> Decoded:
        """The same measure of other rows."""
        return Decoded(self.monoid, values, valid, self.dictionary, self.scale)


Decoder = Callable[[Sequence[pa.Array]], Decoded]


@dataclass(frozen=True, slots=True)
class Measure:
    """The mergeable state of an aggregate: columns that Spark computes, and their decoding."""

    columns: tuple[str, ...]
    decode: Decoder
    monoid: Monoid
    """How it merges; narrower or wider numbers may be chosen when the values are seen, with the same properties."""
    hashed: bool = True
    """Whether Spark aggregates it by hashing. Strings and structs it aggregates by sorting, and all else with them."""

    def __hash__(self) -> int:
        return hash(self.columns)


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


def decode_counts(columns: Sequence[pa.Array]) -> Decoded:
    """Counts, which are never NULL but where nothing was asked."""
    return Decoded(monoids.add_int, (as_integers(columns[0], 0),))


def decode_integer_sums(columns: Sequence[pa.Array]) -> Decoded:
    """Sums that fit 64 bits in any slice (of TINYINT, SMALLINT and INT)."""
    return Decoded(monoids.add_int, (as_integers(columns[0], 0),), validity(columns[0]))


def decode_limbs(columns: Sequence[pa.Array]) -> Decoded:
    """Sums of BIGINT in two limbs of 32 bits: ``high * 2**32 + low``, as 64 bits if all of them together fit."""
    high, low = as_integers(columns[0], 0), as_integers(columns[1], 0)
    valid = validity(columns[0])
    bound = float(np.abs(high.astype(np.float64)).sum()) * 2.0**32 + float(low.astype(np.float64).sum())
    if bound < 2.0**62:
        return Decoded(monoids.add_int, ((high << 32) + low,), valid)
    shifted = high.astype(np.uint64) << np.uint64(32)
    word = shifted + low.astype(np.uint64)
    carry = (word < shifted).astype(np.int64)
    return Decoded(monoids.add_wide, ((high >> 32) + carry, word), valid)


def decode_decimal_sums(columns: Sequence[pa.Array]) -> Decoded:
    """Exact decimal sums: 64 bits if all of them together fit, else 128."""
    high, low = _zero_nulls(columns[0])
    valid, scale = validity(columns[0]), columns[0].type.scale
    narrow = (high == (low.astype(np.int64) >> 63)).all()
    if narrow and float(np.abs(low.astype(np.int64).astype(np.float64)).sum()) < 2.0**62:
        return Decoded(monoids.add_int, (low.astype(np.int64),), valid, scale=scale)
    return Decoded(monoids.add_wide, (high, low), valid, scale=scale)


def _zero_nulls(array: pa.Array) -> tuple[Array, Array]:
    high, low = wide_parts(array)
    if array.null_count:
        present = np.asarray(pc.is_valid(array))
        high, low = np.where(present, high, 0), np.where(present, low, np.uint64(0))
    return high, low


def decode_float_sums(columns: Sequence[pa.Array]) -> Decoded:
    """Sums of doubles."""
    return Decoded(monoids.add_float, (as_floats(columns[0], 0.0),), validity(columns[0]))


def decode_extreme(largest: bool) -> Decoder:
    """Minima or maxima of any ordered type: numbers as they are, strings as ranks among those present."""

    def decode(columns: Sequence[pa.Array]) -> Decoded:
        array = columns[0]
        valid = validity(array)
        monoid = extreme_monoid(array.type, largest)
        if pa.types.is_floating(array.type):
            return Decoded(monoid, (as_floats(array, float(monoid.identity[0])),), valid)
        if monoid.width == 2:
            return Decoded(monoid, _wides(array, monoid), valid)
        if is_ranked(array.type):
            ranks, dictionary = rank(array)
            fill = INT64.min if largest else INT64.max
            ranks = ranks if valid is None else np.where(valid == 1, ranks, fill)
            return Decoded(monoid, (ranks,), valid, dictionary)
        return Decoded(monoid, (as_integers(array, INT64.min if largest else INT64.max),), valid)

    return decode


def extreme_monoid(kind: pa.DataType, largest: bool) -> Monoid:
    """The monoid of max or min over values of a type."""
    if pa.types.is_floating(kind):
        return monoids.max_float if largest else monoids.min_float
    if pa.types.is_decimal(kind) and kind.precision > LARGEST_NARROW_DECIMAL:
        return monoids.max_wide if largest else monoids.min_wide
    return monoids.max_int if largest else monoids.min_int


def _wides(array: pa.Array, monoid: Monoid) -> tuple[Array, ...]:
    high, low = wide_parts(array)
    if array.null_count:
        present = np.asarray(pc.is_valid(array))
        high = np.where(present, high, monoid.identity[0])
        low = np.where(present, low, np.uint64(monoid.identity[1]))
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


MOMENTS = {2: monoids.moments2, 3: monoids.moments3, 4: monoids.moments4}


def decode_moments(order: int) -> Decoder:
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


def decode_joint(monoid: Monoid) -> Decoder:
    """Joint moments of pairs without NULL: their count, both sums, the co-moment and, for corr, both spreads."""

    def decode(columns: Sequence[pa.Array]) -> Decoded:
        n, *others = (as_floats(column, 0.0) for column in columns)
        means = [total / np.maximum(n, 1.0) for total in others[:2]]
        return Decoded(monoid, (n, *means, *others[2:]))

    return decode


def decode_bits(monoid: Monoid) -> Decoder:
    """Bitwise aggregates of integers."""

    def decode(columns: Sequence[pa.Array]) -> Decoded:
        return Decoded(monoid, (as_integers(columns[0], monoid.identity[0]),), validity(columns[0]))

    return decode


def decode_by(largest: bool) -> Decoder:
    """``min_by`` and ``max_by``: the order as int64, the value as the number of the row that holds it."""

    def decode(columns: Sequence[pa.Array]) -> Decoded:
        pairs = columns[0]
        order, value = flatten(pairs.field(0)), flatten(pairs.field(1))
        present = np.asarray(pc.is_valid(pairs))
        monoid = monoids.argmax_int if largest else monoids.argmin_int
        keys = np.where(present, sortable(order), monoid.identity[0])
        rows = np.where(present, np.arange(len(pairs), dtype=np.int64), -1)
        return Decoded(monoid, (keys, rows), None, value)

    return decode


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
