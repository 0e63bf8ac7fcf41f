"""Durations: exactly what Spark's window() reads, and the abbreviations of CQL."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import get_field

from weft.query.durations import cql_duration, spark_duration

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000

READ = {
    "10 minutes": 10 * MINUTE,
    "10 minute": 10 * MINUTE,
    "1 hour 30 minutes": 90 * MINUTE,
    "1 HOUR 30 MINUTES": 90 * MINUTE,
    "INTERVAL 10 MINUTES": 10 * MINUTE,
    "interval -1 hour 2 hours": HOUR,
    " 10   minutes ": 10 * MINUTE,
    "10\tminutes": 10 * MINUTE,
    "10\nminutes": 10 * MINUTE,
    "+10 minutes": 10 * MINUTE,
    "+ 5 minutes": 5 * MINUTE,
    "-10 minutes": -10 * MINUTE,
    "- 10 minutes": -10 * MINUTE,
    "0 minutes": 0,
    "1 day -1 hour": 23 * HOUR,
    "1 day 1 day": 2 * DAY,
    "5 minutes 1 hour": 65 * MINUTE,
    "1 week": 7 * DAY,
    "100 milliseconds": 100_000,
    "100 microseconds": 100,
    "1.5 seconds": 1_500_000,
    "-1.5 seconds": -1_500_000,
    "1.1234567 seconds": 1_123_456,
    "1.123456789 seconds": 1_123_456,
    "0.0000001 seconds": 0,
    ".5 seconds": 500_000,
    "5. seconds": 5 * SECOND,
    "1 month -1 month 10 minutes": 10 * MINUTE,
    "9223372036854775807 microseconds": 2**63 - 1,
}
REFUSED = [
    *("10 min", "10 m", "10 s", "100 ms", "1 d", "10 nanoseconds", "1 quarter", "10 hrs"),
    *("10minutes", "10 minutes 5", "10", "", " ", "minutes", "interval", "interval10 minutes", "PT10M", "00:10:00"),
    *("10 minutes, 5 seconds", "1.5 minutes", "1.1234567891 seconds", "1e3 seconds", ". seconds", "1..5 seconds"),
    *(
        "9223372036854775808 microseconds",
        "1 month",
        "1 year",
        "1 hour 1 month",
        "--1 hour",
        "1 - hour",
        ".5 months",
        "1.5 months",
    ),
]


@pytest.mark.parametrize("text", READ)
def test_what_spark_reads_is_read(text: str) -> None:
    assert spark_duration(text) == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_what_spark_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        spark_duration(text)


def test_both_lists_are_sparks_own_opinion(spark: Any) -> None:
    module = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.util.IntervalUtils$")
    utils = module.getField("MODULE$").get(None)
    string = spark._jvm.org.apache.spark.unsafe.types.UTF8String.fromString

    def by_spark(text: str) -> int | None:
        try:
            interval = utils.stringToInterval(string(text))
        except Exception:
            return None
        if get_field(interval, "months"):
            return None
        return int(get_field(interval, "microseconds")) + int(get_field(interval, "days")) * DAY

    assert {text: by_spark(text) for text in READ} == READ
    assert [text for text in REFUSED if by_spark(text) is not None] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 min", 10 * MINUTE),
        ("10min", 10 * MINUTE),
        ("600s", 10 * MINUTE),
        ("600 sec", 10 * MINUTE),
        ("1.5 h", 90 * MINUTE),
        ("1h 30m", 90 * MINUTE),
        ("2 days", 2 * DAY),
        ("1 w", 7 * DAY),
        ("250 ms", 250_000),
        ("7us", 7),
    ],
)
def test_cql_knows_abbreviations(text: str, expected: int) -> None:
    assert cql_duration(text) == expected


@pytest.mark.parametrize("text", ["10", "10 apples", "min", "-10 min", "10 min,", ""])
def test_cql_refuses_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError):
        cql_duration(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10 min", "no unit 'min': Spark knows microseconds, milliseconds, seconds, minutes, hours, days and weeks"),
        ("1 month", "months and years are not of one length"),
        ("1.5 hours", "only seconds may have decimals"),
        ("ten minutes", "cannot read 'ten minutes' as a duration"),
        ("20000000 weeks", "longer than 292,471 years"),
    ],
)
def test_the_reason_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        spark_duration(text)
    assert str(error.value) == message
