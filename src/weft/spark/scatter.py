"""Slices that stay with the executors: shuffled to their buckets once, then worked on where they are.

The shuffle is run as a job of its own, which ends when all rows are read: only then is the watermark known by which the
slices are answered. What comes after reads its files; nothing is held in memory in between, and what an executor takes
with it when it is lost, Spark makes again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame

from weft.spark.fetching import PartitionTask, Plan, arrow_schema, worked
from weft.spark.reused_plans import ReusablePlan

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Scattered:
    """The slices of a batch in their buckets."""

    frame: DataFrame
    exchange: Plan
    """The shuffle, which has run."""

    @classmethod
    def run(cls, frame: DataFrame, exchange: Plan | None = None) -> Scattered:
        """Have all slices made, by the frame's own shuffle or by another of its kind, and wait for it."""
        exchange = exchange or frame._jdf.queryExecution().executedPlan()
        jvm: Any = frame.sparkSession.sparkContext._jvm
        forever = jvm.scala.concurrent.duration.Duration.Inf()
        with unwrap_spark_exception():
            jvm.org.apache.spark.util.ThreadUtils.awaitResult(exchange.mapOutputStatisticsFuture(), forever)
        return cls(frame, exchange)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the slices as they come to a task."""
        return arrow_schema(self.frame)

    def map(self, task: PartitionTask[Outcome]) -> list[Outcome]:
        """Run a task a bucket, also where it has no slices, on the executors."""
        return worked(self.frame, self.exchange, task)

    def forget(self) -> None:
        """Have the shuffle's files deleted now; Spark would wait until Java collects its garbage."""
        cleaner = self.frame.sparkSession.sparkContext._jsc.sc().cleaner()
        if cleaner.isDefined():
            cleaner.get().doCleanupShuffle(self.exchange.shuffleDependency().shuffleId(), False)


@dataclass(frozen=True)
class ReusableShuffle:
    """A shuffle whose plan is run on other rows, again and again."""

    frame: DataFrame
    again: ReusablePlan

    @classmethod
    def of(cls, frame: DataFrame) -> ReusableShuffle | None:
        """The frame, if its plan can be run again."""
        again = ReusablePlan.of(frame._jdf.queryExecution().executedPlan())
        return None if again is None else cls(frame, again)

    def collect(self, rdd: Any) -> Scattered:
        """Other rows in their buckets."""
        return Scattered.run(self.frame, self.again.over(rdd))
