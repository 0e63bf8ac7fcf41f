"""A sample of the rows, looked at through hashes: what only data can tell a planner."""

from __future__ import annotations

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.optimize.sampled import Sampled
from weft.plan.model import Plan
from weft.spark.fetching import brought
from weft.spark.rows import prepare

SAMPLE_ROWS = 20_000


def look(plan: Plan, rows: DataFrame) -> list[Sampled]:
    """The sample, grouping by grouping."""
    columns = []
    for number, grouping in enumerate(plan.groupings):
        shards = [name for name, _ in grouping.signatures]
        columns += [
            F.col(grouping.slice_column).alias(f"starts{number}"),
            F.xxhash64(F.lit(0), *shards).alias(f"shards{number}"),
            F.xxhash64(F.lit(0), *grouping.key_columns).alias(f"keys{number}"),
        ]
    found = brought(prepare(rows.limit(SAMPLE_ROWS), plan).select(*columns))
    arrays = [np.asarray(found.column(name).combine_chunks()) for name in found.column_names]
    parts = [arrays[at : at + 3] for at in range(0, len(arrays), 3)]
    return [Sampled(grouping, *part) for grouping, part in zip(plan.groupings, parts, strict=True)]
