"""Sources by name: a folder, ``kafka:TOPIC@HOST:PORT``, ``rate:ROWS``, ``socket:HOST:PORT``, or a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.config.model import PluggedSource, source_plugins
from weft.errors import WeftError
from weft.sources.dead_letters import DeadLetters
from weft.sources.files import file_source
from weft.sources.kafka import kafka_source
from weft.sources.payloads import parsed_rows, payload
from weft.sources.source import LiveSource, mark
from weft.store.folder import Folder


def live_source(
    spark: SparkSession,
    spec: str | DataFrame,
    event_time: str,
    *,
    format: str | None = None,
    schema: str | StructType | None = None,
    options: Mapping[str, str] | None = None,
    max_files: int | None = None,
    dead: str | None = None,
) -> LiveSource:
    """The rows of a stream.

    Parameters
    ----------
    spec
        A folder of files; ``kafka:TOPIC@HOST:PORT``; ``rate:ROWS`` (a second) or ``rate-micro-batch:ROWS`` (a batch),
        whose columns are ``timestamp`` and ``value``; ``socket:HOST:PORT``, a record a line; a source of another
        package (entry points ``weft.sources``); or any streaming DataFrame.
    event_time
        The column that holds the event time; if files have it as text, it is read as a timestamp.
    format
        Of files: ``parquet``, ``csv``, ``json``, ``orc``, by default as their names tell. Of other records: ``json``,
        ``csv`` or ``avro``.
    schema
        The columns, as DDL (``ts TIMESTAMP, city STRING``) or as a StructType, for Avro the Avro schema. Files that are
        there tell it themselves.
    options
        Of the reader, as Spark has them, and of the parser.
    max_files
        The most files of a folder in one batch.
    dead
        The folder for records that cannot be read; without one, such a record stops the run.
    """
    if isinstance(spec, DataFrame):
        if not spec.isStreaming:
            raise WeftError("the DataFrame is not a stream: make it with spark.readStream")
        return LiveSource(spec)
    kind, _, rest = spec.partition(":")
    if kind == "kafka":
        topic, at, servers = rest.partition("@")
        if not (topic and at and ":" in servers):
            raise WeftError(f"source {spec} is not of the form kafka:TOPIC@HOST:PORT")
        return kafka_source(spark, topic, servers, format=format, schema=schema, options=options, dead=dead)
    if kind in {"rate", "rate-micro-batch"}:
        return rate_source(spark, kind, rest, options or {})
    if kind == "socket":
        return socket_source(spark, rest, format=format, schema=schema, options=options or {}, dead=dead)
    if (plugin := source_plugins().get(kind)) is not None:
        said = {"format": format, "schema": schema, "max_files": max_files, **(options or {})}
        return plugged_source(spark, plugin, spec, said, dead)
    return file_source(
        spark, spec, event_time, format=format, schema=schema, options=options, max_files=max_files, dead=dead
    )


def plugged_source(
    spark: SparkSession, plugin: type[PluggedSource], spec: str, said: Mapping[str, Any], dead: str | None
) -> LiveSource:
    """The rows of another package's source."""
    fields = {name: value for name, value in said.items() if value is not None}
    if "dead" in plugin.model_fields:
        fields["dead"] = dead
    rows = plugin.told(spec, fields).rows(spark)
    return rows if isinstance(rows, LiveSource) else live_source(spark, rows, "")


def rate_source(spark: SparkSession, kind: str, rows: str, options: Mapping[str, str]) -> LiveSource:
    """Numbers that come by themselves, as many as asked for."""
    if not rows.isdigit():
        raise WeftError(f"source {kind}:{rows} is not of the form {kind}:ROWS")
    many = {"rate": "rowsPerSecond", "rate-micro-batch": "rowsPerBatch"}[kind]
    return LiveSource(spark.readStream.format(kind).options(**{many: rows, **options}).load())


def socket_source(
    spark: SparkSession,
    address: str,
    *,
    format: str | None,
    schema: str | StructType | None,
    options: Mapping[str, str],
    dead: str | None,
) -> LiveSource:
    """Lines that a server sends; for trying things out, as a socket cannot send a lost line again."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        raise WeftError(f"source socket:{address} is not of the form socket:HOST:PORT")
    how = payload(spark, format or "json", schema, options, f"socket {address}")
    lines = spark.readStream.format("socket").options(host=host, port=port).load()
    bad = mark(
        how.is_bad(F.col("value")),
        raw=F.col("value"),
        file=F.lit(f"socket {address}"),
        topic=F.lit(None).cast("string"),
        partition=F.lit(None).cast("int"),
        offset=F.lit(None).cast("bigint"),
    )
    letters = DeadLetters(Folder(dead) if dead is not None else None, how.reason())
    return LiveSource(parsed_rows(lines, how, bad), letters)
