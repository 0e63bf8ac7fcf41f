"""``bit_and``, ``bit_or``, ``bit_xor`` of integers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from weft.algebra import monoids
from weft.algebra.aggregate import Aggregate, by_kind, plain
from weft.algebra.measure import Decoded, Decoder, Measure, Recipe, values
from weft.algebra.monoid import Monoid
from weft.algebra.numbers import as_integers, validity


def _decoder(monoid: Monoid) -> Decoder:
    def decode(columns: Sequence[pa.Array]) -> Decoded:
        return Decoded(monoid, (as_integers(columns[0], monoid.identity[0]),), validity(columns[0]))

    return decode


def _bits(name: str, monoid: Monoid) -> Aggregate:
    measure = Measure((f"{name}({{0}})",), _decoder(monoid), monoid)
    return Aggregate(name, lambda _: Recipe((measure,), values), items=by_kind(name, i=plain(monoid)))


AGGREGATES = (
    _bits("bit_and", monoids.and_int),
    _bits("bit_or", monoids.or_int),
    _bits("bit_xor", monoids.xor_int),
)
