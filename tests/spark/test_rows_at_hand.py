"""Rows that this process cuts are read once: the planner looks at what was brought."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from weft import Engine
from weft.spark.sample import look

pytestmark = pytest.mark.spark
QUERIES = (
    "SELECT window.start AS w, k, sum(x) AS s FROM t GROUP BY window(ts, '10 minutes', '4 minutes'), k",
    "SELECT window.start AS w, j, max(x) AS h FROM t WHERE x % 3 = 0 GROUP BY window(ts, '7 minutes'), j",
    "SELECT window.start AS w, count(*) AS n FROM t WHERE k = 'k1' GROUP BY window(ts, '5 minutes')",
)


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    """Some with no time, keys that are NULL."""
    return spark.range(3000).selectExpr(
        "CASE WHEN id % 97 > 0 THEN timestamp_seconds(id * 11) END AS ts",
        "CASE WHEN id % 7 > 0 THEN concat('k', id % 4) END AS k",
        "id % 5 AS j",
        "id AS x",
    )


def engine_over(spark: SparkSession, rows: DataFrame, cut: str) -> Engine:
    """An engine with the queries."""
    engine = Engine(spark, cut=cut).stream("t", rows, event_time="ts")  # type: ignore[arg-type]
    for number, query in enumerate(QUERIES):
        engine.sql(f"CREATE TEMPORARY VIEW q{number} AS {query}")
    return engine


def test_what_is_seen_of_brought_rows_is_what_a_sample_shows(spark: SparkSession, rows: DataFrame) -> None:
    """Slices, shards and keys, grouping by grouping."""
    engine = engine_over(spark, rows, "driver")
    ((stream, plan),) = engine._planned()
    at_hand = engine._at_hand(stream)
    brought, sampled = at_hand.look(plan), look(plan, rows)
    assert len(brought) == len(plan.groupings) > 1
    for one, other in zip(brought, sampled, strict=True):
        assert (one.slices, one.pieces, one.seen) == (other.slices, other.pieces, other.seen)
    assert at_hand.projected(plan) is at_hand.projected(plan)


@pytest.mark.parametrize("cut", ["driver", "workers"])
def test_rows_that_are_cut_here_are_read_once(spark: SparkSession, tmp_path: Path, cut: str, rows: DataFrame) -> None:
    """A look at a sample is a job of its own where others cut."""
    path = str(tmp_path / "rows")
    rows.write.parquet(path)
    engine = engine_over(spark, spark.read.parquet(path), cut)
    group = uuid4().hex
    spark.sparkContext.setJobGroup(group, "a run")
    try:
        engine.run()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    assert (len(jobs) == 1) == (cut == "driver")
