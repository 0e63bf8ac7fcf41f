"""Parquet as pandas writes it, with timestamps in nanoseconds: batch and live read the instants that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from live.streams import read_all
from weft import Engine, WeftError
from weft.sources.batch_files import read_files
from weft.sources.nanoseconds import AS_NUMBERS
from weft.sources.specs import live_source
from weft.spark.failures import spark_failure

TIMES = ["2024-01-01 00:10:00.123456789", "1969-12-31 23:59:59.999999999", None, "1969-12-31 23:59:59.000001000"]
CUT = ["2024-01-01 00:10:00.123456", "1969-12-31 23:59:59.999999", None, "1969-12-31 23:59:59.000001"]


@pytest.fixture(autouse=True)
def as_it_was(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset(AS_NUMBERS)


@pytest.fixture(params=["UTC", None], ids=["with zone", "without zone"])
def rows(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    place = tmp_path / "rows"
    place.mkdir()
    times = pd.to_datetime(TIMES, format="ISO8601").astype("datetime64[ns]")
    frame = pd.DataFrame({"ts": times.tz_localize(request.param), "n": [1, 2, 3, 4]})
    frame.to_parquet(place / "pandas.parquet")
    return str(place)


def expected(with_zone: bool) -> list[tuple[datetime | None, int]]:
    zone = UTC if with_zone else None
    return [(datetime.fromisoformat(text).replace(tzinfo=zone) if text else None, n + 1) for n, text in enumerate(CUT)]


def instants(found: list[tuple[datetime | None, int]], with_zone: bool) -> list[tuple[datetime | None, int]]:
    """Spark gives times with a zone as naive ones of this machine's zone."""
    return [(at.astimezone(UTC) if at is not None and with_zone else at, n) for at, n in found]


def test_a_batch_reads_instants_to_the_microsecond(spark: SparkSession, rows: str) -> None:
    read = read_files(spark, rows, "ts")
    with_zone = read.schema["ts"].dataType.simpleString() == "timestamp"
    found = [(row["ts"], row["n"]) for row in read.orderBy("n").collect()]
    assert instants(found, with_zone) == expected(with_zone)


@pytest.mark.parametrize("schema", [None, "ts TIMESTAMP, n BIGINT"])
def test_a_stream_reads_the_same_rows(spark: SparkSession, rows: str, tmp_path: Path, schema: str | None) -> None:
    batch = sorted(map(tuple, read_files(spark, rows, "ts").collect()), key=lambda row: row[1])
    read = read_all(live_source(spark, rows, "ts", schema=schema), tmp_path / "checkpoint")
    assert sorted(((row["ts"], row["n"]) for row in read.rows), key=lambda row: row[1]) == batch


def test_queries_over_them_give_the_rows_that_spark_gives_for_microseconds(spark: SparkSession, rows: str) -> None:
    engine = Engine(spark).stream("t", read_files(spark, rows, "ts"), "ts")
    (name,) = engine.sql("SELECT window.start AS s, sum(n) AS n FROM t GROUP BY window(ts, '1 second')")
    found = sorted(tuple(row) for row in engine.run()[name].collect())
    frame = pd.read_parquet(rows)
    frame["ts"] = frame["ts"].astype(
        frame["ts"].dtype.name.replace("ns", "us") if frame["ts"].dt.tz else "datetime64[us]"
    )
    frame.to_parquet(f"{rows}-micros.parquet")
    spark.read.parquet(f"{rows}-micros.parquet").createOrReplaceTempView("micros")
    asked = spark.sql("SELECT window.start AS s, sum(n) AS n FROM micros GROUP BY window(ts, '1 second')")
    assert found == sorted(tuple(row) for row in asked.where("s IS NOT NULL").collect())


def test_what_spark_writes_itself_is_read_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    for kind in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"):
        spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
        place = str(tmp_path / kind)
        spark.sql("SELECT timestamp_millis(-1) AS ts, timestamp_ntz'1969-12-31 23:59:59' AS n").write.parquet(place)
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
        plain = spark.read.parquet(place)
        assert read_files(spark, place, "ts").schema == plain.schema
        assert read_files(spark, place, "ts").collect() == plain.collect()
        read = read_all(live_source(spark, place, "ts"), tmp_path / f"{kind} checkpoint")
        assert [tuple(row.values()) for row in read.rows] == [tuple(row) for row in plain.collect()]


def test_nanoseconds_inside_a_struct_are_refused_with_what_to_write(spark: SparkSession, tmp_path: Path) -> None:
    inner = pa.array([{"at": 1}], pa.struct([("at", pa.timestamp("ns"))]))
    pq.write_table(pa.table({"ts": pa.array([1], pa.timestamp("us")), "inner": inner}), tmp_path / "x.parquet")
    with pytest.raises(
        WeftError, match=r"inner\.at holds timestamps in nanoseconds inside a column: .*coerce_timestamps"
    ):
        read_files(spark, str(tmp_path / "x.parquet"), "ts")


def test_files_that_come_later_in_nanoseconds_are_told_with_what_to_write(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "rows"
    place.mkdir()
    source = live_source(spark, str(place), "ts", format="parquet", schema="ts TIMESTAMP, n BIGINT")
    times = pd.to_datetime(["2024-01-01"], utc=True).astype("datetime64[ns, UTC]")
    pd.DataFrame({"ts": times, "n": [1]}).to_parquet(place / "x.parquet")
    with pytest.raises(StreamingQueryException) as failed:
        read_all(source, tmp_path / "checkpoint")
    assert "coerce_timestamps='us'" in str(spark_failure(failed.value))
