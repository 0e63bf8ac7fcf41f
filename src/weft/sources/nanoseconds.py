"""Parquet whose timestamps are in nanoseconds, as pandas writes it: read in microseconds, which is what Spark has.

Spark refuses such columns, or reads them as numbers where it is told to. Which columns they are stands in a file's
footer; Spark is told to read them as numbers, and these become the timestamps that they are, the last three
digits left out (downwards, also before 1970).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from weft.errors import WeftError
from weft.query.names import quoted
from weft.store.location import STORES, Location

AS_NUMBERS = "spark.sql.legacy.parquet.nanosAsLong"
WITHOUT_ZONE = "spark.sql.parquet.inferTimestampNTZ.enabled"
ADVICE = (
    "write them in microseconds, from pandas by "
    "to_parquet(..., coerce_timestamps='us', allow_truncated_timestamps=True)"
)


def nanosecond_columns(spark: SparkSession, location: Location, kind: str) -> dict[str, str]:
    """The timestamps in nanoseconds of the Parquet files there, and what Spark calls their type in microseconds.

    If there are any, the session is told to read them as numbers.
    """
    schema = _footer(location) if kind == "parquet" else None
    if schema is None:
        return {}
    found = dict(_nanoseconds(schema))
    inside = next((path for path in found if path not in schema.to_arrow_schema().names), None)
    if inside is not None:
        raise WeftError(f"{location.text}: {inside} holds timestamps in nanoseconds inside a column: {ADVICE}")
    if found:
        spark.conf.set(AS_NUMBERS, "true")
    without = "timestamp_ntz" if spark.conf.get(WITHOUT_ZONE) == "true" else "timestamp"
    return {name: "timestamp" if of_an_instant else without for name, of_an_instant in found.items()}


def as_numbers(schema: StructType, nanoseconds: Mapping[str, str]) -> StructType:
    """The schema that Spark reads the files by."""
    return StructType([StructField(item.name, LongType()) if item.name in nanoseconds else item for item in schema])


def in_microseconds(rows: DataFrame, nanoseconds: Mapping[str, str]) -> DataFrame:
    """The rows with timestamps where there are numbers of nanoseconds."""
    if not nanoseconds:
        return rows
    return rows.select(*(_instant(name, nanoseconds.get(name)) for name in rows.columns))


def _instant(name: str, kind: str | None) -> Column:
    column = quoted(name)
    if kind is None:
        return F.col(column)
    # `div` leaves out digits towards zero
    micros = f"({column} div 1000 - CAST({column} % 1000 < 0 AS BIGINT))"
    if kind == "timestamp":
        return F.expr(f"timestamp_micros({micros})").alias(name)
    return F.expr(f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ'1970-01-01')").alias(name)


def _nanoseconds(schema: pq.ParquetSchema) -> Iterator[tuple[str, bool]]:
    """Columns of 64 bits, and whether they tell instants; Spark's own 96 bits Arrow calls nanoseconds, too."""
    for number in range(len(schema.names)):
        column = schema.column(number)
        if column.physical_type == "INT64" and column.logical_type.type == "TIMESTAMP":
            said = json.loads(column.logical_type.to_json())
            if said["timeUnit"] == "nanoseconds":
                yield column.path, said["isAdjustedToUTC"]


def _footer(location: Location) -> pq.ParquetSchema | None:
    """The columns of the first file there; None where only Spark can look, or nothing can be read."""
    if location.is_remote and location.scheme not in STORES:
        return None
    filesystem, path = location.for_arrow()
    try:
        if filesystem.get_file_info(path).type == fs.FileType.Directory:
            infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            files = sorted(info.path for info in infos if info.type == fs.FileType.File and _is_data(info.path, path))
            if not files:
                return None
            path = files[0]
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            return file.schema
    except (OSError, pa.ArrowException):
        return None


def _is_data(path: str, root: str) -> bool:
    """Whether Spark would read it: nothing on the way to it is hidden."""
    return not any(part.startswith(("_", ".")) for part in path[len(root) :].split("/"))
