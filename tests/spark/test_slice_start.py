"""Where a row's slice starts, as Spark computes it."""

from __future__ import annotations

import random

from pyspark.sql import SparkSession

from weft.slicing.progression import Progression
from weft.spark.rows import slice_start

FAR = 2**62


def test_slices_start_at_the_last_edge_of_any_progression_before_and_after_1970(spark: SparkSession) -> None:
    rnd = random.Random(5)
    for _ in range(12):
        steps = rnd.sample(range(1, 40), rnd.randint(1, 4))
        edges = [Progression(step, rnd.randrange(step)) for step in steps for _ in range(rnd.randint(1, 3))]
        times = [-FAR, -1, 0, 1, FAR, *(rnd.randint(-500, 500) for _ in range(60))]
        rows = spark.createDataFrame([(time,) for time in times], "t BIGINT")
        found = [row.start for row in rows.selectExpr(f"{slice_start('t', edges)} AS start").collect()]
        assert found == [max(time - (time - edge.offset) % edge.step for edge in edges) for time in times], edges
