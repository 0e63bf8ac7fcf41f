"""Where users say that things lie: a path or a URL, and never one taken for the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from weft import Engine
from weft.errors import UseError, WeftError
from weft.sinks.specs import sink_of
from weft.store.folder import Folder
from weft.store.location import Location


@pytest.mark.parametrize(
    ("text", "spark", "delta"),
    [
        ("s3://bucket/x", "s3a://bucket/x", "s3://bucket/x"),
        ("s3a://bucket/x/", "s3a://bucket/x", "s3://bucket/x"),
        ("s3n://bucket/x", "s3a://bucket/x", "s3://bucket/x"),
        ("gs://bucket/x", "gs://bucket/x", "gs://bucket/x"),
        ("hdfs://name:8020/x/y", "hdfs://name:8020/x/y", "hdfs://name:8020/x/y"),
        ("hdfs:///x", "hdfs:///x", "hdfs:///x"),
        ("abfss://box@account.dfs/x", "abfss://box@account.dfs/x", "abfss://box@account.dfs/x"),
    ],
)
def test_a_url_reaches_each_half_under_the_name_that_it_knows(text: str, spark: str, delta: str) -> None:
    location = Location.of(text)
    assert location.is_remote
    assert location.for_spark == spark
    assert location.for_delta == delta
    assert location.beneath("a b%2F").for_spark == f"{spark}/a b%2F"


@pytest.mark.parametrize("text", ["here", "./here", "a/b:c/d", "data:2024", "/tmp/a b", "/tmp/x://y", "file:///tmp/x"])
def test_a_path_is_a_path_whatever_it_holds(text: str) -> None:
    location = Location.of(text)
    assert not location.is_remote
    assert location.text == str(Path(text.removeprefix("file://")).absolute())
    assert location.for_spark == f"file://{location.text}"


@pytest.mark.parametrize("text", ["s3a:/bucket/x", "s3:bucket", "hdfs:/x", "ftp:/x", "S3A:/bucket"])
def test_what_is_nearly_a_url_is_refused_with_the_url(text: str) -> None:
    with pytest.raises(UseError, match=r"neither a path nor a URL: write [A-Za-z0-9]+://"):
        Location.of(text)


def test_a_url_without_bucket_with_a_password_or_with_options_is_refused_and_the_password_not_shown() -> None:
    with pytest.raises(UseError, match="write s3a://BUCKET/PATH"):
        Location.of("s3a:///x")
    with pytest.raises(UseError, match="holds a password") as told:
        Location.of("s3://me:hush@bucket/x")
    assert "hush" not in str(told.value)
    with pytest.raises(UseError, match="from the environment"):
        Location.of("s3://bucket/x?region=here")


@pytest.mark.parametrize("make", [Folder, lambda url: sink_of(f"parquet:{url}"), lambda url: sink_of(f"delta:{url}")])
def test_a_store_that_cannot_be_written_to_is_refused_with_those_that_can(make: object) -> None:
    with pytest.raises(UseError, match=r"ftp://host/x.*s3a://"):
        make("ftp://host/x")  # type: ignore[operator]


def test_an_engine_refuses_what_its_session_cannot_reach(spark: SparkSession) -> None:
    engine = Engine(spark)
    engine.stream("t", spark.sql("SELECT timestamp_seconds(id) AS ts, id AS n FROM range(3)"), "ts")
    engine.sql("SELECT sum(n) AS n FROM t GROUP BY window(ts, '1 hour')")
    told = r"s3://bucket/x: Spark cannot reach s3a:// .*say --packages org\.apache\.hadoop:hadoop-aws:3\."
    with pytest.raises(UseError, match=told):
        engine.run("s3://bucket/x")
    with pytest.raises(UseError, match=told):
        engine.start("s3://bucket/x", catalog="sqlite:///:memory:")


def test_a_store_that_does_not_answer_is_told_with_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(WeftError, match=r"hdfs://nowhere\.invalid.*cannot be reached") as told:
        Folder("hdfs://nowhere.invalid:1/x").exists()
    assert "hadoop classpath" in str(told.value)
