"""A sample of the rows, looked at through hashes: what only data can tell a planner."""

from __future__ import annotations

import numpy as np
from pyspark.sql import DataFrame

from weft.optimize.sampled import Sampled, mixed
from weft.plan.model import Grouping, Plan
from weft.spark.fetching import brought
from weft.spark.kernel_cut import glimpse, glimpsed
from weft.step.cutting import MarkedRows, Marks

SAMPLE_ROWS = 20_000


def look(plan: Plan, rows: DataFrame) -> list[Sampled]:
    """The sample, grouping by grouping."""
    marks = Marks(plan)
    seen = MarkedRows(marks, marks.wanted(brought(glimpsed(rows.limit(SAMPLE_ROWS), plan)).combine_chunks()))
    return [_sampled(grouping, seen) for grouping in plan.groupings]


def _sampled(grouping: Grouping, rows: MarkedRows) -> Sampled:
    starts, _ = rows.starts(grouping)
    signatures = [rows.signature(name, word)[0] for name, word in grouping.signatures]
    shards = mixed(signatures) if signatures else np.zeros(len(starts), np.int64)
    return Sampled(grouping, starts, shards, rows.numbers(glimpse(grouping.key_columns)))
