"""Spark's Python workers: started early, and kept for some minutes after a run.

Spark ends workers that had nothing to do for a minute. New ones have to fill their memory again, which took a third of
the second half of a run of a thousand queries; so a run that follows soon finds the old ones.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Thread

import pyarrow as pa
from pyspark.sql import SparkSession

from weft.errors import WeftError

JOBS = "weft keeps its workers"
"""The group of the small jobs that do it, as the Spark UI shows it."""
EVERY = 25.0
LONG = 600.0

MEMORY = {
    # page by page it would take longer to touch new memory than to fill it
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"
    # and what one query has freed, the next one uses: not given back in between
    f":glibc.malloc.mmap_threshold={2**32}:glibc.malloc.trim_threshold={2**32}",
    # Arrow too, so that what either has freed is used by both: a tenth less at the peak
    "ARROW_DEFAULT_MEMORY_POOL": "system",
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
        # as a step's tasks do it, not by SQL: for a function in SQL Spark sets one variable more, and what has other
        # variables has workers of its own
        spark.sparkContext.parallelize([0], 1).mapPartitions(list).collect()
        return True
    return False


def use_this_python(spark: SparkSession) -> None:
    """Have the workers of a session that somebody else made run a Python that has Weft, or say what is wrong.

    Spark takes ``python3`` from the path, which is another one where an environment is not activated. On this machine
    it is put right, unless the user named one; what others have is tried once.
    """
    context = spark.sparkContext
    is_ours = shutil.which(context.pythonExec) == sys.executable
    local = (context.master or "").startswith("local")
    if local and not is_ours and not os.environ.get("PYSPARK_PYTHON"):
        context.pythonExec = sys.executable
        is_ours = True
    if (local and is_ours) or context.applicationId in _proven:
        return
    try:
        prove_workers(spark)
    except Exception as error:
        trouble = worker_trouble(error, spark)
        if trouble is None:
            raise
        raise WeftError(trouble) from error


_proven: set[str] = set()
"""Applications whose workers were seen to work."""


def prove_workers(spark: SparkSession) -> None:
    """Have a worker load what tasks need."""
    spark.range(1).mapInArrow(load_all, "id bigint").collect()
    _proven.add(spark.sparkContext.applicationId)


def load_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task that imports what the tasks of a step do."""
    import weft.spark.step  # noqa: F401

    yield from batches


_LACKS = re.compile(r"No module named '?([\w.]+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_OTHER = re.compile(r"\[PYTHON_VERSION_MISMATCH\][^\n]*?version: (\S+) than[^\n]*?: (\S+?),")


def worker_trouble(error: Exception, spark: SparkSession) -> str | None:
    """In a sentence, why the workers' Python cannot do our tasks; None if it is something else."""
    said = str(error)
    program = spark.sparkContext.pythonExec
    right = "name one by PYSPARK_PYTHON that is on every machine and has Weft, in the version of Python that runs here"
    if found := _NO_PROGRAM.search(said):
        return f"the workers have no Python {found[1]}: {right}"
    if found := _LACKS.search(said):
        return f"the workers' Python, {program}, lacks the package {found[1].partition('.')[0]}: {right}"
    if found := _OTHER.search(said):
        return f"the workers' Python, {program}, is {found[1]}, and here is {found[2]}: {right}"
    return None
