"""Records as text or bytes, parsed by a schema: JSON, CSV and Avro, with bad ones marked and none lost.

Parsing is done by Spark's own functions over all columns of the schema. (Spark's file readers parse the columns that a
query uses: there, a record would be good or bad depending on who reads it.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from weft.errors import WeftError
from weft.java.packages import AVRO, add_packages
from weft.query.names import quoted
from weft.sources.dead_letters import Reason

CORRUPT = "__weft_corrupt"
PARSED = "__weft_parsed"
FORMATS = ("json", "csv", "avro")


@dataclass(frozen=True)
class Payload:
    """How the bytes of a record become a row."""

    format: str
    schema: StructType
    options: Mapping[str, str] = field(default_factory=dict)
    avro: str = ""
    """The schema in Avro's own notation."""

    def parsed(self, value: Column) -> Column:
        """The record as a struct with the columns of the schema, and :data:`CORRUPT`."""
        if self.format == "avro":
            from pyspark.sql.avro.functions import from_avro

            # the five bytes before a record name its schema, where a registry is used
            bytes_ = F.expr("substring(value, 6)") if self.options.get("confluent") == "true" else value
            return from_avro(bytes_, self.avro, {"mode": "PERMISSIVE"})
        options = {**self.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        extended = StructType([*self.schema.fields, StructField(CORRUPT, StringType())])
        if self.format == "json":
            return F.from_json(value.cast("string"), extended, options)
        return F.from_csv(value.cast("string"), ddl(extended), options)

    def is_bad(self, value: Column) -> Column:
        """Whether the record of which :data:`PARSED` is the struct could not be read."""
        parsed = F.col(PARSED)
        if self.format == "avro":  # what cannot be read comes as a row of NULLs
            nothing = [parsed[name].isNull() for name in self.schema.names]
            return value.isNull() | parsed.isNull() | _all(nothing)
        bad = value.isNull() | parsed.isNull() | parsed[CORRUPT].isNotNull()
        if self.format == "json":  # Spark would take the first object of an array and pass over the others
            bad = bad | F.ltrim(value.cast("string")).startswith("[")
        return bad

    def columns(self) -> list[Column]:
        """The columns of the row."""
        return [F.col(f"{PARSED}.{quoted(name)}").alias(name) for name in self.schema.names]

    def reason(self) -> Reason:
        """What is wrong with a record that could not be read."""
        return {"json": self._json_reason, "csv": self._csv_reason, "avro": self._avro_reason}[self.format]

    def _json_reason(self, raw: Column) -> Column:
        text = raw.cast("string")
        loose = StructType([StructField(item.name, StringType()) for item in self.schema])
        as_text = F.from_json(text, loose, {"mode": "PERMISSIVE"})
        return (
            F.when(raw.isNull(), F.lit("the record has no value"))
            .when(F.try_parse_json(text).isNull(), F.lit("it is not JSON"))
            .when(~F.ltrim(text).startswith("{"), F.lit("it is not a JSON object"))
            .otherwise(self._misfits(as_text, self.parsed(raw)))
        )

    def _csv_reason(self, raw: Column) -> Column:
        text = raw.cast("string")
        loose = StructType([StructField(item.name, StringType()) for item in self.schema])
        extended = StructType([*loose.fields, StructField(CORRUPT, StringType())])
        options = {**self.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        as_text = F.from_csv(text, ddl(extended), options)
        count = F.lit(f"it does not have {len(self.schema)} columns")
        return F.when(as_text[CORRUPT].isNotNull(), count).otherwise(self._misfits(as_text, self.parsed(raw)))

    def _avro_reason(self, raw: Column) -> Column:
        empty = F.lit("the record has no value")
        return F.when(raw.isNull(), empty).otherwise(F.lit("it is not an Avro record of the schema"))

    def _misfits(self, as_text: Column, parsed: Column) -> Column:
        """The columns whose text says something that their type does not take."""
        found = [
            F.when(
                as_text[item.name].isNotNull() & parsed[item.name].isNull(),
                F.concat(F.lit(f"{item.name} is no {item.dataType.simpleString()}: "), as_text[item.name]),
            )
            for item in self.schema
        ]
        said = F.concat_ws("; ", *found)
        return F.when(said == "", F.lit("it does not fit the schema")).otherwise(said)


def payload(
    spark: SparkSession, format: str, schema: str | StructType | None, options: Mapping[str, str], place: str
) -> Payload:
    """How the records of ``place`` are parsed."""
    if format not in FORMATS:
        raise WeftError(f"{place}: records of format {format} cannot be read; there are {', '.join(FORMATS)}")
    if schema is None:
        raise WeftError(f"{place}: nothing tells the columns of its records: give their schema")
    if format == "avro":
        add_packages(spark, AVRO)
        return avro_payload(spark, schema, options, place)
    return Payload(format, struct_of(schema, place), options)


def avro_payload(spark: SparkSession, schema: str | StructType, options: Mapping[str, str], place: str) -> Payload:
    """How Avro records are parsed, by a schema in Avro's own notation."""
    from pyspark.sql.avro.functions import from_avro

    try:
        record = json.loads(schema if isinstance(schema, str) else "")
    except ValueError:
        record = None
    if not isinstance(record, dict) or record.get("type") != "record":
        raise WeftError(f'{place}: Avro records are read by their Avro schema: give {{"type": "record", ...}}')
    empty = spark.createDataFrame([], "value binary")
    struct = empty.select(from_avro("value", str(schema)).alias("row")).schema["row"].dataType
    assert isinstance(struct, StructType)
    return Payload("avro", struct, options, str(schema))


def struct_of(schema: str | StructType, place: str) -> StructType:
    """A schema that may be written as DDL."""
    if isinstance(schema, StructType):
        return schema
    try:
        parsed = StructType.fromDDL(schema)
    except PySparkException as error:
        raise WeftError(f"{place}: the schema cannot be read: {str(error).strip().splitlines()[0]}") from None
    if not isinstance(parsed, StructType):
        raise WeftError(f"{place}: the schema names no columns: write ts TIMESTAMP, city STRING")
    return parsed


def ddl(schema: StructType) -> str:
    """A schema as ``from_csv`` takes it."""
    spark = SparkSession.active()
    return str(spark._jsparkSession.parseDataType(schema.json()).toDDL())


def parsed_rows(raw: DataFrame, payload: Payload, mark: Column) -> DataFrame:
    """The rows of records whose bytes stand in the column ``value``, each with its mark."""
    return raw.withColumn(PARSED, payload.parsed(F.col("value"))).select(*payload.columns(), mark)


def _all(conditions: list[Column]) -> Column:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole
