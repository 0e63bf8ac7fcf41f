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
    """Strings by dictionary, everything else plain."""
    texts = [item.name for item in schema if pa.types.is_dictionary(item.type) or pa.types.is_string(item.type)]
    return {"compression": "snappy", "use_dictionary": texts, "store_schema": False, "write_statistics": True}
