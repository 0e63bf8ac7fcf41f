"""A deliberately naive evaluator: every window is looked up row by row and computed from scratch, in exact numbers.

It knows nothing of Spark, slices or sharing. Integers and decimals are exact, doubles are taken as the fractions that
they are, so a sum of doubles comes out as *the* sum, to hold any other against. It answers what Spark cannot be asked:
what the exact value is, and windows with range < slide.

>>> minute = 60_000_000
>>> rows = [{"ts": 0, "x": 1.5}, {"ts": 70_000_000, "x": None}, {"ts": 90_000_000, "x": 4.0}]
>>> found = answers(rows, Window(2 * minute, minute), [Aggregate("count"), Aggregate("sum", ("x",))])
>>> for (start, key), values in sorted(found.items()):
...     print(start // minute, key, values)
-1 () (1, Fraction(3, 2))
0 () (3, Fraction(11, 2))
1 () (2, Fraction(4, 1))
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]
Argument = str | Callable[[Row], Any]
"""A column's name, or a function of the row."""


@dataclass(frozen=True, slots=True)
class Window:
    """Half-open windows [start + k * slide, start + k * slide + range), in microseconds."""

    range: int
    slide: int
    start: int = 0

    def starts(self, time: int) -> Iterator[int]:
        """Where the windows that hold an instant start.

        >>> list(Window(10, 4).starts(9)), list(Window(2, 5).starts(9)), list(Window(5, 5, 3).starts(-1))
        ([8, 4, 0], [], [-2])
        """
        start = time - (time - self.start) % self.slide
        while start > time - self.range:
            yield start
            start -= self.slide


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A call: its function, its arguments, its FILTER."""

    function: str
    arguments: tuple[Argument, ...] = ()
    where: Callable[[Row], Any] | None = None


def answers(
    rows: Iterable[Row],
    window: Window,
    aggregates: list[Aggregate],
    *,
    keys: tuple[Argument, ...] = (),
    where: Callable[[Row], Any] | None = None,
    event_time: str = "ts",
) -> dict[tuple[int, tuple[Any, ...]], tuple[Any, ...]]:
    """The answers by (window start, key); rows without an event time belong nowhere."""
    held: dict[tuple[int, tuple[Any, ...]], list[Row]] = defaultdict(list)
    for row in rows:
        if row[event_time] is None or (where is not None and where(row) is not True):
            continue
        key = tuple(as_key(value_of(row, part)) for part in keys)
        for start in window.starts(row[event_time]):
            held[start, key].append(row)
    return {
        place: tuple(answer(aggregate, inside, event_time) for aggregate in aggregates)
        for place, inside in held.items()
    }


def answer(aggregate: Aggregate, rows: list[Row], event_time: str) -> Any:
    """One aggregate over the rows of one window and key."""
    if aggregate.where is not None:
        rows = [row for row in rows if aggregate.where(row) is True]
    if aggregate.function == "count" and not aggregate.arguments:
        return len(rows)
    if aggregate.function in ("first", "last"):
        function = "min_by" if aggregate.function == "first" else "max_by"
        return tied(function, [(value_of(row, aggregate.arguments[0]), row[event_time]) for row in rows])
    tuples = [tuple(value_of(row, argument) for argument in aggregate.arguments) for row in rows]
    if aggregate.function in ("min_by", "max_by"):
        return tied(aggregate.function, tuples)
    present = [values for values in tuples if None not in values]
    if aggregate.function in PAIRS:
        return PAIRS[aggregate.function](present)
    return FUNCTIONS[aggregate.function]([values[0] for values in present])


def value_of(row: Row, argument: Argument) -> Any:
    """An argument's value in a row."""
    return row[argument] if isinstance(argument, str) else argument(row)


def as_key(value: Any) -> Any:
    """A value as Spark groups it: NaN equals NaN, -0.0 equals 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def magnitude(values: Iterable[Any]) -> Fraction:
    """The sum of magnitudes, the scale of the bound for doubles.

    >>> magnitude([1.5, None, -2.5])
    Fraction(4, 1)
    """
    return sum((abs(Fraction(v)) for v in values if v is not None), Fraction(0))


def tied(function: str, pairs: list[tuple[Any, Any]]) -> frozenset[Any]:
    """All values that min_by or max_by may give: those of the rows with the best order; NULL alone if there is none."""
    ordered = [(value, order) for value, order in pairs if order is not None]
    if not ordered:
        return frozenset([None])
    best = (min if function == "min_by" else max)((order for _, order in ordered), key=rank)
    return frozenset(as_key(value) for value, order in ordered if rank(order) == rank(best))


def rank(value: Any) -> Any:
    """Spark's order: NaN is the largest number, strings go by their bytes."""
    if isinstance(value, str):
        return value.encode()
    return (isinstance(value, float) and math.isnan(value), 0 if value != value else value)


def total(values: list[Any]) -> Any:
    """The sum: exact, or the infinity or NaN that doubles come to."""
    if not values:
        return None
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        return sum(v for v in values if not math.isfinite(v))
    if isinstance(values[0], float):
        return sum(map(Fraction, values))
    if isinstance(values[0], Decimal):
        with localcontext(prec=80):
            return sum(values, Decimal(0))
    return sum(values)


def mean(values: list[Any]) -> Any:
    """The average: a fraction, or for decimals a decimal with four digits more, rounded half up."""
    summed = total(values)
    if summed is None or (isinstance(summed, float) and not math.isfinite(summed)):
        return summed
    if isinstance(summed, Decimal):
        digits = -values[0].as_tuple().exponent + 4
        with localcontext(prec=80):
            return (summed / len(values)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return Fraction(summed) / len(values)


def central(values: list[Any], power: int) -> Any:
    """The sum of powers of distances from the mean; NaN where a value is not finite."""
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        return math.nan
    exact = [Fraction(v) for v in values]
    middle = sum(exact) / len(exact)
    return sum((v - middle) ** power for v in exact)


def variance(values: list[Any], lost: int) -> Any:
    """Population (lost = 0) or sample (lost = 1) variance."""
    if len(values) <= lost:
        return None
    return central(values, 2) / (len(values) - lost)


def root(value: Any) -> Any:
    """A square root, as exact as a double is."""
    return None if value is None else math.sqrt(value)


def standardized(values: list[Any], power: int) -> Any:
    """The third or fourth standardized moment; NULL where the variance is zero."""
    if not values:
        return None
    second, high = central(values, 2), central(values, power)
    if second == 0:
        return None
    if math.isnan(second):
        return math.nan
    return float(high / len(values)) / float(second / len(values)) ** (power / 2)


def covariance(pairs: list[tuple[Any, Any]], lost: int) -> Any:
    """Population or sample covariance."""
    if len(pairs) <= lost:
        return None
    if any(not math.isfinite(v) for pair in pairs for v in pair):
        return math.nan
    xs, ys = [Fraction(x) for x, _ in pairs], [Fraction(y) for _, y in pairs]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / (len(pairs) - lost)


def correlation(pairs: list[tuple[Any, Any]]) -> Any:
    """Pearson's correlation; NULL where one side is constant."""
    together = covariance(pairs, 0)
    spreads = [variance([pair[side] for pair in pairs], 0) for side in (0, 1)]
    if together is None or len(pairs) == 1 or 0 in spreads:
        return None
    if math.isnan(together):
        return math.nan
    return float(together) / math.sqrt(spreads[0] * spreads[1])


def bits(values: list[int], combine: Callable[[int, int], int]) -> int | None:
    """A bit aggregate."""
    if not values:
        return None
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result


FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "count_if": lambda values: sum(value is True for value in values),
    "sum": total,
    "avg": mean,
    "min": lambda values: min(values, key=rank, default=None),
    "max": lambda values: max(values, key=rank, default=None),
    "var_pop": lambda values: variance(values, 0),
    "var_samp": lambda values: variance(values, 1),
    "stddev_pop": lambda values: root(variance(values, 0)),
    "stddev_samp": lambda values: root(variance(values, 1)),
    "skewness": lambda values: standardized(values, 3),
    "kurtosis": lambda values: None if (fourth := standardized(values, 4)) is None else fourth - 3,
    "bool_and": lambda values: all(values) if values else None,
    "bool_or": lambda values: any(values) if values else None,
    "bit_and": lambda values: bits(values, lambda a, b: a & b),
    "bit_or": lambda values: bits(values, lambda a, b: a | b),
    "bit_xor": lambda values: bits(values, lambda a, b: a ^ b),
}
PAIRS: dict[str, Callable[[list[tuple[Any, Any]]], Any]] = {
    "covar_pop": lambda pairs: covariance(pairs, 0),
    "covar_samp": lambda pairs: covariance(pairs, 1),
    "corr": correlation,
}
