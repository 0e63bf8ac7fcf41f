"""``count``, ``count_if``: how many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.algebra import monoids
from weft.algebra.aggregate import Aggregate, Resolved, Types, by_kind, first_column
from weft.algebra.measure import Answered, Decoded, Measure, Recipe
from weft.algebra.numbers import Columns, as_integers, typed


def decode(columns: Sequence[pa.Array]) -> Decoded:
    """Counts, which are never NULL but where nothing was asked."""
    return Decoded(monoids.add_int, (as_integers(columns[0], 0),))


def lower(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """The counts themselves."""
    return typed(measures[0].values[0], result, None)


def counted(template: str) -> Measure:
    """What a Spark expression counts."""
    return Measure((template,), decode, monoids.add_int)


ROWS = counted("count(1)")
"""How many rows a slice holds: tells which windows appear, and is ``count(*)``."""


def _count(types: Types) -> Recipe:
    arguments = ", ".join(f"{{{index}}}" for index in range(len(types)))
    return Recipe((counted(f"count({arguments})") if types else ROWS,), lower)


def _ones(items: np.ndarray) -> Columns:
    return (np.ones(len(items), np.int64),)


_ITEMS = Resolved(monoids.add_int, _ones, first_column)

AGGREGATES = (
    Aggregate("count", _count, items=by_kind("count", i=_ITEMS, f=_ITEMS, O=_ITEMS), most=None),
    Aggregate("count_if", lambda _: Recipe((counted("count_if({0})"),), lower)),
)
