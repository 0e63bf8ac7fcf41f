"""The table of a query in PostgreSQL: its columns and key from the Arrow schema, its values as text for COPY."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    Numeric,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB, REAL
from sqlalchemy.types import TypeEngine

from weft.job.sink import CommittedBatch, QueryAnswers
from weft.sinks import json_values

LONGEST = 63
"""Bytes of a name that PostgreSQL keeps; it cuts off the rest without a word."""
NUL, INSTEAD = "\0", "\u2400"
"""The one character that no text of PostgreSQL can hold, and its picture, which stands for it there."""
ID = ("weft_run", "weft_batch", "weft_file", "weft_row")
ID_TYPES: tuple[type[TypeEngine[Any]], ...] = (Text, BigInteger, Integer, BigInteger)

Texts = Sequence[str | None]


@dataclass(frozen=True)
class Layout:
    """A table, and where its columns come from."""

    table: Table
    sources: tuple[str, ...]
    """The column, or field of a struct, of the answers that each column of the table holds."""
    keys: tuple[str, ...]
    """What the table is unique by."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return tuple(column.name for column in self.table.columns)

    def values(self, rows: pa.Table, batch: CommittedBatch, file: int) -> list[Texts]:
        """The rows of a file, column by column."""
        found = [texts(pick(rows, source)) for source in self.sources]
        if self.keys == ID:
            count = len(rows)
            same = ([value] * count for value in (batch.run, str(batch.number), str(file)))
            found += [*same, [str(number) for number in range(count)]]
        return found

    def selected(self, rows: str) -> str:
        """All rows of a table, to be inserted."""
        return f"SELECT {', '.join(map(quoted, self.columns))} FROM {rows}"

    def selected_once(self, rows: str) -> str:
        """The rows of a table to be inserted, one a key: texts that differ by NUL or its picture only are one here."""
        keys = ", ".join(map(quoted, self.keys))
        return f"SELECT DISTINCT ON ({keys}) {', '.join(map(quoted, self.columns))} FROM {rows}"

    def has_pictures(self, values: Sequence[Texts]) -> bool:
        """Whether pictures stand in some key, be it for NUL or for themselves."""
        keys = (values[self.columns.index(key)] for key in self.keys)
        return any(text is not None and INSTEAD in text for texts in keys for text in texts)

    def on_conflict(self) -> str:
        """What an INSERT does with a row that is there."""
        others = [quoted(column) for column in self.columns if column not in self.keys]
        then = ", ".join(f"{column} = excluded.{column}" for column in others)
        keys = ", ".join(quoted(column) for column in self.keys)
        return f"ON CONFLICT ({keys}) DO UPDATE SET {then}" if then else f"ON CONFLICT ({keys}) DO NOTHING"


def quoted(name: str) -> str:
    """A name in double quotes.

    Examples
    --------
    >>> quoted('the "best" one')
    '"the ""best"" one"'
    """
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def layout(name: str, schema: str | None, answers: QueryAnswers) -> Layout:
    """The table for the answers of a query."""
    columns: list[Column[Any]] = []
    sources: dict[str, str] = {}
    for field in answers.schema:
        for source, kind in flattened(field, answers.window):
            plain = source.replace(".", "_")
            column = short(source if source == field.name or plain in answers.schema.names else plain)
            sources[column] = source
            columns.append(Column(column, sql_type(kind)))
    named = {source: column for column, source in sources.items()}
    window = next((column for column in answers.window if column is not None), None)
    keys = tuple(named[source] for source in (window, *(answers.keys or ())) if source is not None)
    if window is None or answers.keys is None:
        keys = ID
        columns += [Column(column, kind()) for column, kind in zip(ID, ID_TYPES, strict=True)]
    unique = UniqueConstraint(*keys, postgresql_nulls_not_distinct=True)
    return Layout(Table(short(name), MetaData(), *columns, unique, schema=schema), tuple(sources.values()), keys)


def flattened(field: pa.Field, window: tuple[str | None, str | None]) -> list[tuple[str, pa.DataType]]:
    """A window that is a struct as its two fields, anything else as it is."""
    if pa.types.is_struct(field.type):
        inner = [(f"{field.name}.{part.name}", part.type) for part in field.type]
        if any(source in window for source, _ in inner):
            return inner
    return [(field.name, field.type)]


def pick(rows: pa.Table, source: str) -> pa.ChunkedArray:
    """A column, or a field of a struct."""
    if source in rows.schema.names:
        return rows.column(source)
    column, _, part = source.rpartition(".")
    return pc.struct_field(rows.column(column), part)


def short(name: str) -> str:
    """A name that PostgreSQL keeps whole.

    Examples
    --------
    >>> short("delays"), len(short("d" * 80))
    ('delays', 63)
    """
    if len(name.encode()) <= LONGEST:
        return name
    kept = name.encode()[: LONGEST - 17].decode(errors="ignore")
    return f"{kept}_{blake2b(name.encode(), digest_size=8).hexdigest()}"


def sql_type(kind: pa.DataType) -> TypeEngine[Any]:
    """The type of a column.

    Examples
    --------
    >>> str(sql_type(pa.decimal128(10, 2))), str(sql_type(pa.int32()))
    ('NUMERIC(10, 2)', 'INTEGER')
    """
    for fits, made in _TYPES:
        if fits(kind):
            return made(kind)
    return JSONB()


_TYPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], TypeEngine[Any]]], ...] = (
    (pa.types.is_boolean, lambda kind: Boolean()),
    (pa.types.is_int8, lambda kind: SmallInteger()),
    (pa.types.is_int16, lambda kind: SmallInteger()),
    (pa.types.is_int32, lambda kind: Integer()),
    (pa.types.is_int64, lambda kind: BigInteger()),
    (pa.types.is_float32, lambda kind: REAL()),
    (pa.types.is_float64, lambda kind: Double()),
    (pa.types.is_decimal, lambda kind: Numeric(kind.precision, kind.scale)),
    (pa.types.is_string, lambda kind: Text()),
    (pa.types.is_large_string, lambda kind: Text()),
    (pa.types.is_binary, lambda kind: LargeBinary()),
    (pa.types.is_large_binary, lambda kind: LargeBinary()),
    (pa.types.is_date, lambda kind: Date()),
    (pa.types.is_timestamp, lambda kind: DateTime(timezone=kind.tz is not None)),
    (pa.types.is_duration, lambda kind: Interval()),
)


def texts(column: pa.ChunkedArray) -> Texts:
    """The values as PostgreSQL reads them, None for NULL.

    Examples
    --------
    >>> texts(pa.chunked_array([[1.5, None, float("nan")]]))
    ['1.5', None, 'nan']
    >>> texts(pa.chunked_array([[b"ab", None]]))
    ['\\\\x6162', None]
    >>> texts(pa.chunked_array([["a\\0b", None]]))
    ['a␀b', None]
    """
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()]
    if pa.types.is_duration(kind):
        micros = column.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
        return [None if value is None else f"{value} microseconds" for value in micros]
    if isinstance(sql_type(kind), JSONB):
        return [
            None if value is None else json.dumps(without_nul(json_values.plain(value))) for value in column.to_pylist()
        ]
    found: Texts = pc.replace_substring(column.cast(pa.string()), NUL, INSTEAD).to_pylist()
    return found


def without_nul(value: Any) -> Any:
    """A value of JSON that JSONB takes, too.

    Examples
    --------
    >>> without_nul({"a\\0": ["\\0", 1]})
    {'a␀': ['␀', 1]}
    """
    match value:
        case str():
            return value.replace(NUL, INSTEAD)
        case dict():
            return {without_nul(name): without_nul(item) for name, item in value.items()}
        case list():
            return [without_nul(item) for item in value]
        case _:
            return value
