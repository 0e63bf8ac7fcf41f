"""What people see of a failure of Spark: a few lines, an exit code, and a status that says failed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JError

from weft.catalog import Status
from weft.cli.streaming import _watch
from weft.launch.live import say_idle_routes
from weft.sinks.specs import sink_of

NEEDED = ("--source", "trades=incoming", "--event-time", "ts", "--checkpoint", "state", "--out", "answers")
TRACE = """An error occurred while calling o127.isEmpty.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Error while reading file x.parquet. SQLSTATE: KD001
	at org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:1)
Caused by: java.lang.RuntimeException: x.parquet is not a Parquet file
	at org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:1)
"""


def test_a_failure_of_spark_is_told_in_a_few_lines_and_in_full_if_asked_for(
    weft: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(config: object, *, take_over: bool) -> None:
        raise Py4JError(TRACE)

    monkeypatch.setattr("weft.cli.streaming.run_stream", fail)
    monkeypatch.setenv("WEFT_DEBUG", "")
    short = weft("stream", *NEEDED)
    assert short.code == 1
    assert short.err.splitlines() == [
        "weft: Spark failed in the stream trades from incoming: "
        "[FAILED_READ_FILE.NO_HINT] Error while reading file x.parquet.",
        "  x.parquet is not a Parquet file",
        "  weft --debug shows the whole trace",
    ]
    full = weft("--debug", "stream", *NEEDED)
    assert full.code == 1
    assert "Traceback" in full.err and "ParquetFileReader.java:1" in full.err


class FailingEngine:
    """A stream that Spark has ended, which says of itself that it is not running."""

    def await_termination(self, timeout: float) -> bool:
        raise Py4JError(TRACE)

    def status(self) -> Status:
        return {"state": "stopped", "batch": 3}


def test_the_last_word_of_a_job_that_spark_has_ended_is_failed() -> None:
    said: list[Status] = []
    with pytest.raises(Py4JError):
        _watch(FailingEngine(), threading.Event(), [said.append], ["x.parquet"])  # type: ignore[arg-type]
    assert [status["state"] for status in said] == ["failed"]
    (trouble,) = said[0]["errors"]
    assert "is not a Parquet file" in trouble["message"] and "x.parquet" not in trouble["message"]


def test_a_route_that_no_query_takes_is_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("weft"), "propagate", True)
    with caplog.at_level(logging.WARNING, "weft.stream"):
        say_idle_routes([sink_of("horly,max*=console"), sink_of("memory")], ["hourly", "max_price"])
    assert [record.getMessage() for record in caplog.records] == [
        "no query has a name like horly, which sink horly,max*=console is for; did you mean hourly?"
    ]


def test_help_names_every_source_and_sink(weft: Callable[..., Any]) -> None:
    said = " ".join(weft("stream", "--help").out.replace("│", " ").split())
    for form in ("rate:ROWS", "socket:HOST:PORT", "delta:DIR", "hourly,max*=SPEC"):
        assert form in said
    assert "UTC" in weft("queries", "--help").out
