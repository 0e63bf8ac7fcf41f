"""``min``, ``max`` of any ordered type: numbers as they are, strings as ranks among those present."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra import monoids
from weft.algebra.aggregate import Aggregate, Types, UnsupportedAggregateError, by_kind, of_objects, plain
from weft.algebra.measure import Decoded, Decoder, Measure, Recipe, values
from weft.algebra.monoid import Monoid
from weft.algebra.numbers import (
    INT64,
    LARGEST_NARROW_DECIMAL,
    Array,
    as_floats,
    as_integers,
    is_ranked,
    rank,
    validity,
    wide_parts,
)


def decoder(largest: bool) -> Decoder:
    """Minima or maxima."""

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


def require_ordered(kind: pa.DataType, function: str) -> None:
    """Refuse values of a type that has no order here."""
    ordered = (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or is_ranked(kind)
    )
    if not ordered:
        raise UnsupportedAggregateError(f"{function} over {kind} is not supported yet")


def _extreme(function: str) -> Callable[[Types], Recipe]:
    largest = function == "max"
    decode = decoder(largest)

    def build(types: Types) -> Recipe:
        require_ordered(types[0], function)
        monoid = extreme_monoid(types[0], largest)
        return Recipe((Measure((f"{function}({{0}})",), decode, monoid, hashed=not is_ranked(types[0])),), values)

    return build


_MAX_ITEMS = by_kind(
    "max",
    i=plain(monoids.max_int),
    f=plain(monoids.max_float),
    O=of_objects("max", lambda older, newer: max(older, newer), commutative=True, selective=True),
)
_MIN_ITEMS = by_kind(
    "min",
    i=plain(monoids.min_int),
    f=plain(monoids.min_float),
    O=of_objects("min", lambda older, newer: min(older, newer), commutative=True, selective=True),
)

AGGREGATES = (
    Aggregate("min", _extreme("min"), items=_MIN_ITEMS, compares=True),
    Aggregate("max", _extreme("max"), items=_MAX_ITEMS, compares=True),
)
