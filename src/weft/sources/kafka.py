"""A topic of Kafka, whose records are JSON, CSV or Avro.

The connector is found by its coordinates the first time and kept (:mod:`weft.java.packages`). Options that begin with
``kafka.`` are the client's, as Spark has it; those of the environment that begin with ``WEFT_KAFKA_JAVA_`` too, so
that secrets stand in no file: ``WEFT_KAFKA_JAVA_SASL_JAAS_CONFIG`` is ``kafka.sasl.jaas.config``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.java.packages import KAFKA, add_packages
from weft.sources.dead_letters import DeadLetters
from weft.sources.payloads import parsed_rows, payload
from weft.sources.source import LiveSource, mark
from weft.store.folder import Folder

ENVIRONMENT = "WEFT_KAFKA_JAVA_"
PROMPT = {
    "kafka.request.timeout.ms": "10000",
    "kafka.default.api.timeout.ms": "15000",
    "fetchOffset.numRetries": "2",
    "kafkaConsumer.pollTimeoutMs": "30000",
}
"""A broker that is away is noticed after half a minute, not after minutes: nothing is lost, and the job says so."""
READER = {
    *("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp", "endingoffsets", "failondataloss"),
    *("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "minpartitions", "maxrecordsperpartition"),
    *("groupidprefix", "fetchoffset.numretries", "fetchoffset.retryintervalms", "kafkaconsumer.polltimeoutms"),
    *("startingoffsetsbytimestampstrategy", "includeheaders"),
}


def kafka_source(
    spark: SparkSession,
    topic: str,
    servers: str,
    *,
    format: str | None = None,
    schema: str | StructType | None = None,
    options: Mapping[str, str] | None = None,
    dead: str | None = None,
) -> LiveSource:
    """The records of a topic from its beginning, and those that will come."""
    given = dict(options or {})
    own = {name: value for name, value in given.items() if name.lower() in READER or name.startswith("kafka.")}
    parsing = {name: value for name, value in given.items() if name not in own}
    how = payload(spark, format or "json", schema, parsing, f"topic {topic}")
    add_packages(spark, KAFKA)
    reader = {"startingOffsets": "earliest", **PROMPT, **environment(), **own}
    reader |= {"kafka.bootstrap.servers": servers, "subscribe": topic}
    raw = spark.readStream.format("kafka").options(**reader).load()
    bad = mark(
        how.is_bad(F.col("value")),
        raw=F.col("value"),
        file=F.lit(None).cast("string"),
        topic=F.col("topic"),
        partition=F.col("partition"),
        offset=F.col("offset"),
    )
    letters = DeadLetters(Folder(dead) if dead is not None else None, how.reason())
    return LiveSource(parsed_rows(raw, how, bad), letters)


def environment() -> dict[str, str]:
    """The client's settings that stand in the environment."""
    return {
        f"kafka.{name.removeprefix(ENVIRONMENT).lower().replace('_', '.')}": value
        for name, value in os.environ.items()
        if name.startswith(ENVIRONMENT)
    }
