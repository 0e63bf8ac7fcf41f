"""A look at rows before they are cut: what only data can tell a planner.

A sample is looked at through hashes. Rows that are so few that this process would cut them itself are all brought, and
kept until it does: Spark reads them once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from weft.algebra.numbers import Array
from weft.optimize.sampled import Sampled, mixed
from weft.plan.cut_engine import CutEngine
from weft.plan.model import Grouping, Plan
from weft.spark.fetching import TooLargeError, brought
from weft.spark.kernel_cut import Projection, glimpse, glimpsed
from weft.step.cutting import Block, Cutter, MarkedRows, Marks
from weft.step.cutting_kernels import combined

SAMPLE_ROWS = 20_000


def look(plan: Plan, rows: DataFrame) -> list[Sampled]:
    """The sample, grouping by grouping."""
    marks = Marks(plan)
    seen = MarkedRows(marks, marks.wanted(brought(glimpsed(rows.limit(SAMPLE_ROWS), plan)).combine_chunks()))
    return [_sampled(grouping, seen, seen.numbers(glimpse(grouping.key_columns))) for grouping in plan.groupings]


class RowsAtHand:
    """The rows of a batch run, as far as they were brought to this process.

    Parameters
    ----------
    engine
        Who would cut the rows by a plan that is not finished.
    """

    def __init__(self, rows: DataFrame, engine: Callable[[Plan], CutEngine]) -> None:
        self._rows = rows
        self._engine = engine
        self._brought: tuple[Projection, pa.Table] | None = None

    def look(self, plan: Plan) -> list[Sampled]:
        """The sample, grouping by grouping; of all rows, where these would come here anyway."""
        if plan.groupings and self._engine(plan) == "driver":
            # a value that stops a query stops the run itself, which names it; a plan is made without
            with suppress(TooLargeError, PySparkException):
                cutter = Cutter(plan)
                some = self.projected(plan).slice(0, SAMPLE_ROWS).combine_chunks()
                block = Block(cutter, cutter.wanted(some))
                return [_sampled(grouping, block, _key_numbers(grouping, block)) for grouping in plan.groupings]
        return look(plan, self._rows)

    @property
    def are_here(self) -> bool:
        """Whether the rows were brought: then it is cheapest to cut them here, whatever more is known of them now."""
        return self._brought is not None

    def taken(self, plan: Plan) -> pa.Table:
        """All rows, as kernels want them; they are not kept here any longer."""
        rows = self.projected(plan)
        self._brought = None
        return rows

    def projected(self, plan: Plan) -> pa.Table:
        """All rows, as kernels want them."""
        projection = Projection.of(self._rows, plan)
        if self._brought is None or self._brought[0] != projection:
            self._brought = None
            self._brought = projection, brought(projection.over(self._rows))
        return self._brought[1]


def _key_numbers(grouping: Grouping, block: Block) -> Array:
    return combined([block.key(name)[1] for name in grouping.key_columns], len(block.rows)).numbers


def _sampled(grouping: Grouping, rows: MarkedRows, keys: Array) -> Sampled:
    starts, _ = rows.starts(grouping)
    signatures = [rows.signature(name, word)[0] for name, word in grouping.signatures]
    shards = mixed(signatures) if signatures else np.zeros(len(starts), np.int64)
    return Sampled(grouping, starts, shards, keys)
