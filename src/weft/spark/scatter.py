"""Slices that stay with the executors: shuffled to their buckets once, then worked on where they are.

The shuffle is run as a job of its own, which ends when all rows are read: only then is the watermark known by which the
slices are answered. What comes after reads its files; nothing is held in memory in between, and what an executor takes
with it when it is lost, Spark makes again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame

from weft.spark.fetching import PartitionTask, Plan, worked
from weft.spark.reused_plans import ReusablePlan
from weft.step.arriving import Arrival

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Scattered:
    """The slices of a batch in their buckets."""

    frame: DataFrame
    exchange: Plan
    """The shuffle, which has run."""
    arrival: Arrival
    """How slices come to a task."""

    @classmethod
    def run(cls, frame: DataFrame, arrival: Arrival, exchange: Plan | None = None) -> Scattered:
        """Have all slices made, by the frame's own shuffle or by another of its kind, and wait for it."""
        exchange = exchange or frame._jdf.queryExecution().executedPlan()
        jvm: Any = frame.sparkSession.sparkContext._jvm
        forever = jvm.scala.concurrent.duration.Duration.Inf()
        with unwrap_spark_exception():
            jvm.org.apache.spark.util.ThreadUtils.awaitResult(exchange.mapOutputStatisticsFuture(), forever)
        return cls(frame, exchange, arrival)

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
    arrival: Arrival
    again: ReusablePlan

    @classmethod
    def of(cls, frame: DataFrame, arrival: Arrival) -> ReusableShuffle | None:
        """The frame, if its plan can be run again."""
        again = ReusablePlan.of(frame._jdf.queryExecution().executedPlan())
        return None if again is None else cls(frame, arrival, again)

    def collect(self, rdd: Any) -> Scattered:
        """Other rows in their buckets."""
        return Scattered.run(self.frame, self.arrival, self.again.over(rdd))
