"""Slices that stay with the executors: shuffled to their buckets once, then worked on where they are.

The shuffle is run as a job of its own, which ends when all rows are read: only then is the watermark known by which the
slices are answered. What comes after reads its files; nothing is held in memory in between, and what an executor takes
with it when it is lost, Spark makes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import RDD
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame

from weft.spark.fetching import Plan, arrow_schema
from weft.spark.live.refeed import Again

Outcome = TypeVar("Outcome")
BucketTask = Callable[[int, Iterable[bytes]], Iterable[Outcome]]
"""What is done with the slices of one bucket, which come as batches of Arrow."""


@dataclass(frozen=True)
class Scattered:
    """The slices of a batch in their buckets."""

    frame: DataFrame
    exchange: Plan
    """The shuffle, which has run."""

    @classmethod
    def run(cls, frame: DataFrame, exchange: Plan) -> Scattered:
        """Have all slices made, and wait for it."""
        jvm: Any = frame.sparkSession.sparkContext._jvm
        forever = jvm.scala.concurrent.duration.Duration.Inf()
        with unwrap_spark_exception():
            jvm.org.apache.spark.util.ThreadUtils.awaitResult(exchange.mapOutputStatisticsFuture(), forever)
        return cls(frame, exchange)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the slices as they come to a task."""
        return arrow_schema(self.frame)

    def map(self, task: BucketTask[Outcome]) -> list[Outcome]:
        """Run a task a bucket, also where it has no slices, on the executors."""
        batches = self.frame._jdf.toArrowBatchRdd(self.exchange).toJavaRDD()
        rdd: RDD[bytes] = RDD(batches, self.frame.sparkSession.sparkContext, NoOpSerializer())
        return rdd.mapPartitionsWithIndex(task).collect()

    def forget(self) -> None:
        """Have the shuffle's files deleted now; Spark would wait until Java collects its garbage."""
        cleaner = self.frame.sparkSession.sparkContext._jsc.sc().cleaner()
        if cleaner.isDefined():
            cleaner.get().doCleanupShuffle(self.exchange.shuffleDependency().shuffleId(), False)


@dataclass(frozen=True)
class Scatter:
    """A shuffle whose plan is run on other rows, again and again."""

    frame: DataFrame
    again: Again

    @classmethod
    def of(cls, frame: DataFrame) -> Scatter | None:
        """The frame, if its plan can be run again."""
        again = Again.of(frame._jdf.queryExecution().executedPlan())
        return None if again is None else cls(frame, again)

    def collect(self, rdd: Any) -> Scattered:
        """Other rows in their buckets."""
        return Scattered.run(self.frame, self.again.over(rdd))
