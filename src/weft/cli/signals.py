"""Stopping when asked: once for after the batch, twice for now."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping(stop: threading.Event, say: Callable[[str], None]) -> Iterator[threading.Event]:
    """Set ``stop`` at the first SIGINT or SIGTERM, and leave the process at the second.

    To be entered after the Spark session is there: starting it takes SIGINT for itself. Leaving at once is safe, as
    a batch that was not committed is run again.
    """

    def heard(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            say("stopped at once; the batch that was under way will be run again")
            os._exit(128 + number)
        stop.set()
        say("stopping after this batch; once more to stop at once")

    before = {number: signal.signal(number, heard) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
