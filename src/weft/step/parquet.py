"""Answers as typed Parquet, as Spark reads it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.store.folder import Folder


def write_parquet(table: pa.Table, folder: Folder, file: str) -> None:
    """Typed Parquet as Spark reads it."""
    filesystem, path = folder.open(file)
    pq.write_table(table, path, filesystem=filesystem, **parquet_options(table.schema))


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Strings by dictionary, everything else plain; statistics only of instants, by which readers skip files."""
    texts = [item.name for item in schema if pa.types.is_dictionary(item.type) or pa.types.is_string(item.type)]
    instants = [name for item in schema for name in instants_of(item)]
    return {"compression": "snappy", "use_dictionary": texts, "store_schema": False, "write_statistics": instants}


def instants_of(item: pa.Field) -> list[str]:
    """A column that holds instants, or those that a window has, as Parquet names them.

    Examples
    --------
    >>> instants_of(pa.field("w", pa.struct([("start", pa.timestamp("us")), ("n", pa.int64())])))
    ['w.start']
    """
    if pa.types.is_struct(item.type):
        return [f"{item.name}.{name}" for inner in item.type for name in instants_of(inner)]
    return [item.name] if pa.types.is_timestamp(item.type) else []
