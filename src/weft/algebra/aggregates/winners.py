"""``min_by``, ``max_by``: the value of the row that is first or last in some order; the smaller or larger of ties."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra import monoids
from weft.algebra.aggregate import Aggregate, Types
from weft.algebra.aggregates.extremes import require_ordered
from weft.algebra.lifting import present
from weft.algebra.measure import Answered, Decoded, Decoder, Lift, Lifted, Measure, Recipe
from weft.algebra.monoid import Monoid
from weft.algebra.numbers import INT64, Array, flatten, sortable, typed


def _decoder(monoid: Monoid) -> Decoder:
    """The order as int64, the value as the number of the row that holds it."""

    def decode(columns: Sequence[pa.Array]) -> Decoded:
        pairs = columns[0]
        order, value = flatten(pairs.field(0)), flatten(pairs.field(1))
        present = np.asarray(pc.is_valid(pairs))
        keys = np.where(present, sortable(order), monoid.identity[0])
        rows = np.where(present, np.arange(len(pairs), dtype=np.int64), -1)
        return Decoded(monoid, (keys, rows), None, value)

    return decode


def _encode(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    """The pairs of the winning rows."""
    rows = merged.values[-1]
    return [originals[0].take(pa.array(rows, pa.int64(), mask=rows < 0))]


def _lift(monoid: Monoid, _: Types) -> Lift:
    """Order and value of every row; ties are settled by the value, as structs are compared: NULL is the smallest."""

    def rows(columns: Sequence[pa.Array], length: int) -> Lifted:
        order, value = columns
        absent = ~present([order], length)
        pairs = pa.StructArray.from_arrays([order, value], ["o", "v"], mask=pa.array(absent))
        numbers = np.where(absent, -1, np.arange(length, dtype=np.int64))
        return Lifted(Decoded(monoid, (sortable(order), _nulls_first(value), numbers)), [pairs])

    return Lift(("{1}", "{0}"), rows)


def _nulls_first(value: pa.Array) -> Array:
    """Numbers that sort as the values do, NULL before all."""
    numbers = sortable(value)
    if not value.null_count:
        return numbers
    absent = ~present([value], len(value))
    if (numbers[~absent] == INT64.min).any():
        numbers = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return np.where(absent, INT64.min, numbers)


def _lower(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """The value of the winning row."""
    (answer,) = measures
    if answer.dictionary is None:
        raise AssertionError("min_by and max_by carry their values")
    rows = answer.values[1]
    return answer.dictionary.take(typed(rows, pa.int64(), rows >= 0)).cast(result)


def _by(name: str, monoid: Monoid, tied: Monoid) -> Aggregate:
    # a struct of both, so that ties of the order are settled by the value and not by the order of arrival
    column = f"{name.removesuffix('_by')}(CASE WHEN {{1}} IS NOT NULL THEN struct({{1}} AS o, {{0}} AS v) END)"
    measure = Measure((column,), _decoder(monoid), monoid, _encode, hashed=False, lift=partial(_lift, tied))

    def build(types: Types) -> Recipe:
        require_ordered(types[1], name)
        require_ordered(types[0], name)
        return Recipe((measure,), _lower)

    return Aggregate(name, build, least=2, most=2, compares=True)


AGGREGATES = (
    _by("min_by", monoids.argmin_int, monoids.argmin_tied),
    _by("max_by", monoids.argmax_int, monoids.argmax_tied),
)
