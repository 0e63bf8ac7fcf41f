"""Random aggregates, each with what is needed to judge an answer: exact, within a bound, or any of the tied values.

The bounds are those of semantics 3 and are computed by Spark from the window's own rows, next to the answer:
a sum of doubles may differ by 1e-9 of the sum of magnitudes, a variance in the scale of the variance, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from oracle.data import INTEGERS, precision_and_scale
from oracle.expressions import Scalar, ScalarWriter, fits

NOT_COMPARED = "-1D"
"""The bound of a value that semantics 3 excludes."""

WIDEST_WITHOUT_ANSI = 28
"""Sums of longer decimals are refused where Spark is not ANSI."""

MOMENTS = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev", "std", "skewness", "kurtosis")
PAIRS = ("covar_pop", "covar_samp", "corr")
LINES = ("regr_sxx", "regr_syy", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2")
BITS = ("bit_and", "bit_or", "bit_xor")
BOOLEANS = ("bool_and", "every", "bool_or", "any", "some")


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An expression over aggregates."""

    sql: str
    """As the user writes it."""
    type: str
    bound: Decimal = Decimal(0)
    oracle: str | None = None
    """What Spark is asked instead, where its own answer depends on the order of rows."""
    tolerance: str | None = None
    """An aggregate that gives the largest difference allowed; None if the answer is exact."""
    ties: str | None = None
    """An aggregate that lists (order, value) of all candidates, NULL orders left out; for min_by and its kin."""
    largest: bool = False
    """Whether the tied candidates are those of the largest order."""

    @property
    def exact(self) -> bool:
        """Whether there is one right answer."""
        return self.tolerance is None and self.ties is None


@dataclass(frozen=True, slots=True)
class Spread:
    """Aggregates of the spread of pairs, of which only those count where both are there; slacks follow from it."""

    pairs: str
    vx: str
    sx: str
    vy: str
    sy: str

    @classmethod
    def of(cls, first: Scalar, second: Scalar, condition: str) -> Spread:
        """The spread of two numbers."""
        x = f"CASE WHEN {second.sql} IS NOT NULL THEN {as_double(first)} END"
        y = f"CASE WHEN {first.sql} IS NOT NULL THEN {as_double(second)} END"
        spreads = (f"{call}{condition}" for v in (x, y) for call in (f"var_pop({v})", f"avg(({v}) * ({v}))"))
        return cls(f"count({x}, {y}){condition}", *spreads)

    @property
    def of_covariance(self) -> str:
        """The difference allowed between covariances."""
        slack = f"sqrt(({variance_slack(self.vx, self.sx)}) * ({variance_slack(self.vy, self.sy)}))"
        # one of the two may be constant: then the slack of the other decides in its own scale
        crossed = f"1e-12D * (sqrt({self.vx} * {self.sy}) + sqrt({self.vy} * {self.sx}))"
        return f"{slack} + {crossed} + 1e-9D * sqrt({self.vx} * {self.vy})"

    @property
    def of_correlation(self) -> str:
        """The difference allowed where both spreads are divided by."""
        slack = f"{relative_slack(self.vx, self.sx)} + {relative_slack(self.vy, self.sy)}"
        return comparable(self.vx, self.sx, comparable(self.vy, self.sy, slack))

    @property
    def of_slope(self) -> str:
        """The difference allowed where a covariance is divided by the spread of x."""
        slack = f"sqrt({self.vy} / nullif({self.vx}, 0D)) * ({relative_slack(self.vx, self.sx)})"
        return comparable(self.vx, self.sx, f"2 * (({self.of_covariance}) / nullif({self.vx}, 0D) + {slack})")


class AggregateWriter:
    """Writes random aggregates over one stream."""

    def __init__(self, scalars: ScalarWriter) -> None:
        self.scalars = scalars
        self.rnd = scalars.rnd
        self.stream = scalars.stream

    def aggregate(self) -> Aggregated:
        """One call, with or without FILTER."""
        condition = f" FILTER (WHERE {self.scalars.predicate(1)})" if self.scalars.chance(0.2) else ""
        makers: tuple[Callable[[str], Aggregated | None], ...] = (
            self.count,
            self.overflowing,
            self.sum,
            self.sum,
            self.average,
            self.average,
            self.extreme,
            self.extreme,
            self.moment,
            self.pair,
            self.line,
            self.paired_average,
            self.bits,
            self.boolean,
            self.by,
            self.edge,
            self.guarded_division,
        )
        while True:
            made = self.rnd.choice(makers)(condition)
            if made is not None:
                return made

    def count(self, condition: str) -> Aggregated:
        """count(*), count(x), count_if(p)."""
        scalar = self.scalars.any_column()
        predicate = self.scalars.predicate(1)
        text = self.rnd.choice(("count(*)", "COUNT(*)", "count(1)", f"count({scalar.sql})", f"count_if({predicate})"))
        return Aggregated(text + condition, "bigint", Decimal(self.stream.rows))

    def overflowing(self, condition: str) -> Aggregated | None:
        """try_sum of integers near the end of what BIGINT holds, all of one sign: NULL whatever the order of rows."""
        number = self.scalars.integer()
        if number is None:
            return None
        large = f"CASE WHEN {number.sql} IS NOT NULL THEN {self.rnd.choice(('', '-'))}4611686018427387904L END"
        return Aggregated(f"try_sum({large}){condition}", "bigint", Decimal(1 << 63))

    def sum(self, condition: str) -> Aggregated | None:
        """sum and try_sum of anything that cannot overflow."""
        number = self.scalars.number()
        if number is None:
            return None
        function = self.rnd.choice(("sum", "sum", "try_sum"))
        text, total = f"{function}({number.sql}){condition}", number.bound * self.stream.rows
        if number.is_integer:
            wraps = function == "sum" and not self.scalars.ansi
            return Aggregated(text, "bigint", total) if fits("bigint", total) or wraps else None
        if number.is_decimal:
            precision, scale = precision_and_scale(number.type)
            if precision > WIDEST_WITHOUT_ANSI and (function == "try_sum" or not self.scalars.ansi):
                return None
            type_ = f"decimal({min(38, precision + 10)},{scale})"
            return Aggregated(text, type_, total) if fits(type_, total) else None
        return Aggregated(text, "double", tolerance=f"1e-9D * sum(abs({as_double(number)})){condition}")

    def average(self, condition: str) -> Aggregated | None:
        """avg, mean or try_avg."""
        number = self.scalars.number()
        if number is None:
            return None
        function = self.rnd.choice(("avg", "mean", "AVG", "try_avg"))
        if function == "try_avg" and number.is_decimal and precision_and_scale(number.type)[0] > WIDEST_WITHOUT_ANSI:
            return None
        return self.averaged(f"{function}({number.sql}){condition}", number, as_double(number), condition)

    def paired_average(self, condition: str) -> Aggregated | None:
        """The average of one side of pairs; how many pairs there are."""
        y, x = self.scalars.number(), self.scalars.number()
        if y is None or x is None:
            return None
        if self.scalars.chance(0.3):
            return Aggregated(f"regr_count({y.sql}, {x.sql}){condition}", "bigint", Decimal(self.stream.rows))
        function, of, other = self.rnd.choice((("regr_avgx", x, y), ("regr_avgy", y, x)))
        text = f"{function}({y.sql}, {x.sql}){condition}"
        return self.averaged(text, of, f"CASE WHEN {other.sql} IS NOT NULL THEN {as_double(of)} END", condition)

    def averaged(self, text: str, number: Scalar, value: str, condition: str) -> Aggregated | None:
        """An average of numbers as Spark types it, ``value`` being what it is of as doubles."""
        if number.is_decimal:
            precision, scale = precision_and_scale(number.type)
            if precision > WIDEST_WITHOUT_ANSI and not self.scalars.ansi:
                return None
            total = f"decimal({min(38, precision + 10)},{scale})"
            type_ = f"decimal({min(38, precision + 4)},{min(38, scale + 4)})"
            if not (fits(total, number.bound * self.stream.rows) and fits(type_, number.bound)):
                return None
            return Aggregated(text, type_, number.bound)
        return Aggregated(text, "double", tolerance=f"1e-9D * avg(abs({value})){condition}")

    def extreme(self, condition: str) -> Aggregated:
        """min or max of any type."""
        scalar = self.scalars.number() if self.scalars.chance(0.4) else None
        scalar = scalar or self.scalars.column()
        if scalar is None or self.scalars.chance(0.1):
            scalar = Scalar(self.scalars.name(self.scalars.event_time), self.stream.event_time_type)
        return Aggregated(f"{self.rnd.choice(('min', 'max'))}({scalar.sql}){condition}", scalar.type, scalar.bound)

    def moment(self, condition: str) -> Aggregated | None:
        """Variance, deviation, skewness, kurtosis."""
        number = self.scalars.number()
        if number is None:
            return None
        function, value = self.rnd.choice(MOMENTS), as_double(number)
        variance, square = f"var_pop({value}){condition}", f"avg({value} * {value}){condition}"
        slack = variance_slack(variance, square)
        if function.startswith("var"):
            tolerance = f"2 * ({slack})"
        elif function.startswith("std"):
            tolerance = f"2 * least(sqrt({slack}), ({slack}) / nullif(sqrt({variance}), 0D))"
        else:
            rows = f"count({value}){condition}"
            tolerance = comparable(variance, square, f"({relative_slack(variance, square)}) * {rows}")
        return Aggregated(f"{function}({number.sql}){condition}", "double", tolerance=tolerance)

    def pair(self, condition: str) -> Aggregated | None:
        """Covariance and correlation."""
        first, second = self.scalars.number(), self.scalars.number()
        if first is None or second is None:
            return None
        function, spread = self.rnd.choice(PAIRS), Spread.of(first, second, condition)
        tolerance = spread.of_correlation if function == "corr" else f"2 * ({spread.of_covariance})"
        return Aggregated(f"{function}({first.sql}, {second.sql}){condition}", "double", tolerance=tolerance)

    def line(self, condition: str) -> Aggregated | None:
        """What ``regr_*(y, x)`` tells of the straight line through pairs."""
        y, x = self.scalars.number(), self.scalars.number()
        if y is None or x is None:
            return None
        function, spread = self.rnd.choice(LINES), Spread.of(x, y, condition)
        tolerance = {
            "regr_sxx": f"2 * {spread.pairs} * ({variance_slack(spread.vx, spread.sx)})",
            "regr_syy": f"2 * {spread.pairs} * ({variance_slack(spread.vy, spread.sy)})",
            "regr_sxy": f"2 * {spread.pairs} * ({spread.of_covariance})",
            "regr_slope": spread.of_slope,
            "regr_intercept": comparable(
                spread.vx, spread.sx, f"({spread.of_slope}) * sqrt({spread.sx}) + 1e-9D * sqrt({spread.sy})"
            ),
            "regr_r2": spread.of_correlation,
        }[function]
        return Aggregated(f"{function}({y.sql}, {x.sql}){condition}", "double", tolerance=tolerance)

    def bits(self, condition: str) -> Aggregated | None:
        """Bit aggregates of integers."""
        number = self.scalars.integer()
        if number is None:
            return None
        widest = Decimal(1 << (INTEGERS[number.type] - 1))
        return Aggregated(f"{self.rnd.choice(BITS)}({number.sql}){condition}", number.type, widest)

    def boolean(self, condition: str) -> Aggregated:
        """Boolean aggregates of a predicate."""
        return Aggregated(f"{self.rnd.choice(BOOLEANS)}({self.scalars.predicate(1)}){condition}", "boolean")

    def by(self, condition: str) -> Aggregated:
        """min_by and max_by: any of the tied values is right."""
        time = Scalar(self.scalars.name(self.scalars.event_time), self.stream.event_time_type)
        value, order = self.scalars.column() or time, self.scalars.column() or time
        if self.scalars.chance(0.4):
            order = time
        function = self.rnd.choice(("min_by", "max_by"))
        return Aggregated(
            f"{function}({value.sql}, {order.sql}){condition}",
            value.type,
            value.bound,
            ties=candidates(order.sql, value.sql, condition),
            largest=function == "max_by",
        )

    def edge(self, condition: str) -> Aggregated | None:
        """first and last, which mean the earliest and the latest by event time."""
        value = self.scalars.column()
        if value is None:
            return None
        function, by = self.rnd.choice((("first", "min_by"), ("last", "max_by")))
        time = f"`{self.stream.event_time}`"
        text, asked = f"{function}({value.sql})", condition
        if self.scalars.chance(0.4) and not condition:
            ignore = self.scalars.chance(0.5)
            text = f"{function}({value.sql}) IGNORE NULLS" if ignore else f"{function}({value.sql}, true)"
            asked = f" FILTER (WHERE {value.sql} IS NOT NULL)"
        return Aggregated(
            text + condition,
            value.type,
            value.bound,
            oracle=f"{by}({value.sql}, {time}){asked}",
            ties=candidates(time, value.sql, asked),
            largest=function == "last",
        )

    def guarded_division(self, condition: str) -> Aggregated | None:
        """A division that its FILTER keeps from failing: rows that nobody asked about must raise nothing."""
        divisor, number = self.scalars.column(*INTEGERS), self.scalars.number()
        if divisor is None or number is None:
            return None
        quotient = f"{as_double(number)} / {divisor.sql}"
        guard = f" FILTER (WHERE {divisor.sql} <> 0)"
        text, other = f"sum({quotient}){guard}", self.rnd.choice(("max", "min"))
        if self.scalars.chance(0.5):
            return Aggregated(f"{other}({quotient}){guard}", "double")
        return Aggregated(text, "double", tolerance=f"1e-9D * sum(abs({quotient})){guard}")

    def around(self) -> Aggregated:
        """An aggregate alone, or with arithmetic and functions around it."""
        inner = self.aggregate()
        if self.scalars.chance(0.65) or inner.ties:
            return inner
        if inner.tolerance:
            return self.around_inexact(inner)
        options = [replace(inner, sql=f"({inner.sql}) IS NULL", type="boolean")]
        if inner.type == "bigint":
            options += [
                Aggregated(f"coalesce({inner.sql}, 0L)", "bigint", inner.bound),
                Aggregated(f"CASE WHEN {inner.sql} > 3 THEN 'many' ELSE 'few' END", "string"),
                Aggregated(f"CAST({inner.sql} AS STRING)", "string"),
                Aggregated(f"{inner.sql} % 5", "bigint", Decimal(5)),
                Aggregated(f"CAST({inner.sql} AS DOUBLE) / 3", "double"),
            ]
            other = self.count("")
            if fits("bigint", inner.bound + other.bound):
                options += [Aggregated(f"{inner.sql} - {other.sql}", "bigint", inner.bound + other.bound)]
        elif inner.type == "string":
            options += [
                Aggregated(f"upper({inner.sql})", "string"),
                Aggregated(f"concat({inner.sql}, '-', CAST(count(*) AS STRING))", "string"),
                Aggregated(f"length({inner.sql})", "int", Decimal(10)),
            ]
        elif inner.type in ("double", "float"):
            options += [Aggregated(f"round({inner.sql}, 2)", inner.type), Aggregated(f"{inner.sql} * 2D", "double")]
        return self.rnd.choice(options)

    def around_inexact(self, inner: Aggregated) -> Aggregated:
        """Arithmetic around a double, with the bound that follows from the inner one."""
        slack = inner.tolerance
        options = [
            Aggregated(f"round({inner.sql}, 3)", "double", tolerance=f"({slack}) + 1.001e-3D"),
            Aggregated(f"({inner.sql}) * 3 + 1", "double", tolerance=f"({slack}) * 3"),
            Aggregated(f"coalesce({inner.sql}, 0D)", "double", tolerance=slack),
            Aggregated(f"-({inner.sql}) / 2D", "double", tolerance=slack),
        ]
        if NOT_COMPARED in str(slack):
            return inner
        other = self.average("")
        if other is not None and other.tolerance and other.type == "double":
            both = f"({slack}) + ({other.tolerance})"
            options += [Aggregated(f"{inner.sql} - {other.sql}", "double", tolerance=both)] * 2
        return self.rnd.choice(options)


def as_double(number: Scalar) -> str:
    """A number's text as a double."""
    return f"CAST({number.sql} AS DOUBLE)"


def candidates(order: str, value: str, condition: str) -> str:
    """All (order, value) pairs of a group."""
    return f"collect_list(named_struct('o', {order}, 'v', {value})){condition}"


def variance_slack(variance: str, square: str) -> str:
    """The difference allowed between variances: in the scale of the variance, with the conditioning of the mean.

    A sum of squares minus the square of the sum does not stay within it; the pairwise update does.
    """
    return f"1e-9D * {variance} + 1e-12D * sqrt({variance} * {square}) + 1e-20D * {square}"


def relative_slack(variance: str, square: str) -> str:
    """The relative difference allowed where a variance is divided by."""
    return f"1e-9D + 1e-12D * sqrt({square} / nullif({variance}, 0D))"


def comparable(variance: str, square: str, tolerance: str) -> str:
    """A bound that says "not compared" where the variance is below 1e-12 of the mean square."""
    return f"CASE WHEN {variance} <= 1e-12D * {square} THEN {NOT_COMPARED} ELSE {tolerance} END"
