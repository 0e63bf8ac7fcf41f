"""Streams of rows: folders that files arrive in."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from weft.spark.sources import read_files


def live_rows(
    spark: SparkSession,
    spec: str,
    event_time: str,
    *,
    kind: str | None = None,
    schema: str | None = None,
    options: dict[str, str] | None = None,
    max_files: int | None = None,
) -> DataFrame:
    """The rows of the files that arrive in a folder; their columns are those of the files that are there."""
    known = read_files(spark, spec, event_time, kind, options)
    reader = spark.readStream.format(kind or "parquet").schema(schema or known.schema).options(**(options or {}))
    if max_files:
        reader = reader.option("maxFilesPerTrigger", max_files)
    return reader.load(spec)
