"""Every aggregate, declared once: its measures over a slice, and how merged measures become an answer.

Average shows the idea: *lift* is Spark's ``sum(x)`` and ``count(x)`` over a slice, *merge* adds both, *lower* divides
them once a window is complete. Properties (invertible, selective, commutative) belong to the measures' monoids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weft.algebra import lower, monoids
from weft.algebra.lower import Lowering
from weft.algebra.measures import (
    MOMENTS,
    Measure,
    decode_bits,
    decode_by,
    decode_counts,
    decode_decimal_sums,
    decode_extreme,
    decode_float_sums,
    decode_integer_sums,
    decode_joint,
    decode_limbs,
    decode_moments,
    extreme_monoid,
    is_ranked,
)
from weft.errors import WeftError


class UnsupportedAggregateError(WeftError):
    """An aggregate, or an argument type of one, that Weft does not compute."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What has to be kept of a slice for one aggregate call, and how its answers come out of that."""

    measures: tuple[Measure, ...]
    lower: Lowering


Types = Sequence[pa.DataType]

WIDEST_SAFE_DECIMAL = 28
"""Spark sums decimals in ten more digits, up to 38: ten billion of them fit."""

ROWS = Measure(("count(1)",), decode_counts, monoids.add_int)
"""How many rows a slice holds: tells which windows appear, and is ``count(*)``."""


def recipe(function: str, types: Types, *, ansi: bool = True) -> Recipe:
    """How to compute ``function`` over arguments of these types.

    Where Spark is told not to be ANSI, sums of integers go round instead of failing.

    Examples
    --------
    >>> [measure.columns for measure in recipe("avg", [pa.float64()]).measures]
    [('sum({0})',), ('count({0})',)]
    """
    if function not in RECIPES:
        raise UnsupportedAggregateError(f"{function} is not an aggregate that Weft computes")
    if not ansi and function in {"sum", "avg"}:
        _refuse_order(function, types[0])
    made = RECIPES[function](types)
    return made if ansi or function != "sum" else Recipe(made.measures, lower.wrapped_sums)


def _refuse_order(function: str, kind: pa.DataType) -> None:
    """Refuse sums that Spark, when it is not ANSI, makes NULL or not by the order in which rows come."""
    if pa.types.is_decimal(kind) and kind.precision > WIDEST_SAFE_DECIMAL:
        digits = f"{WIDEST_SAFE_DECIMAL}, {min(kind.scale, WIDEST_SAFE_DECIMAL)}"
        raise UnsupportedAggregateError(
            f"{function} over {kind} is not supported where spark.sql.ansi.enabled is false: what Spark answers when "
            f"digits run out depends on the order of rows; set it to true, or cast to DECIMAL({digits}) or DOUBLE"
        )


def _count(types: Types) -> Recipe:
    if not types:
        return Recipe((ROWS,), lower.integers)
    arguments = ", ".join(f"{{{index}}}" for index in range(len(types)))
    return Recipe((Measure((f"count({arguments})",), decode_counts, monoids.add_int),), lower.integers)


def _count_if(types: Types) -> Recipe:
    return Recipe((Measure(("count_if({0})",), decode_counts, monoids.add_int),), lower.integers)


def _sum_measure(kind: pa.DataType) -> Measure:
    if pa.types.is_int64(kind):
        # two limbs: a slice's own sum may need more than 64 bits though the window's answer does not
        return Measure(("sum(shiftright({0}, 32))", "sum({0} & 4294967295L)"), decode_limbs, monoids.add_wide)
    if pa.types.is_integer(kind):
        return Measure(("sum({0})",), decode_integer_sums, monoids.add_int)
    if pa.types.is_decimal(kind):
        return Measure(("sum({0})",), decode_decimal_sums, monoids.add_wide)
    if pa.types.is_floating(kind) or pa.types.is_string(kind):
        return Measure(("sum({0})",), decode_float_sums, monoids.add_float)
    raise UnsupportedAggregateError(f"sums of {kind} are not supported yet")


def _sum(types: Types) -> Recipe:
    return Recipe((_sum_measure(types[0]),), lower.sums)


def _avg(types: Types) -> Recipe:
    return Recipe((_sum_measure(types[0]), Measure(("count({0})",), decode_counts, monoids.add_int)), lower.averages)


def _extreme(function: str) -> Callable[[Types], Recipe]:
    decode = decode_extreme(largest=function == "max")

    def build(types: Types) -> Recipe:
        _require_ordered(types[0], function)
        hashed = not is_ranked(types[0])
        measure = Measure((f"{function}({{0}})",), decode, extreme_monoid(types[0], function == "max"), hashed)
        return Recipe((measure,), lower.values)

    return build


def _require_ordered(kind: pa.DataType, function: str) -> None:
    ordered = (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or is_ranked(kind)
    )
    if not ordered:
        raise UnsupportedAggregateError(f"{function} over {kind} is not supported yet")


MOMENT_COLUMNS = ("var_pop({0})", "skewness({0})", "kurtosis({0})")


def _moments(order: int, lowering: Lowering) -> Callable[[Types], Recipe]:
    decode, monoid = decode_moments(order), MOMENTS[order]

    def build(types: Types) -> Recipe:
        # doubles share their sum with sum and avg; an integer's exact sum would be another column
        total = "sum({0})" if pa.types.is_floating(types[0]) else "sum(double({0}))"
        return Recipe((Measure(("count({0})", total, *MOMENT_COLUMNS[: order - 1]), decode, monoid),), lowering)

    return build


JOINT_COLUMNS = (
    "regr_count({1}, {0})",
    "sum(nvl2({1}, double({0}), null))",
    "sum(nvl2({0}, double({1}), null))",
    "regr_sxy({1}, {0})",
    "regr_sxx({1}, {0})",
    "regr_syy({1}, {0})",
)


def _joint(measure: Measure, lowering: Lowering) -> Callable[[Types], Recipe]:
    return lambda _: Recipe((measure,), lowering)


COVARIANCE = Measure(JOINT_COLUMNS[:4], decode_joint(monoids.covariance), monoids.covariance)
CORRELATION = Measure(JOINT_COLUMNS, decode_joint(monoids.correlation), monoids.correlation)


def _bits(function: str) -> Callable[[Types], Recipe]:
    monoid = {"bit_and": monoids.and_int, "bit_or": monoids.or_int, "bit_xor": monoids.xor_int}[function]
    measure = Measure((f"{function}({{0}})",), decode_bits(monoid), monoid)
    return lambda _: Recipe((measure,), lower.values)


def _booleans(function: str) -> Callable[[Types], Recipe]:
    largest = function == "bool_or"
    monoid = monoids.max_int if largest else monoids.min_int
    measure = Measure((f"{function}({{0}})",), decode_extreme(largest=largest), monoid)
    return lambda _: Recipe((measure,), lower.values)


def _by(function: str) -> Callable[[Types], Recipe]:
    # a struct of both, so that ties of the order are settled by the value and not by the order of arrival
    extreme = function.removesuffix("_by")
    column = f"{extreme}(CASE WHEN {{1}} IS NOT NULL THEN struct({{1}} AS o, {{0}} AS v) END)"
    monoid = monoids.argmax_int if extreme == "max" else monoids.argmin_int
    measure = Measure((column,), decode_by(largest=extreme == "max"), monoid, hashed=False)

    def build(types: Types) -> Recipe:
        _require_ordered(types[1], function)
        _require_ordered(types[0], function)
        return Recipe((measure,), lower.carried)

    return build


RECIPES: dict[str, Callable[[Types], Recipe]] = {
    "count": _count,
    "count_if": _count_if,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "var_pop": _moments(2, lower.variance(population=True)),
    "var_samp": _moments(2, lower.variance(population=False)),
    "stddev_pop": _moments(2, lower.deviation(population=True)),
    "stddev_samp": _moments(2, lower.deviation(population=False)),
    "skewness": _moments(3, lower.skewness),
    "kurtosis": _moments(4, lower.kurtosis),
    "covar_pop": _joint(COVARIANCE, lower.covariance(population=True)),
    "covar_samp": _joint(COVARIANCE, lower.covariance(population=False)),
    "corr": _joint(CORRELATION, lower.correlation),
    "bool_and": _booleans("bool_and"),
    "bool_or": _booleans("bool_or"),
    "bit_and": _bits("bit_and"),
    "bit_or": _bits("bit_or"),
    "bit_xor": _bits("bit_xor"),
    "min_by": _by("min_by"),
    "max_by": _by("max_by"),
}
"""``first`` and ``last`` are ``min_by`` and ``max_by`` event time: the planner writes them so."""
