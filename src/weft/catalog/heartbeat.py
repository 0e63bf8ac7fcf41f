"""A job's status, told again and again: also while a long batch runs, the catalog shows that the job lives."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from weft.catalog.catalog import Catalog
from weft.catalog.status import JobState, QueryFigures, Status
from weft.errors import WeftError

LOG = logging.getLogger("weft.catalog")
FIGURES_EVERY = 5
"""Beats between two words about single queries."""


class Heartbeat:
    """Puts the latest status into the catalog every second, from a thread of its own.

    Leaving the block says how the job ended: ``failed`` after an exception, else ``stopped`` unless a last status said
    ``drained``. A catalog that cannot be reached for a while does not stop the job.
    """

    def __init__(self, catalog: Catalog, status: Status, every: float = 1.0) -> None:
        self._catalog = catalog
        self._status = status
        self._every = every
        self._queries: Callable[[], Mapping[str, QueryFigures]] | None = None
        self._told: int | None = None
        """The batch whose figures of queries the catalog has."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="weft-heartbeat", daemon=True)

    @property
    def status(self) -> Status:
        """What was said last."""
        return self._status

    def say(self, status: Status) -> None:
        """Take the place of what was said before."""
        self._status = status

    @property
    def figures(self) -> Mapping[str, QueryFigures]:
        """What there is to say of each query now."""
        return {} if self._queries is None else self._queries()

    def tell_of(self, queries: Callable[[], Mapping[str, QueryFigures]]) -> None:
        """Put into the catalog what this says of each query, too: less often, as they may be thousands."""
        self._queries = queries

    def __enter__(self) -> Self:
        # the first word is said by the caller: whoever asks for the status from now on sees that the job starts
        self._put()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        # a signal is no failure
        ending: JobState = "failed" if isinstance(error, Exception) else "stopped"
        if self._status.get("state") != "drained" or error is not None:
            self._status = {**self._status, "state": ending}
        self._put()
        self._put_figures()

    def _beat(self) -> None:
        beats = 0
        while not self._ended.wait(self._every):
            self._put()
            beats += 1
            if beats % FIGURES_EVERY == 0:
                self._put_figures()

    def _put_figures(self) -> None:
        """What it says of queries is for people only: a catalog that is away is told of by the status."""
        batch = self._status.get("batch")
        if self._queries is not None and batch != self._told:
            with suppress(WeftError):
                self._catalog.put_figures(self._queries())
                self._told = batch

    def _put(self) -> None:
        try:
            self._catalog.put_status(self._status)
        except WeftError as error:
            # the job says so itself, once: see weft.job.query_registry
            LOG.debug("no heartbeat: %s", error)
