"""Python workers outlive a run for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from pyspark.sql import SparkSession

from weft.spark.workers import JOBS, Keeper, keep_workers


def process_ids(spark: SparkSession) -> set[int]:
    def own(rows: Iterable[int]) -> Iterator[int]:
        import os

        for _ in rows:  # read to the end: a worker that leaves rows is not used again
            yield os.getpid()

    return set(spark.sparkContext.parallelize([0], 1).mapPartitions(own).collect())


def small_jobs(spark: SparkSession) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(JOBS))


def test_workers_have_something_to_do_until_the_time_is_up(spark: SparkSession) -> None:
    before = small_jobs(spark)
    keeper = Keeper(spark, every=0.05, long=0.6)
    keeper.start()
    assert keeper.ended.wait(60)
    assert small_jobs(spark) > before


def test_a_keeper_ends_with_its_session(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("stopped")

    keeper = Keeper(spark, every=0.01, long=60)
    monkeypatch.setattr(type(spark.sparkContext), "parallelize", refuse)
    keeper.start()
    assert keeper.ended.wait(10)


def test_sessions_of_one_context_have_one_keeper(spark: SparkSession) -> None:
    for session in (spark, spark.newSession(), spark):
        keep_workers(session, every=60, long=1)
    keepers = [thread for thread in threading.enumerate() if isinstance(thread, Keeper)]
    assert len([keeper for keeper in keepers if not keeper.ended.is_set()]) == 1


@pytest.mark.long
def test_the_same_workers_after_more_than_a_minute(spark: SparkSession) -> None:
    before = process_ids(spark)
    keep_workers(spark, every=20, long=200)
    time.sleep(100)
    assert process_ids(spark) <= before
