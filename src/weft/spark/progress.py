"""How far Spark is, for people who wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

Report = Callable[[int, int], object]
"""Told how many tasks are done, of how many that are known so far."""


@contextmanager
def watched(spark: SparkSession, report: Report, every: float = 0.2) -> Iterator[None]:
    """Report the tasks that finish while the block runs."""
    stop = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    seen: dict[int, tuple[int, int]] = {}

    def look() -> None:
        while not stop.wait(every):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    seen[stage] = (info.numCompletedTasks, info.numTasks)
            active = set(tracker.getActiveStageIds())
            done = sum(of if stage not in active else completed for stage, (completed, of) in seen.items())
            report(done, sum(of for _, of in seen.values()))

    thread = threading.Thread(target=look, name="weft-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
