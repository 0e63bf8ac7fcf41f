"""The aggregates that :class:`~weft.evaluate.window.SlidingWindow` knows by name.

Integers stay exact integers, doubles are never subtracted, NaN is the largest double; anything else is compared, added
and joined as Python objects.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.algebra import monoids
from weft.algebra.monoid import Kernel, Monoid
from weft.evaluate import item_monoids
from weft.evaluate.aggregate import Aggregate, AggregateError, Resolved
from weft.evaluate.columns import Columns


def aggregate_named(name: str) -> Aggregate:
    """The built-in aggregate of that name.

    Examples
    --------
    >>> aggregate_named("summ")
    Traceback (most recent call last):
        ...
    weft.evaluate.aggregate.AggregateError: no aggregate "summ"; did you mean sum?
    """
    found = AGGREGATES.get(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name, AGGREGATES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(AGGREGATES)}"
    raise AggregateError(f'no aggregate "{name}"; {hint}')


def string_agg(separator: str = "") -> Aggregate:
    """Strings joined in order of arrival.

    Examples
    --------
    >>> from weft.evaluate import SlidingWindow
    >>> SlidingWindow(string_agg("-"), [2]).push_many(["a", "b", "c"])[:, 0].tolist()
    ['a', 'a-b', 'b-c']
    """
    return _by_kind("string_agg", O=_plain(_optional("string_agg", lambda older, newer: older + separator + newer)))


def _single(items: np.ndarray) -> Columns:
    return (items,)


def _value(columns: Columns) -> np.ndarray:
    return columns[0]


def _plain(monoid: Monoid) -> Resolved:
    """Items are their own partials, and partials their own answers."""
    return Resolved(monoid, _single, _value)


def _by_kind(name: str, **kinds: Resolved) -> Aggregate:
    def resolve(kind: str, item: Any) -> Resolved:
        if kind not in kinds:
            known = ", ".join({"i": "integers", "f": "doubles", "O": "objects"}[known] for known in kinds)
            raise AggregateError(f"{name} takes {known}, not items like {item!r}")
        return kinds[kind]

    return Aggregate(name, resolve)


def _optional(name: str, operation: Kernel, *, commutative: bool = False, selective: bool = False) -> Monoid:
    """A monoid over objects whose identity is None."""

    def merge(older: Any, newer: Any) -> Any:
        if older is None or newer is None:
            return newer if older is None else older
        return operation(older, newer)

    return Monoid(name, ("object",), (None,), merge, commutative=commutative, selective=selective)


def _count_items(items: np.ndarray) -> Columns:
    return (np.ones(len(items), np.int64),)


def _lift_mean_int(items: np.ndarray) -> Columns:
    return items >> np.int64(63), items.view(np.uint64), np.ones(len(items), np.int64)


def _lower_mean_int(columns: Columns) -> np.ndarray:
    high, low, count = columns
    signed = low.view(np.int64)
    narrow = high == signed >> np.int64(63)  # fits 64 bits: adding two halves of about 2**64 would cancel
    wide = high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    answers: np.ndarray = np.where(narrow, signed.astype(np.float64), wide) / count
    return answers


def _lift_mean_float(items: np.ndarray) -> Columns:
    return items, np.ones(len(items), np.int64)


def _lower_mean_float(columns: Columns) -> np.ndarray:
    answers: np.ndarray = columns[0] / columns[1]
    return answers


def _lift_moments(items: np.ndarray) -> Columns:
    return np.ones(len(items)), items.astype(np.float64), np.zeros(len(items))


def _spread(lower: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Resolved:
    """A statistic of the count and the sum of squared deviations."""

    def lowered(columns: Columns) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return lower(columns[0], columns[2])

    return Resolved(monoids.moments2, _lift_moments, lowered)


def _spreads(name: str, lower: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Aggregate:
    resolved = _spread(lower)
    return _by_kind(name, i=resolved, f=resolved)


def _lift_present(items: np.ndarray) -> Columns:
    return items, np.ones(len(items), np.int64)


def _present(monoid: Monoid) -> Resolved:
    return Resolved(monoid, _lift_present, _value)


_SUM_OBJECTS = _optional("sum", lambda older, newer: older + newer)
_COUNT = Resolved(monoids.add_int, _count_items, _value)

AGGREGATES: dict[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (
        _by_kind("sum", i=_plain(monoids.add_int), f=_plain(monoids.add_float), O=_plain(_SUM_OBJECTS)),
        _by_kind("count", i=_COUNT, f=_COUNT, O=_COUNT),
        _by_kind(
            "avg",
            i=Resolved(item_monoids.MEAN_INT, _lift_mean_int, _lower_mean_int),
            f=Resolved(item_monoids.MEAN_FLOAT, _lift_mean_float, _lower_mean_float),
        ),
        _by_kind(
            "max",
            i=_plain(monoids.max_int),
            f=_plain(monoids.max_float),
            O=_plain(_optional("max", lambda older, newer: max(older, newer), commutative=True, selective=True)),
        ),
        _by_kind(
            "min",
            i=_plain(monoids.min_int),
            f=_plain(monoids.min_float),
            O=_plain(_optional("min", lambda older, newer: min(older, newer), commutative=True, selective=True)),
        ),
        _by_kind("bit_and", i=_plain(monoids.and_int)),
        _by_kind("bit_or", i=_plain(monoids.or_int)),
        _by_kind("bit_xor", i=_plain(monoids.xor_int)),
        _spreads("var_pop", lambda n, m2: m2 / n),
        _spreads("var_samp", lambda n, m2: m2 / (n - 1)),
        _spreads("stddev_pop", lambda n, m2: np.sqrt(m2 / n)),
        _spreads("stddev_samp", lambda n, m2: np.sqrt(m2 / (n - 1))),
        _by_kind(
            "first",
            i=_present(item_monoids.FIRST_INT),
            f=_present(item_monoids.FIRST_FLOAT),
            O=_plain(_optional("first", lambda older, newer: older, selective=True)),
        ),
        _by_kind(
            "last",
            i=_present(item_monoids.LAST_INT),
            f=_present(item_monoids.LAST_FLOAT),
            O=_plain(_optional("last", lambda older, newer: newer, selective=True)),
        ),
        _by_kind("concat", O=_plain(_optional("concat", lambda older, newer: older + newer))),
    )
}
