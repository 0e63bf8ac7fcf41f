"""Rows are counted on their way, once each, however many aggregations read them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import functions as F

from weft import Engine
from weft.spark.fetching import brought
from weft.spark.rows import slices
from weft.spark.step import READ, tuned

HASHED_AND_SORTED = """
SELECT k, window.start, sum(v) AS total FROM s GROUP BY k, window(ts, '10 seconds');
SELECT k, v % 2 AS odd, window.start, max(name) AS name FROM s GROUP BY k, v % 2, window(ts, '10 seconds');
"""
ROWS = 12


def test_rows_that_two_stages_read_in_parts_are_counted_once(spark):
    """Of stages that share rows, Spark tells what the last one read itself: here one of two partitions."""
    instants = pa.array([at * 1_000_000 for at in range(ROWS)], pa.timestamp("us", tz="UTC"))
    columns = {"ts": instants, "k": ["a", "b"] * 6, "v": list(range(ROWS)), "name": ["n"] * ROWS}
    rows = spark.createDataFrame(pa.table(columns)).repartition(2)
    engine = Engine(spark).stream("s", rows, "ts")
    engine.sql(HASHED_AND_SORTED)
    (plan,) = engine.plans()
    assert {grouping.hashed for grouping in plan.groupings} == {True, False}
    watched = rows.observe(READ, F.count(F.lit(1)).alias("rows"))
    with tuned(spark), slices(watched, plan) as cut:

        def run() -> pa.Table:
            cut.shared.take(1)  # a stage that needs one partition only, before one that needs both
            return brought(cut.frame)

        made, counted = cut.counted(cut.frame, run, READ)
    assert len(made)
    assert counted == {"rows": ROWS}
