"""Values that never change have no spread, exactly, however their slices' sums were rounded."""

from __future__ import annotations

import datetime
import math

import pyarrow as pa
import pytest

from weft import Engine

QUERY = """
SELECT k, window.start AS s, corr(x, v) AS c, regr_slope(v, x) AS slope, regr_r2(x, v) AS r2, skewness(x) AS skew,
  kurtosis(x) AS kurt, var_pop(x) AS spread
FROM t GROUP BY k, window(ts, '10 minutes', '1 minute')
"""
BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def test_a_slope_or_correlation_of_a_constant_is_null_as_in_spark(spark):
    instants = [BEGIN + datetime.timedelta(seconds=second) for second in range(1800)]
    # minutes of very different numbers of rows, so that the sums of their slices are rounded differently
    chosen = [instant for at, instant in enumerate(instants) for _ in range(1 + 37 * ((at // 60) % 3))]
    rows = pa.table(
        {
            "ts": pa.array(chosen, pa.timestamp("us", tz="UTC")),
            "k": ["a"] * len(chosen),
            "x": [0.1] * len(chosen),
            "v": [float(at % 97) for at in range(len(chosen))],
        }
    )
    frame = spark.createDataFrame(rows)
    frame.createOrReplaceTempView("t")
    (name,) = (engine := Engine(spark).stream("t", frame, "ts")).sql(QUERY)
    ours = engine.run()[name].orderBy("s").collect()
    theirs = spark.sql(QUERY).orderBy("s").collect()
    assert [row["s"] for row in ours] == [row["s"] for row in theirs]
    for mine, spark_s in zip(ours, theirs, strict=True):
        assert (mine["c"], mine["slope"], mine["skew"], mine["kurt"], mine["spread"]) == (None, None, None, None, 0.0)
        assert (spark_s["c"], spark_s["slope"], spark_s["spread"]) == (None, None, 0.0)
        assert mine["r2"] == spark_s["r2"]


def test_a_correlation_with_a_constant_is_null_also_if_the_other_side_is_not_finite(spark):
    values = [6.7, math.nan, math.inf, 1.0, math.nan, math.nan]
    rows = pa.table(
        {
            "ts": pa.array([BEGIN + datetime.timedelta(minutes=at // 2) for at in range(6)], pa.timestamp("us", "UTC")),
            "x": values,
            "v": [-2.7e9] * 6,
        }
    )
    frame = spark.createDataFrame(rows)
    frame.createOrReplaceTempView("t")
    query = "SELECT window.start AS s, corr(x, v - 1) AS c, corr(v, x) AS d FROM t GROUP BY window(ts, '1 minute')"
    (name,) = (engine := Engine(spark).stream("t", frame, "ts")).sql(query)
    assert sorted(engine.run()[name].collect()) == sorted(spark.sql(query).collect())
    assert [row["c"] for row in spark.sql(query).collect()] == [None, None, None]


@pytest.mark.parametrize("cut", ["jvm", "driver"])
def test_a_covariance_of_values_that_are_not_finite_is_nan_whatever_row_comes_first(spark, cut):
    values = [5.0, math.inf, 3.0, math.inf, 7.0, 2.0]
    rows = pa.table(
        {
            "ts": pa.array([BEGIN + datetime.timedelta(seconds=at) for at in range(6)], pa.timestamp("us", "UTC")),
            "x": values,
            "v": [8.0, 3.0, -4.0, 6.0, 1.0, 0.5],
        }
    )
    frame = spark.createDataFrame(rows).coalesce(1)
    frame.createOrReplaceTempView("t")
    query = "SELECT window.start AS s, covar_samp(v, x) AS c FROM t GROUP BY window(ts, '1 minute')"
    (name,) = (engine := Engine(spark, cut=cut).stream("t", frame, "ts")).sql(query)
    assert [math.isnan(row["c"]) for row in (*engine.run()[name].collect(), *spark.sql(query).collect())] == [True] * 2
