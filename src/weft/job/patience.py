"""What may be away for a while: how long it is waited for, how much may wait meanwhile, and what people are told."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from tenacity import (
    Retrying,
    retry_base,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_any,
    stop_when_event_set,
    wait_exponential,
    wait_random,
)

from weft.catalog.status import Outage

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two attempts: the first ones, and those of an outage that lasts."""
GIGABYTE = 10**9


@dataclass(frozen=True)
class Patience:
    """For how long something that is away is waited for, and how much may wait for it."""

    seconds: float | None = None
    """After so long the job ends, with the reason; for ever if not given."""
    batches: int = 10_000
    """When so many committed batches wait for a sink, no further one is begun until it has taken some."""
    bytes: int = 10 * GIGABYTE
    """The same for the bytes of their answers."""

    def retrying(self, ended: threading.Event, on: retry_base | None = None) -> Retrying:
        """Tries again, at growing distances, until it works, patience is at an end, or ``ended`` is set.

        Then the last error is raised. ``on`` says which errors are worth another attempt; all by default.
        """
        stop = stop_when_event_set(ended)
        return Retrying(
            retry=on or retry_if_exception_type(Exception),
            wait=wait_exponential(FIRST_PAUSE, LONGEST_PAUSE) + wait_random(0, FIRST_PAUSE),
            stop=stop if self.seconds is None else stop_any(stop, stop_after_delay(self.seconds)),
            sleep=sleep_using_event(ended),
            reraise=True,
        )


class Presence:
    """Whether something that the job relies on is there; people are told once that it is away, and that it is back.

    Examples
    --------
    >>> source = Presence("the source", "the stream is started again when it is back")
    >>> source.lost("no broker answers")
    >>> source.outage["error"]
    'no broker answers'
    >>> source.back()
    >>> source.outage is None
    True
    """

    def __init__(self, what: str, meanwhile: str, log: str = "weft.stream") -> None:
        self.what = what
        self._meanwhile = meanwhile
        self._log = logging.getLogger(log)
        self._outage: Outage | None = None

    @property
    def outage(self) -> Outage | None:
        """Since when it is away and why, None if it is there."""
        return self._outage

    def lost(self, error: object) -> None:
        """It is away, or still is."""
        said = str(error)
        if self._outage is None:
            self._log.warning("%s is away: %s; %s", self.what, said, self._meanwhile)
            self._outage = Outage(what=self.what, since=time.time(), error=said)
        else:
            self._outage = Outage(what=self.what, since=self._outage["since"], error=said)

    def back(self) -> None:
        """It is there."""
        if self._outage is not None:
            self._log.info("%s is back after %.1f s", self.what, time.time() - self._outage["since"])
            self._outage = None
