"""Which errors of Spark end a stream, and which are outages that are waited out."""

from __future__ import annotations

import errno

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from weft.spark.live.reading import _is_outage
from weft.spark.outages import source_is_away

KAFKA = "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.{}: no answer"


@pytest.mark.parametrize(
    "error",
    [
        PySparkException(KAFKA.format("TimeoutException")),
        PySparkException(KAFKA.format("DisconnectException")),
        PySparkException("java.net.UnknownHostException: broker"),
        PySparkException(
            "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 30000 milliseconds"
        ),
        PySparkException("Job aborted due to stage failure: Lost task 0.0 in stage 24.0 (TID 25): UnknownReason"),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
)
def test_what_may_be_back_is_an_outage(error: Exception) -> None:
    assert _is_outage(error)


@pytest.mark.parametrize(
    "error",
    [
        PySparkException(
            KAFKA.format("TimeoutException") + " Some data may have been lost because they are not available"
        ),
        PySparkException("org.apache.kafka.common.errors.TopicAuthorizationException: not you"),
        PySparkException(
            "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Error while reading file x.parquet"
        ),
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),  # py4j's, when the JVM is gone
        FileNotFoundError(errno.ENOENT, "No such file"),
        ValueError("a bug"),
    ],
)
def test_what_waiting_does_not_mend_is_none(error: Exception) -> None:
    assert not _is_outage(error)


def test_of_an_error_that_spark_tells_nothing_about_a_query_may_be_the_cause() -> None:
    assert not source_is_away(PySparkException("Lost task 0.0 in stage 24.0 (TID 25): UnknownReason"))
