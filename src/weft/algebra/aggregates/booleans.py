"""``bool_and``, ``bool_or``: the least and the largest of false and true."""

from __future__ import annotations

from weft.algebra import monoids
from weft.algebra.aggregate import Aggregate
from weft.algebra.aggregates.extremes import decoder
from weft.algebra.measure import Measure, Recipe, values


def _booleans(name: str, *synonyms: str, largest: bool) -> Aggregate:
    monoid = monoids.max_int if largest else monoids.min_int
    measure = Measure((f"{name}({{0}})",), decoder(largest), monoid)
    return Aggregate(name, lambda _: Recipe((measure,), values), synonyms=synonyms)


AGGREGATES = (
    _booleans("bool_and", "every", largest=False),
    _booleans("bool_or", "any", "some", largest=True),
)
