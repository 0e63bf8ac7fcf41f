"""``sum``, ``avg``: integers and decimals exactly, doubles never subtracted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.algebra import items, monoids
from weft.algebra.aggregate import Aggregate, Resolved, Types, UnsupportedAggregateError, by_kind, of_objects, plain
from weft.algebra.aggregates.counts import counted
from weft.algebra.measure import Answered, Decoded, Lift, Lifted, Measure, Recipe
from weft.algebra.numbers import (
    Columns,
    DataError,
    as_double,
    as_floats,
    as_integers,
    decimals,
    divided,
    typed,
    validity,
    wide_or_zero,
    widened,
)

WIDEST_SAFE_DECIMAL = 28
"""Spark sums decimals in ten more digits, up to 38: ten billion of them fit."""


def decode_integers(columns: Sequence[pa.Array]) -> Decoded:
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


def encode_limbs(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    """The limbs again.

    Examples
    --------
    >>> columns = [pa.array([1, -1]), pa.array([5, 2**32 - 1])]
    >>> [column.to_pylist() for column in encode_limbs(decode_limbs(columns), columns)]
    [[1, -1], [5, 4294967295]]
    """
    if len(merged.values) == 1:
        (value,) = merged.values
        high, low = value >> 32, value & 0xFFFFFFFF
    else:
        upper, word = merged.values
        high = (upper << 32) | (word >> np.uint64(32)).astype(np.int64)
        low = (word & np.uint64(0xFFFFFFFF)).astype(np.int64)
    mask = None if merged.valid is None else merged.valid == 0
    return [pa.array(part, pa.int64(), mask=mask) for part in (high, low)]


def lift_limbs(_: Types) -> Lift:
    """BIGINT as it comes, in 64 bits if all of them together fit."""
    limbs = [pa.array([], pa.int64())] * 2

    def rows(columns: Sequence[pa.Array], _: int) -> Lifted:
        values, valid = as_integers(columns[0], 0), validity(columns[0])
        if float(np.abs(values.astype(np.float64)).sum()) < 2.0**62:
            return Lifted(Decoded(monoids.add_int, (values,), valid), limbs)
        return Lifted(Decoded(monoids.add_wide, widened((values,)), valid), limbs)

    return Lift(("{0}",), rows)


def decode_decimals(columns: Sequence[pa.Array]) -> Decoded:
    """Exact decimal sums: 64 bits if all of them together fit, else 128."""
    high, low = wide_or_zero(columns[0])
    valid, scale = validity(columns[0]), columns[0].type.scale
    narrow = (high == (low.astype(np.int64) >> 63)).all()
    if narrow and float(np.abs(low.astype(np.int64).astype(np.float64)).sum()) < 2.0**62:
        return Decoded(monoids.add_int, (low.astype(np.int64),), valid, scale=scale)
    return Decoded(monoids.add_wide, (high, low), valid, scale=scale)


def decode_doubles(columns: Sequence[pa.Array]) -> Decoded:
    """Sums of doubles."""
    return Decoded(monoids.add_float, (as_floats(columns[0], 0.0),), validity(columns[0]))


def summed(kind: pa.DataType) -> Measure:
    """The sum of values of a type."""
    if pa.types.is_int64(kind):
        # two limbs: a slice's own sum may need more than 64 bits though the window's answer does not
        limbs = ("sum(shiftright({0}, 32))", "sum({0} & 4294967295L)")
        return Measure(limbs, decode_limbs, monoids.add_wide, encode_limbs, lift=lift_limbs)
    if pa.types.is_integer(kind):
        return Measure(("sum({0})",), decode_integers, monoids.add_int)
    if pa.types.is_decimal(kind):
        return Measure(("sum({0})",), decode_decimals, monoids.add_wide)
    if pa.types.is_floating(kind) or pa.types.is_string(kind):
        return Measure(("sum({0})",), decode_doubles, monoids.add_float)
    raise UnsupportedAggregateError(f"sums of {kind} are not supported yet")


def lower_sums(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Sums; those of integers and decimals fail where the result type cannot hold them."""
    (total,) = measures
    if pa.types.is_floating(result):
        return typed(total.values[0], result, total.valid)
    if pa.types.is_decimal(result):
        high, low = widened(total.values)
        return decimals(high, low, result, total.valid)
    if len(total.values) == 2:
        high, low = total.values
        word = low.astype(np.int64)
        lost = high != (word >> 63)
        if (lost if total.valid is None else lost & total.valid).any():
            raise DataError(f"a sum does not fit {result}; sum CAST(... AS DECIMAL(38)) instead")
        return typed(word, result, total.valid)
    return typed(total.values[0], result, total.valid)


def lower_wrapped(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """The same, but that sums of integers which do not fit go round, as Java's do."""
    (total,) = measures
    if pa.types.is_integer(result) and len(total.values) == 2:
        return typed(total.values[1].astype(np.int64), result, total.valid)
    return lower_sums(measures, result)


def lower_averages(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Sum over count, exactly rounded for decimals."""
    total, count = measures
    n = count.values[0]
    present = n > 0
    if pa.types.is_decimal(result):
        shift = result.scale - total.scale
        high, low = widened(total.values)
        if n.size and int(n.max()) >= 1 << 32:
            raise DataError("an average of decimals over more than 2**32 rows")
        high, low, lost = divided(high, low, np.maximum(n, 1), shift)
        if (lost & present).any():
            raise DataError(f"an average does not fit {result}")
        return decimals(high, low, result, present)
    with np.errstate(all="ignore"):
        return typed(as_double(total.values) / n, result, present)


def _sum(types: Types) -> Recipe:
    return Recipe((summed(types[0]),), lower_sums)


def _lenient_sum(types: Types) -> Recipe:
    refuse_order("sum", types[0])
    return Recipe((summed(types[0]),), lower_wrapped)


def _avg(types: Types) -> Recipe:
    return Recipe((summed(types[0]), counted("count({0})")), lower_averages)


def _lenient_avg(types: Types) -> Recipe:
    refuse_order("avg", types[0])
    return _avg(types)


def refuse_order(function: str, kind: pa.DataType) -> None:
    """Refuse sums that Spark, when it is not ANSI, makes NULL or not by the order in which rows come."""
    if pa.types.is_decimal(kind) and kind.precision > WIDEST_SAFE_DECIMAL:
        digits = f"{WIDEST_SAFE_DECIMAL}, {min(kind.scale, WIDEST_SAFE_DECIMAL)}"
        raise UnsupportedAggregateError(
            f"{function} over {kind} is not supported where spark.sql.ansi.enabled is false: what Spark answers when "
            f"digits run out depends on the order of rows; set it to true, or cast to DECIMAL({digits}) or DOUBLE"
        )


def _lift_mean_int(values: np.ndarray) -> Columns:
    return values >> np.int64(63), values.view(np.uint64), np.ones(len(values), np.int64)


def _lower_mean_int(columns: Columns) -> np.ndarray:
    high, low, count = columns
    signed = low.view(np.int64)
    narrow = high == signed >> np.int64(63)  # fits 64 bits: adding two halves of about 2**64 would cancel
    wide = high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    answers: np.ndarray = np.where(narrow, signed.astype(np.float64), wide) / count
    return answers


def _lift_mean_float(values: np.ndarray) -> Columns:
    return values, np.ones(len(values), np.int64)


def _lower_mean_float(columns: Columns) -> np.ndarray:
    answers: np.ndarray = columns[0] / columns[1]
    return answers


_SUM_ITEMS = by_kind(
    "sum",
    i=plain(monoids.add_int),
    f=plain(monoids.add_float),
    O=of_objects("sum", lambda older, newer: older + newer),
)
_AVG_ITEMS = by_kind(
    "avg",
    i=Resolved(items.MEAN_INT, _lift_mean_int, _lower_mean_int),
    f=Resolved(items.MEAN_FLOAT, _lift_mean_float, _lower_mean_float),
)

AGGREGATES = (
    Aggregate("sum", _sum, _lenient_sum, _SUM_ITEMS),
    Aggregate("avg", _avg, _lenient_avg, _AVG_ITEMS, synonyms=("mean",), category="algebraic"),
)
