"""Merged measures back into the columns that they were decoded from, so that retained slices can be merged and kept.

``encode(measure, merge(decode(columns)), columns)`` stands for the union of the rows behind ``columns``: decoding it
again gives the merged numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from weft.algebra import lower, monoids
from weft.algebra.lower import Answered
from weft.algebra.measures import MOMENTS, Array, Decoded, Measure, decode_limbs

Encoder = Callable[[Decoded, Sequence[pa.Array]], list[pa.Array]]


def encode(measure: Measure, merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    """The measure's columns for merged numbers; ``originals`` are the columns that were decoded.

    Examples
    --------
    >>> from weft.algebra.aggregates import recipe
    >>> (total,) = recipe("sum", [pa.int64()]).measures
    >>> columns = [pa.array([1, -1]), pa.array([5, 2**32 - 1])]
    >>> [column.to_pylist() for column in encode(total, total.decode(columns), columns)]
    [[1, -1], [5, 4294967295]]
    """
    return _encoder(measure)(merged, originals)


def _encoder(measure: Measure) -> Encoder:
    if measure.decode is decode_limbs:
        return _limbs
    if measure.monoid in MOMENTS.values():
        return _moments
    if measure.monoid in (monoids.covariance, monoids.correlation):
        return _joint
    if measure.monoid in (monoids.argmax_int, monoids.argmin_int):
        return _pairs
    return _values


def _values(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    valid = None if merged.valid is None else merged.valid > 0
    return [lower.values([Answered(merged.values, valid, merged.dictionary, merged.scale)], originals[0].type)]


def _limbs(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    if len(merged.values) == 1:
        (value,) = merged.values
        high, low = value >> 32, value & 0xFFFFFFFF
    else:
        upper, word = merged.values
        high = (upper << 32) | (word >> np.uint64(32)).astype(np.int64)
        low = (word & np.uint64(0xFFFFFFFF)).astype(np.int64)
    mask = None if merged.valid is None else merged.valid == 0
    return [pa.array(part, pa.int64(), mask=mask) for part in (high, low)]


def _moments(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    n, mean, m2, *higher = merged.values
    with np.errstate(all="ignore"):
        columns = [n, mean * n, m2 / n]
        if higher:
            columns.append(np.where(m2 != 0, np.sqrt(n) * higher[0] / np.sqrt(m2 * m2 * m2), np.nan))
        if len(higher) > 1:
            columns.append(np.where(m2 != 0, n * higher[1] / (m2 * m2) - 3.0, np.nan))
    return _typed(columns, n == 0, originals)


def _joint(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    n, *others = merged.values
    return _typed([n, others[0] * n, others[1] * n, *others[2:]], n == 0, originals)


def _typed(columns: Sequence[Array], missing: Array, originals: Sequence[pa.Array]) -> list[pa.Array]:
    """A count, which is never NULL, and doubles, which are NULL without rows."""
    count, *doubles = columns
    counts = pa.array(count.astype(np.int64), originals[0].type)
    return [counts, *(pa.array(column, pa.float64(), mask=missing) for column in doubles)]


def _pairs(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    rows = merged.values[1]
    return [originals[0].take(pa.array(rows, pa.int64(), mask=rows < 0))]
