"""Takes committed batches to one sink, on a thread of its own: nobody else waits for a sink that is slow or away."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from tenacity import Retrying, retry_if_exception

from weft.catalog.status import Outage, SinkStatus
from weft.errors import UseError, WeftError
from weft.job.lease import FencedError
from weft.job.patience import Patience, Presence
from weft.job.sink import CommittedBatch, Sink

LOG = logging.getLogger("weft.sinks")
SLOW = 10.0
"""A sink that has been taking one batch for so many seconds does not answer, as far as people are told."""
GRACE = 10.0
"""For so many seconds after the end of a job its sinks go on taking what waits for them."""


class Courier:
    """Delivers batches in rising order, each until the sink has taken it.

    Parameters
    ----------
    sink
        Where to.
    delivered
        The last batch that it took; -1 if none.
    patience
        How long it is waited for, and what may wait.
    load
        A committed batch by its number.
    note
        Writes down that the sink has taken a batch. An error says that this driver may deliver no more.
    changed
        Notified whenever something has changed here.
    """

    def __init__(
        self,
        sink: Sink,
        delivered: int,
        patience: Patience,
        load: Callable[[int], CommittedBatch],
        note: Callable[[Sink, int], None],
        changed: threading.Condition,
    ) -> None:
        self.sink = sink
        self.delivered = delivered
        self.patience = patience
        self.failure: BaseException | None = None
        """Why it delivers no more, though it was not told to end."""
        self.tried = threading.Event()
        """Set when the sink was opened, or could not be."""
        self._load, self._note, self._changed = load, note, changed
        self._waiting: deque[int] = deque()
        self._presence = Presence(f"sink {sink.name}", "what is for it waits in the checkpoint", LOG.name)
        self._is_open = False
        self._taking_since: float | None = None
        self._ended = threading.Event()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._serve, name=f"weft-sink-{sink.name}", daemon=True)

    def start(self) -> None:
        """Open the sink and begin to deliver."""
        self._thread.start()

    def post(self, batch: int) -> None:
        """Have a batch delivered after those before it."""
        if batch > self.delivered:
            self._waiting.append(batch)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The batches that it has yet to deliver."""
        with self._changed:
            return tuple(self._waiting)

    @property
    def outage(self) -> Outage | None:
        """Since when the sink is away, None if it is there."""
        since = self._taking_since
        if self._presence.outage is not None or since is None or time.time() - since < SLOW:
            return self._presence.outage
        slow = f"it has been taking batch {self.delivered + 1} for {time.time() - since:.0f} s"
        return Outage(what=self._presence.what, since=since, error=slow)

    def status(self, *, full: bool) -> SinkStatus:
        """How far it is; ``full`` says that nothing more may wait for it."""
        outage = self.outage
        return SinkStatus(
            state="full" if full else "ok" if outage is None else "away",
            batch=self.delivered,
            waiting=len(self._waiting),
            since=None if outage is None else outage["since"],
            error=None if outage is None else outage["error"],
        )

    def end(self) -> None:
        """Deliver what waits as long as the sink takes it, within the time of grace, and then no more."""
        self._deadline = time.monotonic() + GRACE
        self._ended.set()

    def join(self) -> None:
        """Wait for the end; one that hangs in its sink is left behind."""
        self._thread.join(max(self._deadline - time.monotonic(), 0.1))
        if self._waiting and self.failure is None:
            LOG.warning("%s that sink %s has yet to take wait in the checkpoint", *self._told())

    def _told(self) -> tuple[str, str]:
        count = len(self._waiting)
        return "1 batch" if count == 1 else f"{count:,} batches", self.sink.name

    def _serve(self) -> None:
        try:
            self._patiently(self._open)
            while (batch := self._next()) is not None:
                self._patiently(self._deliver, batch)
                self._done(batch)
        except BaseException as error:  # a thread that ends in silence would keep everybody waiting
            self._fail(error)
        finally:
            self._taking_since = None
            self._shut()
            self.tried.set()
            self._tell()

    def _next(self) -> int | None:
        """The next batch; None at the end."""
        with self._changed:
            while not self._waiting and not self._ended.is_set():
                self._changed.wait()
            return self._waiting[0] if self._waiting and time.monotonic() < self._deadline else None

    def _patiently(self, attempt: Callable[..., None], *arguments: int) -> None:
        self._taking_since = time.time()
        self._retrying()(attempt, *arguments)
        self._taking_since = None
        self._presence.back()

    def _retrying(self) -> Retrying:
        return self.patience.retrying(self._ended, retry_if_exception(_may_heal))

    def _open(self) -> None:
        try:
            if not self._is_open:
                self.sink.open()
                self._is_open = True
        except Exception as error:
            self._miss(error)
            raise
        finally:
            self.tried.set()

    def _deliver(self, batch: int) -> None:
        self._open()
        try:
            self.sink.deliver(self._load(batch))
            self._note(self.sink, batch)
        except Exception as error:
            self._miss(error)
            # what a failed delivery has left behind in the sink is not built upon
            self._shut()
            raise

    def _miss(self, error: Exception) -> None:
        if _may_heal(error):
            self._presence.lost(str(error).removeprefix(f"sink {self.sink.name}: "))
            self._tell()

    def _done(self, batch: int) -> None:
        with self._changed:
            self._waiting.popleft()
            self.delivered = batch
            self._changed.notify_all()

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        if not _may_heal(error):
            self.failure = error
        elif not self._ended.is_set():
            waits = f"{self._told()[0]} wait for it in the checkpoint"
            patience = f"has been away for longer than its patience of {self.patience.seconds} seconds"
            self.failure = WeftError(f"sink {self.sink.name} {patience}; {waits}: {error}")

    def _shut(self) -> None:
        """Let go of the sink; the next delivery opens it again."""
        if self._is_open:
            self._is_open = False
            with suppress(Exception):
                self.sink.close()


def _may_heal(error: BaseException) -> bool:
    """Whether another attempt makes sense: not where the user has to change something, or another driver took over."""
    return isinstance(error, Exception) and not isinstance(error, UseError | FencedError)
