"""``geometric_mean(x)``: the mean of growth rates, NULL where there is no x; a sum of logarithms and a count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.algebra import monoids
from weft.algebra.aggregate import Aggregate
from weft.algebra.measure import Answered, Decoded, Measure, Recipe
from weft.algebra.numbers import as_floats, as_integers, typed, validity


def decode_logarithms(columns: Sequence[pa.Array]) -> Decoded:
    """What Spark computed of each slice, as numbers."""
    return Decoded(monoids.add_float, (as_floats(columns[0], 0.0),), validity(columns[0]))


def decode_counts(columns: Sequence[pa.Array]) -> Decoded:
    """Of how many values."""
    return Decoded(monoids.add_int, (as_integers(columns[0], 0),))


def lower(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Answers from what was merged over whole windows."""
    logarithms, count = (measure.values[0] for measure in measures)
    with np.errstate(all="ignore"):
        return typed(np.exp(logarithms / count), result, count > 0)


LOGARITHMS = Measure(("sum(ln({0}))",), decode_logarithms, monoids.add_float)
COUNT = Measure(("count(ln({0}))",), decode_counts, monoids.add_int)

AGGREGATES = (
    Aggregate(
        "geometric_mean",
        lambda types: Recipe((LOGARITHMS, COUNT), lower),
        category="algebraic",
        in_spark="exp(avg(ln({0})))",
    ),
)
