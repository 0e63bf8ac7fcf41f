"""Random streams: a schema, rows full of the values that break aggregation, and their form in Arrow and Spark."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FRACTIONAL = ("float", "double")
DECIMALS = ("decimal(5,2)", "decimal(9,0)", "decimal(18,6)", "decimal(20,4)", "decimal(28,10)", "decimal(38,6)")
OTHERS = ("boolean", "date", "timestamp", "string")
INTERVAL = "interval day to second"
NESTED = ("struct<a:int,B:string>", "struct<x:struct<y:double>,z:array<date>>", "array<int>", "array<string>")
KEYS_ONLY = (*NESTED, INTERVAL)
"""Types that are grouped by and counted, but not compared with values or aggregated."""
TYPES = (*INTEGERS, *FRACTIONAL, *DECIMALS, *OTHERS, *KEYS_ONLY)

NAMES = ("price", "Qty", "symBol", "k", "FLAG", "v2", "odd name", "Order", "été", "s_1")
EVENT_TIMES = ("ts", "At", "event_time")
STREAMS = ("events", "S", "Trades")

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SPANS = (200, 50_000, 3 * SECOND, 10 * MINUTE, 6 * HOUR, 3 * DAY, 400 * DAY)
"""How much time the bulk of a stream covers, in microseconds: from less than a millisecond to more than a year."""

ORIGINS = (
    1_711_846_800 * SECOND,  # 2024-03-31 01:00 UTC, the hour that Berlin skips
    -90 * MINUTE,  # before and after 1970
    -2_051_222_400 * SECOND,  # 1905
    1_356_998_400 * SECOND + 123_457,  # 2013, on no round instant
    0,
)
STRINGS = (
    "a",
    "A",
    "b",
    "bb",
    "B ",
    "",
    "it's",
    "x;y",
    "-- no",
    "[w]",
    "50%",
    "a_b",
    "é",
    "日本",
    "🙂",
    "zz",
    "null",
    "\\",
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream."""

    name: str
    type: str
    bound: Decimal = Decimal(0)
    """For integers and decimals: no value's magnitude is above it, so that a writer of queries can avoid overflow."""
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Stream:
    """A small table with an event time; ``values`` are by column, timestamps and dates as integers."""

    name: str
    event_time: str
    event_time_type: str
    columns: tuple[Column, ...]
    values: dict[str, list[Any]]
    partitions: int = 1

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.values[self.event_time])

    @property
    def ddl(self) -> str:
        """The schema as Spark reads it."""
        others = (f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns)
        return ", ".join([f"`{self.event_time}` {self.event_time_type}", *others])

    def keeping(self, wanted: list[int]) -> Stream:
        """The same stream with some of its rows."""
        values = {name: [column[i] for i in wanted] for name, column in self.values.items()}
        return Stream(self.name, self.event_time, self.event_time_type, self.columns, values, self.partitions)

    def arrow(self) -> pa.Table:
        """The rows as Arrow, with exactly the types of the schema."""
        types = {self.event_time: self.event_time_type, **{c.name: c.type for c in self.columns}}
        arrays = {name: pa.array(self.values[name], type=arrow_type(type_)) for name, type_ in types.items()}
        return pa.table(arrays)

    def frame(self, spark: Any) -> Any:
        """The rows as a DataFrame of the session, over as many partitions as the stream asks for."""
        frame = spark.createDataFrame(self.arrow(), schema=self.ddl)
        return frame if self.partitions == 1 else frame.repartition(self.partitions)

    def __str__(self) -> str:
        lines = [f"{self.name}({self.ddl}), {self.rows} rows, {self.partitions} partitions"]
        names = list(self.values)
        lines += [repr(tuple(self.values[name][i] for name in names)) for i in range(min(self.rows, 40))]
        return "\n".join(lines if self.rows <= 40 else [*lines, f"... and {self.rows - 40} more"])


def arrow_type(type_: str) -> pa.DataType:
    """Arrow's type for one of ours.

    >>> arrow_type("struct<x:struct<y:double>,z:array<date>>")
    StructType(struct<x: struct<y: double>, z: list<item: date32[day]>>)
    """
    if type_.startswith("array<"):
        return pa.list_(arrow_type(type_[len("array<") : -1]))
    if type_.startswith("struct<"):
        return pa.struct([(name, arrow_type(inner)) for name, inner in fields_of(type_)])
    if type_.startswith("decimal"):
        return pa.decimal128(*precision_and_scale(type_))
    return {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "string": pa.string(),
        INTERVAL: pa.duration("us"),
    }[type_]


def fields_of(type_: str) -> list[tuple[str, str]]:
    """Names and types of a struct's fields.

    >>> fields_of("struct<x:struct<y:double,q:int>,z:array<date>>")
    [('x', 'struct<y:double,q:int>'), ('z', 'array<date>')]
    """
    parts, depth = [""], 0
    for letter in type_[len("struct<") : -1]:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [(name, inner) for name, _, inner in (part.partition(":") for part in parts)]


def precision_and_scale(type_: str) -> tuple[int, int]:
    """Precision and scale of a decimal type.

    >>> precision_and_scale("decimal(18,6)")
    (18, 6)
    """
    precision, scale = type_[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def stream(
    rnd: random.Random, *, rows: int, types: tuple[str, ...], event_time_type: str, span: int, partitions: int
) -> Stream:
    """A random stream of a given shape."""
    names = rnd.sample(NAMES, len(types))
    event_time = rnd.choice(EVENT_TIMES)
    values = {event_time: event_times(rnd, rows, span)}
    columns = []
    for name, type_ in zip(names, types, strict=True):
        values[name] = column_values(rnd, type_, rows)
        nullable = None in values[name] or rnd.random() < 0.7
        columns.append(Column(name, type_, magnitude(type_, values[name]), nullable))
    return Stream(rnd.choice(STREAMS), event_time, event_time_type, tuple(columns), values, partitions)


def magnitude(type_: str, values: list[Any]) -> Decimal:
    """The largest magnitude among exact numbers."""
    if type_ not in INTEGERS and not type_.startswith("decimal"):
        return Decimal(0)
    return max((abs(Decimal(v)) for v in values if v is not None), default=Decimal(0))


def event_times(rnd: random.Random, rows: int, span: int) -> list[int | None]:
    """Event times in microseconds: even, in ties, in clumps with gaps, on round instants, some NULL."""
    origin = rnd.choice(ORIGINS)
    grain = max(1, rnd.choice((1, 1, span // 1000, span // 50, span // 7)))
    manner = rnd.choice(("even", "even", "clumps", "ties", "gap"))
    instants = [origin + rnd.randrange(span) // grain * grain for _ in range(max(1, rows // 6))]
    times: list[int | None] = []
    for _ in range(rows):
        if manner == "ties":
            time = rnd.choice(instants)
        elif manner == "clumps":
            time = rnd.choice(instants[:4]) + rnd.randrange(max(1, span // 100))
        else:
            time = origin + rnd.randrange(span) // grain * grain
            if manner == "gap" and rnd.random() < 0.3:
                time += 11 * span
        times.append(time)
    if rnd.random() < 0.4:
        times = [None if rnd.random() < 0.05 else time for time in times]
    if rnd.random() < 0.5:
        times.sort(key=lambda t: (t is None, t or 0))
    return times


def column_values(rnd: random.Random, type_: str, rows: int) -> list[Any]:
    """Values of a type; a column may have few distinct ones with a heavy first, and NULLs here and there or always."""
    missing = rnd.choice((0, 0, 0.1, 0.1, 0.5, 0.95, 1) if rnd.random() < 0.3 else (0, 0.1))
    draw = drawer(rnd, type_)
    if rnd.random() < 0.5:
        pool = [draw() for _ in range(rnd.randint(1, 7))]
        values = [pool[min(int(rnd.expovariate(0.7)), len(pool) - 1)] for _ in range(rows)]
    else:
        values = [draw() for _ in range(rows)]
    return [None if rnd.random() < missing else value for value in values]


def drawer(rnd: random.Random, type_: str) -> Any:
    """A function that draws one value of a type, in a manner chosen once for the column."""
    if type_.startswith("array<"):
        item = or_null(rnd, drawer(rnd, type_[len("array<") : -1]))
        return lambda: [item() for _ in range(rnd.randrange(3))]
    if type_.startswith("struct<"):
        parts = {name: or_null(rnd, drawer(rnd, inner)) for name, inner in fields_of(type_)}
        return lambda: {name: draw() for name, draw in parts.items()}
    if type_ == INTERVAL:
        return lambda: rnd.choice((0, 1, -SECOND, HOUR, rnd.randrange(DAY)))
    if type_ in INTEGERS:
        return integer_drawer(rnd, INTEGERS[type_])
    if type_ in FRACTIONAL:
        fractional = fractional_drawer(rnd)
        return fractional if type_ == "double" else lambda: to_float32(fractional())
    if type_.startswith("decimal"):
        precision, scale = precision_and_scale(type_)
        # beyond 33 digits a plain sum of 300 rows would overflow: a case of its own
        digits = rnd.choice((2, precision // 2, min(precision, 28)))
        return lambda: Decimal(rnd.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-scale)
    if type_ == "boolean":
        return lambda: rnd.random() < 0.6
    if type_ == "date":
        first = rnd.choice((-20_000, -3, 19_700))
        return lambda: first + rnd.randrange(500)
    if type_ == "timestamp":
        first, spread = rnd.choice(ORIGINS), rnd.choice((1000, HOUR, 90 * DAY))
        return lambda: first + rnd.randrange(spread)
    return lambda: rnd.choice(STRINGS)


def or_null(rnd: random.Random, draw: Any) -> Any:
    """A function that draws NULL now and then."""
    return lambda: None if rnd.random() < 0.15 else draw()


def integer_drawer(rnd: random.Random, bits: int) -> Any:
    """Small, middling, or the extremes of the type."""
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    manner = rnd.choice(("small", "small", "middling", "extreme"))
    if manner == "extreme":
        return lambda: rnd.choice((least, least + 1, -1, 0, 1, most - 1, most, rnd.randint(least, most)))
    reach = 5 if manner == "small" else min(most, 100_000)
    return lambda: rnd.randint(-reach, reach)


def fractional_drawer(rnd: random.Random) -> Any:
    """Cents, magnitudes far apart, special values, nearly equal values on a large mean, or one that never changes."""
    manner = rnd.choice(("cents", "cents", "magnitudes", "special", "offset", "whole", "constant"))
    constant = rnd.choice((0.1, 1 / 3, -2.7e9, 123.456))
    special = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e16, -1e16, 5e-324, 1.0)
    return {
        "cents": lambda: round(rnd.uniform(-100, 100), 2),
        "magnitudes": lambda: rnd.choice((-1, 1)) * 10.0 ** rnd.uniform(-8, 16),
        "special": lambda: rnd.choice(special) if rnd.random() < 0.2 else rnd.uniform(-10, 10),
        "offset": lambda: 1e9 + rnd.random(),
        "whole": lambda: float(rnd.randint(-3, 3)),
        "constant": lambda: constant,
    }[manner]


def to_float32(value: float) -> float:
    """The nearest value that a FLOAT column can hold."""
    return struct.unpack("f", struct.pack("f", value))[0]
