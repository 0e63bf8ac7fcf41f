"""Items for sliding windows that know no Spark: of every kind, in the order of time."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.aggregate import Aggregate, AggregateError, Resolved
from weft.checks.samples import WHOLE, sample


def items_by_kind() -> dict[str, np.ndarray]:
    """Integers, doubles and texts."""
    table = sample()
    found = {kind: np.asarray(table[column].combine_chunks()) for kind, column in WHOLE.items()}
    return found | {"O": np.array([f"{item}" for item in found["i"]], object)}


def resolved_for(aggregate: Aggregate, kind: str, item: Any) -> Resolved | None:
    """What an aggregate does with items of a kind; None if it does not take them."""
    try:
        return aggregate.resolve(kind, item)
    except AggregateError:
        return None
