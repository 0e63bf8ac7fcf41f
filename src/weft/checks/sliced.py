"""What Spark computes of the samples: of every slice what an aggregate keeps, and of all rows its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.algebra.measure import Answered, Decoded, Measure
from weft.algebra.numbers import flatten
from weft.checks.calls_of import SampledCall
from weft.checks.merging import total
from weft.checks.samples import NAN, SLICES, sample
from weft.evaluate.columns import load, store

FINITE, ALL = SLICES, SLICES + 1
"""The numbers under which all rows stand once more: without those of the slice with a NaN, and with them."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Code for hundreds of aggregates takes longer to make than to do without."""


@dataclass(frozen=True)
class Sliced:
    """A row a slice, and two for all rows."""

    table: pa.Table

    @classmethod
    def of(cls, spark: SparkSession, calls: Sequence[SampledCall]) -> Sliced:
        """Have Spark compute all that these calls need, at once."""
        session = spark.newSession()
        for key, value in INTERPRETED.items():
            session.conf.set(key, value)
        rows = session.createDataFrame(sample())
        finite = rows.where(f"slice <> {NAN}").withColumn("slice", F.lit(FINITE))
        every = rows.unionByName(finite).unionByName(rows.withColumn("slice", F.lit(ALL)))
        texts = dict.fromkeys(text for call in calls for text in (*call.columns(), call.in_spark))
        return cls(_aggregated(every, list(texts)))

    def answer(self, call: SampledCall, over: int) -> Any:
        """What Spark answers."""
        return self._column(call.in_spark, [over])[0].as_py()

    def decoded(self, call: SampledCall, measure: Measure, slices: Sequence[int]) -> Decoded:
        """What a measure makes of slices."""
        return measure.decode(self.columns(call, measure, slices))

    def columns(self, call: SampledCall, measure: Measure, slices: Sequence[int]) -> list[pa.Array]:
        """What Spark computed for a measure of slices."""
        return [self._column(text, slices) for text in call.columns_of(measure)]

    def _column(self, text: str, slices: Sequence[int]) -> pa.Array:
        return flatten(self.table[text].take(pa.array(list(slices), pa.int64())))


def _aggregated(rows: DataFrame, texts: list[str]) -> pa.Table:
    grouped = rows.groupBy("slice").agg(*(F.expr(text).alias(f"c{number}") for number, text in enumerate(texts)))
    table = grouped.toArrow().sort_by("slice")
    return table.rename_columns(["slice", *texts])


def merged(decoded: Decoded) -> Decoded:
    """All rows of a measure as one."""
    values = tuple(np.empty(1, column.dtype) for column in decoded.values)
    store(values, 0, total(decoded.monoid, partials(decoded)))
    valid = None if decoded.valid is None else np.array([decoded.valid.sum()])
    return decoded.having(values, valid)


def answered(decoded: Decoded) -> Answered:
    """A merged measure as lowering takes it."""
    valid = None if decoded.valid is None else decoded.valid > 0
    return Answered(decoded.values, valid, decoded.dictionary, decoded.scale)


def partials(decoded: Decoded) -> list[Any]:
    """The rows of a measure, each as its monoid takes it."""
    return [load(decoded.values, row) for row in range(len(decoded.values[0]))]
