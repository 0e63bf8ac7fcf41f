"""Random scalar expressions in Spark SQL, typed and bounded so that none can raise under ANSI."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from oracle.data import FRACTIONAL, INTEGERS, KEYS_ONLY, Column, Stream, fields_of, precision_and_scale

EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text of an expression over a row, its Spark type, and for exact numbers a bound of its magnitude."""

    sql: str
    type: str
    bound: Decimal = Decimal(0)

    @property
    def is_integer(self) -> bool:
        """Whether its type is one of Spark's integers."""
        return self.type in INTEGERS

    @property
    def is_decimal(self) -> bool:
        """Whether its type is a decimal."""
        return self.type.startswith("decimal")

    @property
    def is_number(self) -> bool:
        """Whether it can be summed."""
        return self.is_integer or self.is_decimal or self.type in FRACTIONAL


def fits(type_: str, bound: Decimal) -> bool:
    """Whether every value up to a magnitude is one of the type.

    >>> fits("tinyint", Decimal(128)), fits("decimal(5,2)", Decimal("999.99"))
    (False, True)
    """
    if type_ in INTEGERS:
        return bound <= (1 << (INTEGERS[type_] - 1)) - 1
    precision, scale = precision_and_scale(type_)
    return bound < Decimal(10) ** (precision - scale)


def literal(type_: str, value: Any) -> str:
    """A value as Spark writes it.

    >>> literal("string", "it's"), literal("date", 0), literal("double", 0.5)
    ("'it\\\\'s'", "DATE'1970-01-01'", '0.5D')
    """
    if value is None:
        return "NULL"
    if type_ == "string":
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if type_ == "boolean":
        return "true" if value else "false"
    if type_ == "date":
        return f"DATE'{(EPOCH + datetime.timedelta(days=value)).date()}'"
    if type_ in ("timestamp", "timestamp_ntz"):
        return f"{type_.upper()}'{EPOCH + datetime.timedelta(microseconds=value)}'"
    if type_ in FRACTIONAL:
        if math.isnan(value) or math.isinf(value):
            return f"{type_}('{value}')"
        return f"{value!r}{'D' if type_ == 'double' else 'F'}"
    if type_ == "bigint":
        # the digits of the smallest BIGINT are too large a number before the minus is applied
        return f"{value}L" if value > -(1 << 63) else f"({value + 1}L - 1L)"
    return f"CAST({value} AS {type_})" if type_ in INTEGERS and type_ != "int" else str(value)


class ScalarWriter:
    """Writes random expressions over the columns of one stream."""

    def __init__(self, rnd: random.Random, stream: Stream, ansi: bool = True) -> None:
        self.rnd = rnd
        self.stream = stream
        self.ansi = ansi
        self.plain = [column for column in stream.columns if column.type not in KEYS_ONLY]
        """Columns that can be compared with values, and aggregated."""
        self.event_time = Column(stream.event_time, stream.event_time_type)

    def chance(self, probability: float) -> bool:
        """True as often as asked."""
        return self.rnd.random() < probability

    def name(self, column: Column) -> str:
        """A column's name as people spell it: in any letter case, quoted, qualified by the table."""
        if not column.name.isidentifier() or not column.name.isascii() or column.name == "Order":
            return f"`{column.name}`"
        name = column.name
        if self.chance(0.15):
            name = self.rnd.choice((name.upper(), name.lower()))
        if self.chance(0.05):
            name = f"`{name}`"
        return f"{self.stream.name}.{name}" if self.chance(0.03) else name

    def column(self, *types: str) -> Scalar | None:
        """A column of one of the types (any type with values if none is given), if the stream has one."""
        candidates = [c for c in self.plain if not types or c.type in types]
        if not candidates:
            return None
        column = self.rnd.choice(candidates)
        return Scalar(self.name(column), column.type, column.bound)

    def any_column(self) -> Scalar:
        """A column of any type at all."""
        column = self.rnd.choice((*self.stream.columns, self.event_time))
        return Scalar(self.name(column), column.type, column.bound)

    def value(self, column: Column) -> str:
        """A literal that the column's data is likely to hold."""
        values = [v for v in self.stream.values[column.name] if v is not None]
        return literal(column.type, self.rnd.choice(values)) if values else self.plain_literal(column.type)

    def plain_literal(self, type_: str) -> str:
        """A literal of a type, whatever the data."""
        if type_ == "string":
            return "'m'"
        if type_ == "boolean":
            return "true"
        if type_.startswith("decimal"):
            return "1.5"
        return literal(type_, 1)

    def number(self) -> Scalar | None:
        """A number: a column or something computed from columns."""
        makers: list[Callable[[], Scalar | None]] = [
            self.number_column,
            self.number_column,
            self.arithmetic,
            self.guarded_number,
            self.cast_number,
            self.text_length,
        ]
        for _ in range(6):
            made = self.rnd.choice(makers)()
            if made is not None:
                return made
        return self.number_column()

    def number_column(self) -> Scalar | None:
        """A numeric column."""
        candidates = [c.type for c in self.stream.columns if Scalar("", c.type).is_number]
        return self.column(*candidates) if candidates else None

    def integer(self) -> Scalar | None:
        """An integer, for the bit aggregates."""
        made = self.column(*INTEGERS)
        if made is None or self.chance(0.7):
            return made
        return self.integer_arithmetic(made)

    def arithmetic(self) -> Scalar | None:
        """A number computed from one or two columns."""
        left = self.number_column()
        if left is None:
            return None
        if left.is_integer:
            return self.integer_arithmetic(left)
        return self.decimal_arithmetic(left) if left.is_decimal else self.double_arithmetic(left)

    def integer_arithmetic(self, left: Scalar) -> Scalar | None:
        """Integers, where no value can overflow."""
        wide = left.type if left.type == "bigint" else "int"
        factor = self.rnd.choice((2, 3, -1, 10))
        modulus = self.rnd.choice((2, 3, 7))
        options = [
            Scalar(f"{left.sql} * {factor}", wide, left.bound * abs(factor)),
            Scalar(f"{left.sql} + {factor}", wide, left.bound + abs(factor)),
            Scalar(f"-{left.sql}", left.type, left.bound),
            Scalar(f"abs({left.sql})", left.type, left.bound),
            Scalar(f"{left.sql} % {modulus}", wide, Decimal(modulus)),
        ]
        if not self.ansi:  # what raises under ANSI goes round, or is NULL
            options += [
                Scalar(f"{left.sql} * 1000003", wide),
                Scalar(f"CAST(CAST({left.sql} AS STRING) || 'x' AS INT)", "int"),
                Scalar(f"CAST({left.sql} AS TINYINT)", "tinyint"),
                Scalar(f"{left.sql} div ({left.sql} - {left.sql})", "bigint"),
            ]
        made = self.rnd.choice(options)
        return made if fits(made.type, made.bound) or not self.ansi else None

    def decimal_arithmetic(self, left: Scalar) -> Scalar | None:
        """Decimals, where Spark's result type keeps every digit."""
        right = self.column(*[c.type for c in self.stream.columns if c.type.startswith("decimal")])
        assert right is not None
        (p1, s1), (p2, s2) = precision_and_scale(left.type), precision_and_scale(right.type)
        if self.chance(0.5):
            precision, scale = p1 + p2 + 1, s1 + s2
            made = f"{left.sql} * {right.sql}", left.bound * right.bound
        else:
            scale = max(s1, s2)
            precision = max(p1 - s1, p2 - s2) + scale + 1
            made = f"{left.sql} {self.rnd.choice('+-')} {right.sql}", left.bound + right.bound
        return Scalar(made[0], f"decimal({precision},{scale})", made[1]) if precision <= 38 else None

    def double_arithmetic(self, left: Scalar) -> Scalar:
        """Doubles, alone or with any other number."""
        right = self.number_column()
        assert right is not None
        other = right.sql if not right.is_decimal else f"CAST({right.sql} AS DOUBLE)"
        texts = (
            f"{left.sql} * 2.5D",
            f"{left.sql} / 4D",
            f"{left.sql} - 1D",
            f"abs({left.sql} + 0D)",
            f"round({left.sql} + 0D, 1)",
            f"CAST({left.sql} AS DOUBLE) * {other}",
            f"CAST({left.sql} AS DOUBLE) + {other}",
        )
        return Scalar(self.rnd.choice(texts), "double")

    def guarded_number(self) -> Scalar | None:
        """A number that depends on a condition."""
        number = self.number_column()
        if number is None:
            return None
        condition = self.predicate(1)
        texts = [
            f"CASE WHEN {condition} THEN {number.sql} END",
            f"if({condition}, {number.sql}, NULL)",
            f"nullif({number.sql}, CAST(1 AS {number.type}))",
        ]
        if number.is_integer:
            texts += [f"coalesce({number.sql}, CAST(0 AS {number.type}))"]
        return Scalar(self.rnd.choice(texts), number.type, number.bound)

    def cast_number(self) -> Scalar | None:
        """An integer in a wider type, or anything as a double."""
        number = self.number_column()
        if number is None:
            return None
        if number.is_integer and self.chance(0.7):
            type_ = self.rnd.choice(("bigint", "decimal(20,0)", "decimal(25,3)"))
            return Scalar(f"CAST({number.sql} AS {type_.upper()})", type_, number.bound)
        return Scalar(f"CAST({number.sql} AS DOUBLE)", "double")

    def text_length(self) -> Scalar | None:
        """The length of a string."""
        text = self.column("string")
        return Scalar(f"length({text.sql})", "int", Decimal(10)) if text else None

    def predicate(self, depth: int = 2) -> str:
        """A condition on a row, of any of the forms that people write."""
        if depth > 0 and self.chance(0.35):
            left, right = self.predicate(depth - 1), self.predicate(depth - 1)
            return self.rnd.choice((f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"))
        if self.chance(0.03):
            return self.rnd.choice(("true", "false", "CAST(NULL AS BOOLEAN)", "1 = 2"))
        column = self.rnd.choice((*self.stream.columns, self.event_time))
        if column.type in KEYS_ONLY:
            return self.nested_test(column)
        return self.rnd.choice((self.comparison, self.comparison, self.membership, self.special_test))(column)

    def nested_test(self, column: Column) -> str:
        """What can be asked of a value that holds others, or of an interval."""
        name = self.name(column)
        tests = [f"{name} IS NULL", f"{name} IS NOT NULL", f"{name} = {name}", f"to_json(struct({name})) > 'm'"]
        if column.type.startswith("array"):
            tests += [f"size({name}) > 1", f"get({name}, 0) IS NULL", f"exists({name}, x -> x IS NULL)"]
        elif column.type.startswith("struct"):
            tests += [f"{name}.{field} IS NULL" for field, _ in fields_of(column.type)]
        else:
            tests += [f"{name} > INTERVAL '1' SECOND", f"extract(HOUR FROM {name}) = 1"]
        return self.rnd.choice(tests)

    def comparison(self, column: Column) -> str:
        """A column against a literal or against a column of the same type."""
        operator = self.rnd.choice(("=", "<>", "!=", "<", "<=", ">", ">=", "<=>"))
        same = [c for c in self.stream.columns if c.type == column.type and c.name != column.name]
        other = self.name(self.rnd.choice(same)) if same and self.chance(0.3) else self.value(column)
        return f"{self.name(column)} {operator} {other}"

    def membership(self, column: Column) -> str:
        """IN, BETWEEN and their negations, NULLs included."""
        name, first, second = self.name(column), self.value(column), self.value(column)
        negation = "NOT " if self.chance(0.3) else ""
        if self.chance(0.5):
            return f"{name} {negation}BETWEEN {first} AND {second}"
        third = ", NULL" if self.chance(0.2) else ""
        return f"{name} {negation}IN ({first}, {second}{third})"

    def special_test(self, column: Column) -> str:
        """What only this type can be asked."""
        name = self.name(column)
        tests = [f"{name} IS NULL", f"{name} IS NOT NULL", f"coalesce({name} = {self.value(column)}, false)"]
        if column.type == "string":
            tests += [
                f"{name} LIKE '%a%'",
                f"{name} LIKE 'a\\\\_b'",
                f"{name} RLIKE '^[a-z]+$'",
                f"length({name}) > 1",
                f"lower({name}) = 'a'",
                f"{name} || 'x' > 'b'",
            ]
        elif column.type == "boolean":
            tests += [name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT FALSE"]
        elif column.type in ("date", "timestamp", "timestamp_ntz"):
            tests += [
                f"year({name}) = {self.rnd.choice((1969, 1970, 2013, 2024))}",
                f"dayofweek({name}) IN (1, 7)",
                f"month({name}) BETWEEN 3 AND 12",
                f"date_add(to_date({name}), 1) > DATE'1970-01-05'",
            ]
            if column.type != "date":
                tests += [f"hour({name}) < 12", f"second({name}) % 2 = 0", f"date_trunc('hour', {name}) < {name}"]
        elif column.type in FRACTIONAL:
            tests += [f"isnan({name})", f"NOT isnan({name})", f"{name} * 2 > 1", f"sign({name}) = 1"]
        elif column.type in INTEGERS:
            tests += [f"{name} % 2 = 0", f"CAST({name} AS DECIMAL(25,0)) + 1 > 0", f"CAST({name} AS STRING) LIKE '1%'"]
        return self.rnd.choice(tests)

    def nested_key(self, column: Column) -> Scalar:
        """A struct or an array to group by, or a part of one."""
        name, other = self.name(column), self.any_column()
        options = [
            f"array({name})",
            f"struct({name})",
            f"struct({name} AS p, {other.sql} AS Q)",
            f"to_json(struct({name}))",
        ]
        if column.type.startswith("array"):
            options += [f"get({name}, 0)", f"size({name})", f"array_sort({name})"]
        elif column.type.startswith("struct"):
            options += [f"{name}.{field}" for field, _ in fields_of(column.type)] * 2
        return Scalar(self.rnd.choice(options), "?")

    def key(self) -> Scalar:
        """Something to group by."""
        column = self.rnd.choice(self.stream.columns)
        name = self.name(column)
        if self.chance(0.5):
            return Scalar(name, column.type, column.bound)
        time = self.name(self.event_time)
        if column.type in KEYS_ONLY or self.chance(0.1):
            return self.nested_key(column)
        options = [
            Scalar(f"CASE WHEN {self.predicate(1)} THEN 'lo' ELSE 'hi' END", "string"),
            Scalar(f"{name} IS NULL", "boolean"),
            Scalar(f"date_trunc('{self.rnd.choice(('hour', 'minute', 'DAY', 'second'))}', {time})", "timestamp"),
            Scalar(f"to_date({time})", "date"),
            Scalar(f"CAST({name} AS STRING)", "string"),
        ]
        if column.type == "string":
            options += [
                Scalar(f"upper({name})", "string"),
                Scalar(f"coalesce({name}, 'none')", "string"),
                Scalar(f"substring({name}, 1, 1)", "string"),
                Scalar(f"length({name})", "int", Decimal(10)),
                Scalar(f"concat({name}, '|', CAST({time} IS NULL AS STRING))", "string"),
            ]
        elif column.type in INTEGERS:
            options += [Scalar(f"{name} % 3", "int", Decimal(3)), Scalar(f"{name} > 0", "boolean")]
        elif column.type in FRACTIONAL:
            options += [Scalar(f"{name} > 0", "boolean"), Scalar(f"-{name}", column.type)]
        elif column.type in ("date", "timestamp"):
            options += [Scalar(f"month({name})", "int", Decimal(12))]
        return self.rnd.choice(options)
