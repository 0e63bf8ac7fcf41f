"""``first``, ``last``, and strings joined in order. In SQL the first is the one with the least event time."""

from __future__ import annotations

from weft.algebra import items
from weft.algebra.aggregate import Aggregate, Resolved, by_kind, first_column, of_objects
from weft.algebra.monoid import Monoid


def _present(monoid: Monoid) -> Resolved:
    return Resolved(monoid, items.lift_present, first_column)


_FIRST_ITEMS = by_kind(
    "first",
    i=_present(items.FIRST_INT),
    f=_present(items.FIRST_FLOAT),
    O=of_objects("first", lambda older, newer: older, selective=True),
)
_LAST_ITEMS = by_kind(
    "last",
    i=_present(items.LAST_INT),
    f=_present(items.LAST_FLOAT),
    O=of_objects("last", lambda older, newer: newer, selective=True),
)


def string_agg(separator: str = "") -> Aggregate:
    """Strings joined in order of arrival.

    Examples
    --------
    >>> from weft.evaluate import SlidingWindow
    >>> SlidingWindow(string_agg("-"), [2]).push_many(["a", "b", "c"])[:, 0].tolist()
    ['a', 'a-b', 'b-c']
    """
    joined = of_objects("string_agg", lambda older, newer: older + separator + newer)
    return Aggregate("string_agg", items=by_kind("string_agg", O=joined))


_CONCAT = of_objects("concat", lambda older, newer: older + newer)

AGGREGATES = (
    # Spark's any_value may be any value; the first by event time is one of them
    Aggregate(
        "first",
        items=_FIRST_ITEMS,
        synonyms=("first_value", "any_value"),
        most=2,
        orders_nulls=True,
        by_event_time="min_by",
    ),
    Aggregate("last", items=_LAST_ITEMS, synonyms=("last_value",), most=2, orders_nulls=True, by_event_time="max_by"),
    Aggregate("concat", items=by_kind("concat", O=_CONCAT)),
)
