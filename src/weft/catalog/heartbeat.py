"""A job's status, told again and again: also while a long batch runs, the catalog shows that the job lives."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

from weft.catalog.catalog import Catalog
from weft.catalog.status import JobState, Status
from weft.errors import WeftError

LOG = logging.getLogger("weft.catalog")


class Heartbeat:
    """Puts the latest status into the catalog every second, from a thread of its own.

    Leaving the block says how the job ended: ``failed`` after an exception, else ``stopped`` unless a last status said
    ``drained``. A catalog that cannot be reached for a while does not stop the job.
    """

    def __init__(self, catalog: Catalog, status: Status, every: float = 1.0) -> None:
        self._catalog = catalog
        self._status = status
        self._every = every
        self._unheard = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="weft-heartbeat", daemon=True)

    @property
    def status(self) -> Status:
        """What was said last."""
        return self._status

    def say(self, status: Status) -> None:
        """Take the place of what was said before."""
        self._status = status

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

    def _beat(self) -> None:
        while not self._ended.wait(self._every):
            self._put()

    def _put(self) -> None:
        try:
            self._catalog.put_status(self._status)
            self._unheard = False
        except WeftError as error:
            if not self._unheard:
                LOG.warning("%s; the job goes on, and tries again every %g s", error, self._every)
            self._unheard = True
