"""Judges Weft's rows by Spark's: the same schema, the same rows, doubles within the bound, ties any of the tied.

Spark is asked in a session of its own that is set up for thousands of tiny queries: no code generation, one shuffle
partition, no adaptive planning, several queries at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oracle.data import Stream
from oracle.queries import Asked, Judged

CHEAP = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
AT_A_TIME = 3


class _NaN:
    """Stands for NaN, which as a float would equal nothing, not even itself."""

    def __repr__(self) -> str:
        return "NaN"


NAN = _NaN()


@dataclass(frozen=True, slots=True)
class Rows:
    """A schema and rows of plain values: NaN as a token, instants as microseconds, structs and lists as tuples."""

    schema: Any
    rows: list[tuple[Any, ...]]

    @classmethod
    def of(cls, frame: Any) -> Rows:
        """Collect a DataFrame."""
        return cls.read(frame.schema, frame.toArrow())

    @classmethod
    def read(cls, schema: Any, table: pa.Table) -> Rows:
        """The rows of a table."""
        columns = [plain(column.combine_chunks()) for column in table.columns]
        return cls(schema, list(zip(*columns, strict=True)) if columns else [])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What comparing one query came to."""

    difference: str | None
    rows: int = 0
    bounded: int = 0
    """Values that were compared by a bound or against tied candidates."""


def oracle_session(spark: Any, **settings: str) -> Any:
    """A session for Spark's side, next to the one that Weft runs on."""
    session = spark.newSession()
    for name, value in {**CHEAP, "spark.sql.session.timeZone": "UTC", **settings}.items():
        session.conf.set(name, value)
    return session


def spark_rows(session: Any, stream: Stream, queries: Sequence[Asked]) -> list[Rows]:
    """Spark's answers: the schema of the query's own text, the rows of the oracle's."""
    session.createDataFrame(stream.arrow(), schema=stream.ddl).createOrReplaceTempView(stream.name)

    def answer(query: Asked) -> Rows:
        rows = Rows.of(session.sql(query.oracle))
        return Rows(session.sql(query.select).schema, rows.rows)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(answer, queries))


def collected(frames: Iterable[Any]) -> list[Rows]:
    """Collect several DataFrames, a few at a time."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(Rows.of, frames))


def plain(array: pa.Array) -> list[Any]:
    """Values that can be hashed and compared: see ``Rows``."""
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [plain(field) for field in array.flatten()]
        return [
            value if valid else None for value, valid in zip(zip(*fields, strict=True), array.is_valid(), strict=True)
        ]
    if pa.types.is_map(kind):
        return plain(array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
    if pa.types.is_list(kind):
        items = plain(array.flatten())
        lists: list[Any] = []
        at = 0
        for length in pc.list_value_length(array).to_pylist():
            lists.append(None if length is None else tuple(items[at : at + length]))
            at += length or 0
        return lists
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return array.cast(pa.int64()).to_pylist()
    if pa.types.is_date32(kind):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_floating(kind):
        return [v if v is None else NAN if math.isnan(v) else v + 0.0 for v in array.to_pylist()]
    return array.to_pylist()


def compare(query: Asked, ours: Rows, spark: Rows) -> Outcome:
    """Whether the rows that Weft gave for a query are Spark's."""
    wrong = schema_difference(ours.schema, spark.schema)
    if wrong:
        return Outcome(f"the schema differs: {wrong}")
    expected, optional = kept(query, spark.rows)
    exact = [i for i, judged in enumerate(query.judged) if judged == Judged()]
    loose = [i for i, judged in enumerate(query.judged) if judged != Judged()]
    if not loose and not optional:
        width = len(query.judged)
        return Outcome(multiset_difference(ours.rows, [row[:width] for row in expected]), len(expected))
    groups: dict[Any, tuple[list[Any], list[Any], list[Any]]] = defaultdict(lambda: ([], [], []))
    for place, rows in enumerate((ours.rows, expected, optional)):
        for row in rows:
            groups[tuple(row[i] for i in exact)][place].append(row)
    for theirs in groups.values():
        wrong = unmatched(query, loose, *theirs)
        if wrong:
            return Outcome(wrong)
    return Outcome(None, len(expected), len(expected) * len(loose))


def schema_difference(ours: Any, spark: Any) -> str | None:
    """The first field that differs in name, type (nested nullability included) or nullability."""
    mine = [(f.name, f.dataType, f.nullable) for f in ours.fields]
    theirs = [(f.name, f.dataType, f.nullable) for f in spark.fields]
    if mine == theirs:
        return None
    for a, b in zip(mine, theirs, strict=False):
        if a != b:
            return f"weft {a}, spark {b}"
    return f"weft has {len(mine)} columns, spark {len(theirs)}"


def kept(query: Asked, rows: list[tuple[Any, ...]]) -> tuple[list[Any], list[Any]]:
    """Rows that must be there, and rows that HAVING may let through or not, as a double decides."""
    if query.keep is None:
        return rows, []
    return [row for row in rows if row[query.keep]], [row for row in rows if row[query.keep] is None]


def multiset_difference(ours: list[Any], expected: list[Any]) -> str | None:
    """The first rows that only one side has."""
    counts: dict[Any, int] = defaultdict(int)
    for row in expected:
        counts[row] += 1
    for row in ours:
        counts[row] -= 1
    missing = [row for row, count in counts.items() if count > 0]
    extra = [row for row, count in counts.items() if count < 0]
    if not missing and not extra:
        return None
    return described(ours, expected, missing, extra)


def described(ours: list[Any], expected: list[Any], missing: list[Any], extra: list[Any]) -> str:
    """A difference as a person wants to read it."""
    order = sorted(missing, key=repr)[:5], sorted(extra, key=repr)[:5]
    lines = [f"weft has {len(ours)} rows, spark {len(expected)}"]
    lines += [f"  only spark: {row}" for row in order[0]] + [f"  only weft:  {row}" for row in order[1]]
    return "\n".join(lines)


def unmatched(query: Asked, loose: list[int], ours: list[Any], expected: list[Any], optional: list[Any]) -> str | None:
    """Pair the rows of one exact part, each of ours with one of Spark's that admits it."""
    ours, expected = sorted(ours, key=repr), sorted(expected, key=repr)
    if (
        not optional
        and len(ours) == len(expected)
        and all(map(lambda a, b: admits(query, loose, a, b), ours, expected))
    ):
        return None
    pairs = matching(query, loose, ours, [*expected, *optional])
    extra = [row for i, row in enumerate(ours) if i not in pairs]
    missing = [row for j, row in enumerate(expected) if j not in pairs.values()]
    return described(ours, expected, missing, extra) if extra or missing else None


def matching(query: Asked, loose: list[int], ours: list[Any], theirs: list[Any]) -> dict[int, int]:
    """A largest matching, by augmenting paths; the rows that must be there come first in ``theirs``."""
    taken: dict[int, int] = {}

    def place(theirs_at: int, seen: set[int]) -> bool:
        for i, row in enumerate(ours):
            if i not in seen and admits(query, loose, row, theirs[theirs_at]):
                seen.add(i)
                if i not in taken or place(taken[i], seen):
                    taken[i] = theirs_at
                    return True
        return False

    for j in range(len(theirs)):
        place(j, set())
    return taken


def admits(query: Asked, loose: list[int], ours: Any, spark: Any) -> bool:
    """Whether a row of Spark's admits one of ours in every column that is not exact."""
    for i in loose:
        judged = query.judged[i]
        if judged.ties is not None:
            if not tied(ours[i], spark[i], spark[judged.ties], judged.largest):
                return False
        elif judged.tolerance is not None and not within(ours[i], spark[i], spark[judged.tolerance]):
            return False
    return True


def within(ours: Any, spark: Any, tolerance: Any) -> bool:
    """Whether a double is close enough; a negative tolerance means that only NULL is compared.

    >>> within(1.0, 1.0 + 1e-10, 1e-9), within(1.0, 1.1, 1e-9), within(NAN, NAN, NAN), within(None, 0.0, 1.0)
    (True, False, True, False)
    >>> within(0.5, 0.4, -1.0), within(0.5, None, -1.0)
    (True, False)
    """
    if isinstance(tolerance, float) and tolerance < 0:
        # what never changes has no correlation, however sums were rounded
        return spark is not None or ours is None
    if ours == spark:
        return True
    if not isinstance(ours, float) or not isinstance(spark, float) or math.isinf(ours) or math.isinf(spark):
        return False
    slack = tolerance if isinstance(tolerance, float) and math.isfinite(tolerance) else 0.0
    return abs(ours - spark) <= slack * 1.0001 + 1e-12 * abs(spark)


def tied(ours: Any, spark: Any, pairs: list[tuple[Any, Any]], largest: bool) -> bool:
    """Whether a value belongs to one of the rows with the smallest (or largest) order."""
    ordered = [(order, value) for order, value in pairs if order is not None]
    if not ordered:
        return ours is None and spark is None
    best = (max if largest else min)((order for order, _ in ordered), key=rank)
    values = [value for order, value in ordered if order == best]
    return ours in values


def rank(value: Any) -> Any:
    """Spark's order: NaN is the largest number, strings go by their bytes."""
    if value is NAN:
        return (True, 0)
    return (False, value.encode() if isinstance(value, str) else value)
