"""The engine on a stream: one Structured Streaming query for all queries, which may come and go while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from weft.catalog.status import JobState, Outage, QueryFigures, Status
from weft.errors import QueriesError, WeftError
from weft.job.patience import Patience
from weft.job.progress import Progress
from weft.job.tallies import Tallies
from weft.query.sparksql import parse_file
from weft.sources.source import LiveSource
from weft.spark.failures import JvmGoneError, jvm_is_gone
from weft.spark.live.job import Job
from weft.spark.live.planning import bind_all
from weft.spark.live.reading import STEP, Reading
from weft.spark.step import step_settings

FEW_SLICES = {"spark.sql.codegen.aggregate.map.twolevel.enabled": "true"}
"""A map task of a micro-batch has so few slices that they fit the small fast map (docs/decisions/0012)."""


@dataclass(frozen=True)
class Pace:
    """When a micro-batch begins, and when the stream ends."""

    trigger: str | None = None
    """How often, such as ``1 second``; as soon as the one before is done if not given."""
    available_now: bool = False
    """Only what is there at the start, then end."""
    drain: bool = False
    """After that, close all windows."""


class LiveEngine:
    """Answers many window queries over a running stream; made by :meth:`weft.Engine.start`.

    Answers go to the sinks when the watermark has reached their window's end. Everything that has to survive a crash
    lies in the checkpoint; an engine that is started again on it goes on where the last one was.
    """

    def __init__(self, job: Job, source: LiveSource, pace: Pace, patience: Patience) -> None:
        self.job = job
        self.stream = job.stream
        self.source = source
        self.pace = pace
        self.checkpoint = job.ledger.history.checkpoint
        self.catalog = job.registry.catalog
        self.progress = Progress()
        self.tallies = Tallies()
        job.listeners = [*job.listeners, self.tallies.note, self.progress.note]
        self._reading = Reading(self._begin, job.resume, self._check, patience)
        self._turn = threading.Lock()
        self._stopped = False
        self._error: BaseException | None = None
        self._batch_since: float | None = None
        self._tuned = False
        self._keeper = threading.Thread(target=self._keep, name="weft-stream", daemon=True)
        self._ended = threading.Event()

    # ----------------------------------------------------------------------------------------------------- running

    def start(self) -> LiveEngine:
        """Take up where the checkpoint is and begin."""
        self.job.lease.keep()
        try:
            self.job.recover()
            self.progress.recovered(self.job)
            if not self.job.last.drained:
                self._reading.start()
        except BaseException:
            self._close()
            raise
        self._keeper.start()
        return self

    def _begin(self) -> StreamingQuery:
        """Have Spark read the source, from where the checkpoint is."""
        self._tuned = False
        self.checkpoint.forget_unbegun(self.job.last.batch)
        writer = self.source.rows.writeStream.queryName(f"weft-{uuid4().hex[:8]}").foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", self.checkpoint.spark)
        if self.pace.available_now:
            writer = writer.trigger(availableNow=True)
        elif self.pace.trigger is not None:
            writer = writer.trigger(processingTime=self.pace.trigger)
        return writer.start()

    def _batch(self, rows: DataFrame, number: int) -> None:
        try:
            # outside of the turn: whoever stops the engine does not wait for a sink
            self.job.outbox.await_room(self._reading.stopping.is_set)
            with self._turn:
                if self._stopped:
                    # not a return: Spark would take the batch for done
                    raise WeftError(f"the engine was stopped before batch {number}")
                self._batch_since = time.time()
                self._tune(rows.sparkSession)
                self.job.process(rows, number)
        except BaseException as error:
            self._reading.fails(error)
            raise
        finally:
            self._batch_since = None
        self._reading.works()

    def _tune(self, spark: SparkSession) -> None:
        """Settings that suit the shared pass, in the session that Spark gives the stream."""
        if not self._tuned:
            tasks = {"spark.sql.shuffle.partitions": str(spark.sparkContext.defaultParallelism)}
            for key, value in {**step_settings(spark), **FEW_SLICES, **tasks}.items():
                spark.conf.set(key, value)
            self._tuned = True

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the stream ends, for ``timeout`` seconds at most; whether it has ended.

        A stream that takes only what is there ends when all sinks have taken its answers. Raises what stopped the
        stream if it did not end of its own accord.
        """
        until = None if timeout is None else time.monotonic() + timeout
        # in steps, so that signals are heard
        while not self._ended.wait(STEP if until is None else max(min(until - time.monotonic(), STEP), 0.0)):
            if until is not None and time.monotonic() >= until:
                return False
        if self._error is not None:
            raise self._error
        return True

    def await_delivered(self, timeout: float | None = None) -> bool:
        """Wait until every sink has taken all that is committed, for ``timeout`` seconds at most; whether they have."""
        return self.job.outbox.settle(self._ended.is_set, timeout)

    def _keep(self) -> None:
        """See the stream to its end: all read, windows closed if they are to be, answers taken."""
        try:
            if self._reading.query is not None:
                self._reading.run()
                if self.pace.available_now and self.pace.drain and not self._stopped:
                    with self._turn:
                        self.job.drain()
            if not self._reading.stopping.is_set():
                # Spark ends a query without a word when another one is started on its checkpoint in the same process
                self.job.lease.check()
            self.job.outbox.settle(self._reading.stopping.is_set)
        except BaseException as error:
            self._error = error
            self._error = self._told(error)
        finally:
            try:
                self._close()
            finally:
                self._ended.set()

    def _told(self, error: BaseException) -> BaseException:
        """The error that people are told, when Spark runs no more."""
        with suppress(Exception):  # where Java is gone, that fails in ways of its own
            self._reading.stop()
        if not isinstance(error, Exception) or not jvm_is_gone(error):
            return error
        self.job.trials.died()
        gone = JvmGoneError()
        gone.__cause__ = error
        return gone

    def _check(self) -> None:
        """Raise what ends the stream though Spark knows nothing of it."""
        self.job.outbox.raise_failure()
        if self.job.lease.lost is not None:
            raise self.job.lease.lost

    def look(self) -> None:
        """Decide about queries that were added, unless a batch runs, which does so itself."""
        if self.job.registry.is_reached() and self._turn.acquire(blocking=False):
            try:
                self.job.look()
            finally:
                self._turn.release()

    def stop(self) -> None:
        """Finish the batch that runs, commit it, and end; what a sink that is away has yet to take waits for it."""
        self._reading.stopping.set()
        with self._turn:
            self._stopped = True
        # a batch that begins now finds the turn free and is told; held, Spark would wait for it and it for us
        self._reading.stop()
        if self._keeper.ident is not None:
            self._keeper.join()

    def _close(self) -> None:
        self.job.outbox.close()
        self.job.lease.release()

    @property
    def recent_progress(self) -> list[Any]:
        """What Spark tells about the last micro-batches: rows, and how long each part took."""
        query = self._reading.query
        return [] if query is None else list(query.recentProgress)

    @property
    def is_drained(self) -> bool:
        """Whether all windows were closed for good."""
        return self.job.last.drained

    @property
    def is_active(self) -> bool:
        """Whether the stream runs."""
        # its thread may take a moment more to go
        return self._keeper.is_alive() and not self._ended.is_set()

    # ----------------------------------------------------------------------------------------------------- queries

    def sql(self, text: str) -> list[str]:
        """Add the queries of ``text`` to the running stream, all or none; they are answered from the next batch on.

        Raises
        ------
        QueriesError
            With every bad query, where in its text, what is wrong and what would be right.
        """
        columns = {self.stream.name: tuple(self.stream.rows.columns)}
        queries = parse_file(text, columns, taken=self.queries, functions=self.stream.functions)
        bound, errors = bind_all(self.stream, {query.name: f"-- name: {query.name}\n{query.text}" for query in queries})
        errors |= self.job.registry.shapes.refused(bound)
        if errors:
            raise QueriesError(list(errors.values()))
        return [entry.name for entry in self.catalog.add(text)]

    def drop(self, name: str) -> None:
        """Drop a query; it is not answered from the next batch on."""
        self.catalog.drop(name)

    def pause(self, name: str) -> None:
        """Leave a query out until it is resumed."""
        self.catalog.pause(name)

    def resume(self, name: str) -> None:
        """Answer a paused query again, as if it were new: from its first whole window."""
        self.catalog.resume(name)

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries that are answered, or will be from the next batch on."""
        return tuple(entry.name for entry in self.catalog.entries("pending", "active", "paused"))

    def query_figures(self) -> dict[str, QueryFigures]:
        """What is known of each query, by its name: answers, rows, seconds, state, lag."""
        return self.tallies.figures()

    def status(self) -> Status:
        """How the stream is."""
        outages = self.job.outages + self._reading.outages
        status = self.progress.status(self.job)
        return {
            **status,
            "outages": outages,
            "state": self._state(outages),
            "batch_since": self._batch_since,
        }

    def _state(self, outages: Sequence[Outage]) -> JobState:
        if self._error is not None:
            return "failed"
        if self.is_active:
            return "degraded" if outages else "running"
        return "drained" if self.is_drained else "stopped"
