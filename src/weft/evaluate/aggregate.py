"""Aggregates: lift an item to a partial, merge partials, lower a partial to an answer.

An aggregate is resolved for the type of its items when that is known. What numba cannot hold (strings, decimals, Python
objects) is kept in object arrays and merged by plain Python, by the same techniques.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.errors import WeftError
from weft.evaluate.columns import Columns


class AggregateError(WeftError):
    """An aggregate that does not exist, or that cannot take the items it was given."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """An aggregate for items of one type; ``lift`` and ``lower`` take and return whole arrays."""

    monoid: Monoid
    lift: Callable[[np.ndarray], Columns]
    lower: Callable[[Columns], np.ndarray]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A named aggregate; ``resolve`` picks its monoid for items of a kind ("i", "f" or "O"), given one of them."""

    name: str
    resolve: Callable[[str, Any], Resolved]
