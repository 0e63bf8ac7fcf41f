"""Spark's Python workers: started early, and kept for some minutes after a run.

Spark ends workers that had nothing to do for a minute. New ones have to fill their memory again, which took a third of
the second half of a run of a thousand queries; so a run that follows soon finds the old ones.
"""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Thread

from pyspark.sql import SparkSession

JOBS = "weft keeps its workers"
"""The group of the small jobs that do it, as the Spark UI shows it."""
EVERY = 25.0
LONG = 600.0

MEMORY = {
    # page by page it would take longer to touch new memory than to fill it
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"
    # and what one query has freed, the next one uses: not given back in between
    f":glibc.malloc.mmap_threshold={2**32}:glibc.malloc.trim_threshold={2**32}",
    "MIMALLOC_ALLOW_LARGE_OS_PAGES": "1",
    "MIMALLOC_PURGE_DELAY": "-1",
}
"""How workers take memory. Where a system does not know the settings, they change nothing."""


def start_workers(spark: SparkSession) -> None:
    """Have Spark start its Python workers now: they load while queries are read and rows are sliced."""
    Thread(target=_use_workers, args=(spark,), name="weft-workers", daemon=True).start()


class Keeper(Thread):
    """Gives the workers of a session something small to do, again and again until some time after the last run."""

    def __init__(self, spark: SparkSession, every: float = EVERY, long: float = LONG) -> None:
        super().__init__(name="weft-keeper", daemon=True)
        self.spark, self.every = spark, every
        self.until = time.monotonic() + long
        self.ended = Event()

    def run(self) -> None:
        """Until the time is up, or the session is stopped."""
        while not self.ended.wait(self.every) and time.monotonic() < self.until:
            if not _use_workers(self.spark):
                break
        self.ended.set()


_keepers: dict[str, Keeper] = {}
"""By application: sessions of one context share its workers."""


def keep_workers(spark: SparkSession, every: float = EVERY, long: float = LONG) -> None:
    """Keep the workers of a session on this machine for some minutes from now; on a cluster they cost others."""
    if not (spark.sparkContext.master or "").startswith("local["):
        return
    application = spark.sparkContext.applicationId
    keeper = _keepers.get(application)
    if keeper is None or keeper.ended.is_set():
        _keepers[application] = keeper = Keeper(spark, every, long)
        keeper.start()
    keeper.until = time.monotonic() + long


def _use_workers(spark: SparkSession) -> bool:
    """A task for a worker; whether it could be done. Nothing is lost if not: the next step starts workers."""
    with suppress(Exception):
        spark.sparkContext.setJobGroup(JOBS, JOBS)
        spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()
        return True
    return False
