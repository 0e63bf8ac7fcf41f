"""Ending when asked: a job after its batch, at the second request now; any other command at once, tidied up."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ONE_REQUEST = 1.0
"""Seconds in which signals count as one request: ``timeout`` tells a process by itself and once more in its group."""


class Ended(BaseException):
    """A signal has ended a command that has nothing to finish; on its way out it removes what it was writing."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.code = 128 + number
        """The status of a process that such a signal has ended."""


@contextmanager
def ending() -> Iterator[None]:
    """Have SIGINT and SIGTERM raise :class:`Ended` in the block, once."""

    ends = False

    def heard(number: int, _frame: FrameType | None) -> None:
        nonlocal ends
        ends = True
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)  # on the way out nothing is to be interrupted
        raise Ended(number)

    with _handled_by(heard, lambda: ends):
        yield


@contextmanager
def stopping(
    stop: threading.Event, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> Iterator[threading.Event]:
    """Set ``stop`` at the first SIGINT or SIGTERM, and leave the process at the second request.

    Leaving at once is safe, as a batch that was not committed is run again.
    """
    first = 0.0

    def heard(number: int, _frame: FrameType | None) -> None:
        nonlocal first
        if not stop.is_set():
            first = clock()
            stop.set()
            say("stopping after this batch; once more to stop at once")
        elif clock() - first >= ONE_REQUEST:
            say("stopped at once; the batch that was under way will be run again")
            os._exit(128 + number)

    with _handled_by(heard, stop.is_set):
        yield stop


@contextmanager
def _handled_by(
    heard: Callable[[int, FrameType | None], None], for_good: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # Python hears signals in its main thread only
        return
    before = {number: signal.signal(number, heard) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # who ends hears no more: Python itself would take our handlers away on its way out
            signal.signal(number, signal.SIG_IGN if for_good() else handler)
