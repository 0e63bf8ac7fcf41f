"""A cluster that does not answer, or gives nothing to work with, ends with the reason instead of a silence.

Spark waits for ever for executors, and says so only in its log. So the master is called before Spark starts; then the
first task has to end well; and jobs that wait without any executor are cancelled, whenever that is. How long they may
wait is ``spark.weft.executorTimeout``, 60 seconds unless it is set.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from threading import Thread

from pyspark.sql import SparkSession

from weft.errors import WeftError
from weft.spark.failures import spark_failure
from weft.spark.workers import prove_workers, worker_trouble

TIMEOUT = "spark.weft.executorTimeout"
DEFAULT = "60s"
LOOK = 1.0
"""Seconds between two looks."""
CALL = 10.0
"""Seconds that a master has to take a call."""


def knock(master: str) -> None:
    """See that somebody listens at a ``spark://`` master; of several, at one of them."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, colon, port = address.rpartition(":")
        if not (host and colon and port.isdigit()):
            raise WeftError(f"{master} is no Spark master: write spark://HOST:PORT")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CALL):
                return
        except OSError as error:
            reasons.append(f"{address}: {error.strerror or error}")
    raise WeftError(f"no Spark master answers at {master} ({'; '.join(reasons)}): is it running, and reachable?")


class ExecutorWatch(Thread):
    """Cancels jobs that have been waiting too long in an application without executors."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(name="weft-executors", daemon=True)
        self.context = spark.sparkContext
        conf = self.context.getConf()
        self.address = conf.get("spark.driver.host")
        seconds = self.context._jvm.org.apache.spark.network.util.JavaUtils.timeStringAsSec  # type: ignore[union-attr]
        self.timeout = float(seconds(conf.get(TIMEOUT, DEFAULT)))

    def run(self) -> None:
        """Until the application ends."""
        waiting: float | None = None
        with suppress(Exception):  # a context that was stopped answers nothing
            while not self.context._jsc.sc().isStopped():
                time.sleep(LOOK)
                jobs = self.context.statusTracker().getActiveJobsIds()
                if not jobs or self.executors():
                    waiting = None
                    continue
                waiting = waiting or time.monotonic()
                if time.monotonic() - waiting >= self.timeout:
                    for job in jobs:
                        self.context._jsc.sc().cancelJob(job, self.reason())

    def executors(self) -> int:
        """How many are there; the driver counts as one in Spark's list."""
        return int(self.context._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def reason(self) -> str:
        """Why jobs are cancelled, in a sentence."""
        lost = self.lost()
        return (
            f"{self.context.master} had no executor for {self.timeout:g} s"
            + (f", after {len(lost)} were lost ({lost[-1]})" if lost else "")
            + ": are there workers with free cores and memory, and can they reach this driver at "
            f"{self.address}? ({TIMEOUT} sets how long to wait)"
        )

    def lost(self) -> list[str]:
        """Why executors went that there were."""
        known = self.context._jsc.sc().statusStore().executorList(False)
        found = (known.apply(number) for number in range(known.size()))
        gone = (executor.removeReason() for executor in found if not executor.isActive())
        return [
            str(reason.get()).strip().splitlines()[0] if reason.isDefined() else "no reason given" for reason in gone
        ]


def watch_executors(spark: SparkSession) -> None:
    """Have jobs of a cluster that lack executors for too long end with the reason."""
    ExecutorWatch(spark).start()


def await_executors(spark: SparkSession) -> None:
    """See that a first task ends well: there is an executor, and its Python can run ours."""
    try:
        prove_workers(spark)
    except Exception as error:
        failure = spark_failure(error)
        trouble = worker_trouble(error, spark) or (failure and in_words(failure))
        if trouble is None:
            raise
        master = spark.sparkContext.master
        spark.stop()
        raise WeftError(f"{master} cannot be worked on: {trouble}") from error


def in_words(failure: str) -> str:
    """What Spark said of a cluster, with what it comes from where that is known."""
    if "Master removed our application" in failure:
        return "its executors ended as soon as they began, again and again: the workers' logs tell why"
    if "stopped SparkContext" in failure:
        return "it is no Spark master, or the executors ended as soon as they began, again and again"
    return failure.partition("cancelled ")[2] or failure
