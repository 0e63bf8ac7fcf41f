"""Spark's query over a source, begun anew after every outage of what it reads from: failed batches are replayed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import retry_if_exception

from weft.catalog.status import Outage
from weft.errors import WeftError
from weft.job.patience import Patience, Presence
from weft.spark.failures import jvm_is_gone, spark_failure
from weft.spark.outages import may_be_away, store_is_away

STEP = 0.5
"""Seconds between two looks at the query."""
SILENCE = 60.0
"""A source that has not said for so many seconds what there is to read is away."""
STEADY = 60.0
"""A query that ran for so many seconds has outlived the outage before it."""
ASKING, IDLE = "Getting offsets", "Waiting for"
"""How Spark begins to describe a query that asks its source what there is, and one that has nothing to do."""


class Reading:
    """Runs a streaming query until it ends of its own accord or is told to.

    Parameters
    ----------
    begin
        Starts the query from where its checkpoint is.
    resume
        Called before it is started again: a batch may have failed half-way.
    check
        Called again and again meanwhile; what it raises ends the query.
    patience
        For how long an outage is waited for.
    """

    def __init__(
        self,
        begin: Callable[[], StreamingQuery],
        resume: Callable[[], None],
        check: Callable[[], None],
        patience: Patience,
    ) -> None:
        self.query: StreamingQuery | None = None
        self.stopping = threading.Event()
        self._begin, self._resume, self._check, self._patience = begin, resume, check, patience
        meanwhile = "the stream goes on where it was when it is back"
        self._source, self._store = Presence("the source", meanwhile), Presence("the checkpoint's store", meanwhile)
        self._failure: BaseException | None = None
        self._works = False

    @property
    def outages(self) -> list[Outage]:
        """What is away."""
        return [outage for outage in (self._source.outage, self._store.outage) if outage is not None]

    def works(self) -> None:
        """Note that a batch was read and committed."""
        self._works = True
        self._back()

    def fails(self, error: BaseException) -> None:
        """Note why a batch could not be done: Spark tells it in its own words only."""
        self._failure = error

    def start(self) -> None:
        """Begin; what is plainly wrong with the query is raised here."""
        self.query = self._begin()

    def run(self) -> None:
        """See it to its end."""
        retrying = self._patience.retrying(self.stopping, retry_if_exception(self._is_one_outage))
        while not self.stopping.is_set():
            try:
                retrying(self._attempt)
                return
            except Exception as error:
                if self.stopping.is_set():
                    return
                if not _is_outage(error):
                    raise
                if not self._works:
                    raise WeftError(self._at_an_end(error)) from error

    def stop(self) -> None:
        """End it after the batch that runs, or at once if it waits for something."""
        self.stopping.set()
        if self.query is not None:
            self.query.stop()

    def _is_one_outage(self, error: BaseException) -> bool:
        """Whether the outage lasts: after one that ended, patience is as long as ever."""
        return _is_outage(error) and not self._works

    def _attempt(self) -> None:
        if self.query is None:
            self._resume()
            self.query = self._begin()
        self._works = False
        began = time.monotonic()
        try:
            self._await(self.query)
        except Exception as error:
            self._works = self._works or time.monotonic() - began > STEADY
            if _is_outage(error) and not self.stopping.is_set():
                self._lost(error)
                self.query = None
            raise

    def _await(self, query: StreamingQuery) -> None:
        asking_since: float | None = None
        try:
            while not query.awaitTermination(STEP):  # type: ignore[arg-type]  # whole seconds are not asked for
                self._check()
                asking_since = self._look(query, asking_since)
        except StreamingQueryException as error:
            failure, self._failure = self._failure or error, None
            raise failure from None

    def _look(self, query: StreamingQuery, asking_since: float | None) -> float | None:
        """Since when the source has been asked what there is, without an answer that was seen."""
        message = query.status["message"]
        if not message.startswith(ASKING):
            if message.startswith(IDLE):
                self._back()
            return None
        since = asking_since or time.monotonic()
        if time.monotonic() - since > SILENCE:
            self._source.lost(f"no answer for {time.monotonic() - since:.0f} s: {message}")
        return since

    def _lost(self, error: Exception) -> None:
        presence = self._store if store_is_away(error) else self._source
        presence.lost(spark_failure(error) or error)

    def _back(self) -> None:
        self._source.back()
        self._store.back()

    def _at_an_end(self, error: Exception) -> str:
        presence = self._store if store_is_away(error) else self._source
        said = spark_failure(error) or str(error)
        return f"{presence.what} has been away for longer than the patience of {self._patience.seconds:g} s: {said}"


def _is_outage(error: BaseException) -> bool:
    return not jvm_is_gone(error) and (may_be_away(error) or store_is_away(error))
