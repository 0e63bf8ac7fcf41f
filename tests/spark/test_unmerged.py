"""Where rows come in the order of time Spark aggregates once, and nobody sees a difference."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

import weft
from weft.spark import step as step_module
from weft.spark.rows import slices
from weft.spark.step import tuned
from weft.spark.unmerged import unmerged

QUERIES = """
CREATE VIEW plain AS
  SELECT k, window.start AS s, count(*) AS n, sum(v) AS t, avg(d) AS m, min(d) AS lo, max(v) AS hi, stddev(d) AS sd,
         covar_samp(d, v) AS c, count(v) AS present
  FROM rows GROUP BY k, window(ts, '30 seconds', '10 seconds');
CREATE VIEW filtered AS
  SELECT window, sum(v) FILTER (WHERE d > 3) AS t, count_if(v > 5) AS n FROM rows WHERE v % 3 = 1
  GROUP BY window(ts, '35 seconds', '10 seconds');
CREATE VIEW one AS SELECT k, window, max(d) AS d FROM rows WHERE v > 10 GROUP BY k, window(ts, '1 minute');
CREATE VIEW two AS SELECT k, window, max(d) AS d FROM rows WHERE v > 20 GROUP BY k, window(ts, '1 minute');
CREATE VIEW three AS SELECT k, window, max(d) AS d FROM rows WHERE v > 30 GROUP BY k, window(ts, '1 minute');
"""
NAMES = ("plain", "filtered", "one", "two", "three")


def ordered(spark: Any) -> Any:
    """Rows in the order of time over four tasks, which share the slices at their borders."""
    return spark.range(0, 4003, 1, 4).selectExpr(
        "timestamp_micros(id * 700000) AS ts",
        "CASE id % 5 WHEN 4 THEN NULL ELSE concat('k', id % 5) END AS k",
        "CASE WHEN id % 11 <> 0 THEN CAST(id % 41 AS INT) END AS v",
        "CASE WHEN id % 7 <> 0 THEN id * 0.25D END AS d",
    )


@pytest.fixture
def engine(spark: Any) -> weft.Engine:
    engine = weft.Engine(spark)
    engine.stream("rows", ordered(spark), event_time="ts")
    engine.sql(QUERIES)
    return engine


def expected(spark: Any) -> list[Any]:
    ordered(spark).createOrReplaceTempView("rows")
    statements = [part.split(" AS", 1)[1] for part in QUERIES.split("CREATE VIEW ")[1:]]
    return [sorted(map(approximately, spark.sql(text.rstrip("\n;")).collect()), key=str) for text in statements]


def approximately(row: Any) -> tuple[Any, ...]:
    return tuple(float(f"{value:.9g}") if isinstance(value, float) else value for value in row)


def answered(engine: weft.Engine) -> list[Any]:
    answers = engine.run()
    assert not answers.failures
    assert answers.totals.rows_read == 4003
    return [sorted(map(approximately, answers[name].collect()), key=str) for name in NAMES]


def test_slices_that_two_tasks_saw_come_twice_and_the_answers_are_those_of_spark(
    spark: Any, engine: weft.Engine
) -> None:
    (plan,) = engine.plans()
    assert plan.ordered
    with tuned(spark), slices(ordered(spark), plan) as cut:
        assert cut.planned is not None
        assert cut.frame.count() > cut.planned.count()
    assert answered(engine) == expected(spark)


def test_a_bucket_that_is_too_large_is_answered_part_by_part(
    spark: Any, engine: weft.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_module, "AT_ONCE", 200)
    engine.cut = "jvm"
    answers = engine.run()
    assert max(len(outcome.files) for outcome in answers._staged.outcomes.values()) > 2
    assert answered(engine) == expected(spark)


@pytest.mark.parametrize("aggregate", ["sum(CAST(v AS DECIMAL(9, 2)))", "skewness(d)"])
def test_buffers_that_cannot_be_read_are_merged_by_spark(spark: Any, aggregate: str) -> None:
    with tuned(spark):
        assert unmerged(ordered(spark).groupBy("v").agg(F.expr(f"{aggregate} AS a")), [aggregate]) is None


def test_rows_in_no_order_are_merged_by_spark(spark: Any) -> None:
    engine = weft.Engine(spark)
    engine.stream("rows", ordered(spark).orderBy(F.xxhash64("ts")), event_time="ts")
    engine.sql(QUERIES)
    (plan,) = engine.plans()
    assert not plan.ordered
