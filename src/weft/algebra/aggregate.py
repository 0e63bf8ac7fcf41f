"""An aggregate, declared once: for SQL over slices, for :class:`~weft.evaluate.window.SlidingWindow` over items.

Average shows the idea: *lift* is Spark's ``sum(x)`` and ``count(x)`` over a slice, *merge* adds both, *lower* divides
them once a window is complete. Properties (invertible, selective, commutative) belong to the measures' monoids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from weft.algebra.measure import Recipe
from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns
from weft.errors import WeftError

Types = Sequence[pa.DataType]
Category = Literal["distributive", "algebraic", "holistic", "sketch"]
"""Gray's: partials of the answer's own kind, of a fixed size, of no fixed size; or of a fixed size and approximate."""


class AggregateError(WeftError):
    """An aggregate that does not exist, or that cannot take what it was given."""


class UnsupportedAggregateError(AggregateError):
    """An aggregate, or an argument type of one, that Weft does not compute."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """An aggregate for items of one type; ``lift`` and ``lower`` take and return whole arrays."""

    monoid: Monoid
    lift: Callable[[np.ndarray], Columns]
    lower: Callable[[Columns], np.ndarray]


Items = Callable[[str, Any], Resolved]
"""Picks the monoid for items of a kind ("i", "f" or "O"), given one of them."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A named aggregate. What it is not given for (SQL, items of a kind) is refused with the reason."""

    name: str
    recipe: Callable[[Types], Recipe] | None = None
    """What SQL keeps of a slice for arguments of some types, and how answers come out of it."""
    lenient: Callable[[Types], Recipe] | None = None
    """The same where Spark is told not to be ANSI, if that is something else."""
    items: Items | None = None
    """How it aggregates the items of a sliding window that knows no Spark."""
    synonyms: tuple[str, ...] = ()
    least: int = 1
    """Arguments."""
    most: int | None = 1
    category: Category = "distributive"
    orders_nulls: bool = False
    """Whether it takes IGNORE NULLS, or the same as a second argument."""
    by_event_time: str | None = None
    """The aggregate that it is when the event time is given as a second argument."""
    compares: bool = False
    """Whether it compares its arguments, so that a collation would matter."""
    in_spark: str | None = None
    """What it is in Spark's words, such as ``exp(avg(ln({0})))``, if Spark has no function of its name."""

    @property
    def in_sql(self) -> bool:
        """Whether SQL knows it."""
        return self.recipe is not None or self.by_event_time is not None

    @property
    def takes(self) -> str:
        """How many arguments, in words."""
        if self.most is None:
            return f"at least {self.least} argument{'s' if self.least > 1 else ''}"
        return f"{self.most} argument{'s' if self.most > 1 else ''}"

    def spelled(self, arguments: Sequence[str]) -> str:
        """A call as Spark would compute it over all rows of a window.

        Examples
        --------
        >>> Aggregate("sum").spelled(["x + 1"]), Aggregate("count").spelled([])
        ('sum(x + 1)', 'count(*)')
        >>> Aggregate("geometric_mean", in_spark="exp(avg(ln({0})))").spelled(["x + 1"])
        'exp(avg(ln((x + 1))))'
        """
        if self.in_spark is not None:
            return self.in_spark.format(*(f"({argument})" for argument in arguments))
        return f"{self.name}({', '.join(arguments) or '*'})"

    def kept(self, types: Types, *, ansi: bool = True) -> Recipe:
        """What is kept of a slice for arguments of these types."""
        recipe = self.recipe if ansi else self.lenient or self.recipe
        if recipe is None:
            raise UnsupportedAggregateError(f"{self.name} is not an aggregate that Weft computes in SQL")
        return recipe(types)

    def resolve(self, kind: str, item: Any) -> Resolved:
        """The monoid for items of a kind, with the way in and out."""
        if self.items is None:
            raise AggregateError(f"{self.name} is for SQL; a sliding window over items does not know it")
        return self.items(kind, item)


def by_kind(name: str, **kinds: Resolved) -> Items:
    """Items by their kind: integers ``i``, doubles ``f``, objects ``O``."""

    def resolve(kind: str, item: Any) -> Resolved:
        if kind not in kinds:
            known = ", ".join({"i": "integers", "f": "doubles", "O": "objects"}[known] for known in kinds)
            raise AggregateError(f"{name} takes {known}, not items like {item!r}")
        return kinds[kind]

    return resolve


def plain(monoid: Monoid) -> Resolved:
    """Items are their own partials, and partials their own answers."""
    return Resolved(monoid, lambda items: (items,), first_column)


def first_column(columns: Columns) -> np.ndarray:
    """A partial's first number is the answer."""
    return columns[0]


def of_objects(
    name: str, operation: Callable[[Any, Any], Any], *, commutative: bool = False, selective: bool = False
) -> Resolved:
    """Python objects, which are their own partials; the identity is None."""

    def merge(older: Any, newer: Any) -> Any:
        if older is None or newer is None:
            return newer if older is None else older
        return operation(older, newer)

    return plain(Monoid(name, ("object",), (None,), merge, commutative=commutative, selective=selective))
