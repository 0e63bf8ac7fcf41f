"""A folder of files that grows: Parquet and ORC by Spark's readers, JSON and CSV line by line.

A line that cannot be read is a bad record. A *file* that cannot be read, such as half a Parquet file, stops the run
with its name: who puts files into a folder that is watched writes them elsewhere and renames them into it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from weft.errors import WeftError
from weft.query.names import quoted
from weft.sources.batch_files import DEFAULTS, guess
from weft.sources.dead_letters import DeadLetters
from weft.sources.nanoseconds import as_numbers, in_microseconds, nanosecond_columns
from weft.sources.payloads import Payload, parsed_rows, struct_of
from weft.sources.source import LiveSource, mark
from weft.store.folder import Folder
from weft.store.location import STORES, Location

FILE = "__weft_file"
LINES = ("json", "csv")
"""Formats that are read line by line."""
READER = {
    *("maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "filenameonly", "cleansource"),
    *("sourcearchivedir", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "linesep"),
    *("maxcachedfiles", "basepath"),
}
"""Options that are the reader's, also where lines are parsed afterwards."""


def file_source(
    spark: SparkSession,
    path: str,
    event_time: str,
    *,
    format: str | None = None,
    schema: str | StructType | None = None,
    options: Mapping[str, str] | None = None,
    max_files: int | None = None,
    dead: str | None = None,
) -> LiveSource:
    """The rows of the files that are in a folder, and that will be."""
    location = Location.of(path)
    if not location.is_remote and not location.path.is_dir():
        raise WeftError(f"there is no folder {path}: a stream's files are put into a folder")
    kind = format or guess(path)
    given = {**DEFAULTS.get(kind, {}), **(options or {})}
    if given.get("multiLine", "false").lower() == "true":
        raise WeftError(f"{path}: a stream reads {kind} line by line, one record a line: multiLine cannot be had")
    nanoseconds = nanosecond_columns(spark, location, kind)
    columns = struct_of(schema, path) if schema else inferred(spark, path, kind, given)
    reader = {name: value for name, value in given.items() if kind not in LINES or name.lower() in READER}
    if max_files is not None:
        reader["maxFilesPerTrigger"] = str(max_files)
    letters = Folder(dead) if dead is not None else None
    if kind not in LINES:
        stream = spark.readStream.format(kind).schema(as_numbers(columns, nanoseconds)).options(**reader)
        return typed_time(in_microseconds(stream.load(location.for_spark), nanoseconds), event_time, letters)
    parsing = {name: value for name, value in given.items() if name.lower() not in {*READER, "header", "inferschema"}}
    columns = with_time(columns, event_time)
    payload = Payload(kind, columns, parsing)
    lines = (
        spark.readStream.format("text")
        .options(**reader)
        .load(location.for_spark)
        .select("value", F.col("_metadata.file_path").alias(FILE))
    )
    lines = lines.where(F.trim("value") != "")
    if kind == "csv" and given.get("header", "false").lower() == "true":
        lines = lines.where(~F.col("value").isin(headers(spark, path, columns, given.get("sep", ","))))
    bad = mark_of_file(payload.is_bad(F.col("value")), F.col("value"))
    return LiveSource(parsed_rows(lines, payload, bad), DeadLetters(letters, payload.reason()))


def inferred(spark: SparkSession, path: str, kind: str, options: Mapping[str, str]) -> StructType:
    """The columns that the files tell which are there."""
    try:
        schema = spark.read.format(kind).options(**options).load(Location.of(path).for_spark).schema
    except PySparkException as error:
        said = str(error).splitlines()[0]
        raise WeftError(f"{path}: nothing there tells the columns ({said}): give the schema") from None
    columns = [item for item in schema if item.name != "_corrupt_record"]
    if not columns:
        raise WeftError(f"{path}: nothing there tells the columns: give the schema")
    return StructType(columns)


def with_time(schema: StructType, event_time: str) -> StructType:
    """The schema with an event time that is a timestamp: JSON knows only its text."""
    return StructType(
        [
            StructField(item.name, TimestampType())
            if item.name.lower() == event_time.lower() and isinstance(item.dataType, StringType)
            else item
            for item in schema
        ]
    )


def typed_time(rows: DataFrame, event_time: str, letters: Folder | None) -> LiveSource:
    """Typed rows; where their event time is text, those are bad whose text is no timestamp."""
    column = next((name for name in rows.columns if name.lower() == event_time.lower()), None)
    if column is None or not isinstance(rows.schema[column].dataType, StringType):
        return LiveSource(rows)
    instant = F.expr(f"try_cast({quoted(column)} AS TIMESTAMP)")
    text = F.col(quoted(column))
    bad = mark_of_file(text.isNotNull() & instant.isNull(), F.to_json(F.struct(*map(quoted, rows.columns))))
    columns = [instant.alias(name) if name == column else F.col(quoted(name)) for name in rows.columns]
    marked = rows.select("*", F.col("_metadata.file_path").alias(FILE)).select(*columns, bad)
    return LiveSource(marked, DeadLetters(letters, lambda raw: F.lit(f"{column} is no timestamp")))


def headers(spark: SparkSession, path: str, schema: StructType, separator: str) -> list[str]:
    """The lines that are no rows: the first line of a file that is there, and the columns' names."""
    names = schema.names
    found = {separator.join(names), separator.join(f'"{name}"' for name in names)}
    location = Location.of(path)
    some = Folder(path).files() if not location.is_remote or location.scheme in STORES else ()
    if some:
        first = spark.read.text(location.beneath(some[0]).for_spark).first()
        found |= {first["value"]} if first is not None else set()
    return sorted(found)


def mark_of_file(bad: Column, raw: Column) -> Column:
    """The mark of a record that stands in a file."""
    nothing = F.lit(None)
    return mark(
        bad,
        raw=raw,
        file=F.col(FILE),
        topic=nothing.cast("string"),
        partition=nothing.cast("int"),
        offset=nothing.cast("bigint"),
    )
