"""Where rows come from: files that Spark reads."""

from __future__ import annotations

from pathlib import PurePath

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType

from weft.errors import WeftError
from weft.sources.nanoseconds import in_microseconds, nanosecond_columns
from weft.store.location import Location

FORMATS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}
"""File endings whose format need not be named."""
DEFAULTS = {"csv": {"header": "true", "inferSchema": "true"}}


def read_files(
    spark: SparkSession, path: str, event_time: str, kind: str | None = None, options: dict[str, str] | None = None
) -> DataFrame:
    """The rows of a file or folder; an event time that is text, as in JSON, is read as a timestamp."""
    location = Location.of(path)
    if not location.is_remote and not location.exists():
        raise WeftError(f"there is no file or folder {path}")
    chosen = kind or guess(path)
    reader = spark.read.format(chosen).options(**{**DEFAULTS.get(chosen, {}), **(options or {})})
    nanoseconds = nanosecond_columns(spark, location, chosen)
    try:
        rows = in_microseconds(reader.load(location.for_spark), nanoseconds)
    except PySparkException as error:
        raise WeftError(f"cannot read {path} as {chosen}: {str(error).splitlines()[0]}") from None
    names = {name.lower(): name for name in rows.columns}
    column = names.get(event_time.lower())
    if column and isinstance(rows.schema[column].dataType, StringType):
        return rows.withColumn(column, rows[f"`{column}`"].cast("timestamp"))
    return rows


def guess(path: str) -> str:
    """The format by the ending of the path, or of the first file in it; Parquet if nothing tells."""
    location = Location.of(path)
    candidates: list[PurePath] = [PurePath(path)]
    if not location.is_remote and location.path.is_dir():
        candidates = sorted(file for file in location.path.rglob("*.*") if not file.name.startswith(("_", ".")))
    for file in candidates[:1]:
        for ending in reversed(file.suffixes):
            if ending in FORMATS:
                return FORMATS[ending]
    return "parquet"
