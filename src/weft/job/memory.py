"""Memory that is free again goes back to the system, so that a job for months has the size of its state."""

from __future__ import annotations

import ctypes
import time

import pyarrow as pa

SECONDS = 60


class Memory:
    """Gives back, now and then, what the allocators of C and of Arrow hold for nobody.

    Both keep pages for every thread that ever was, and a batch works in several: what they hold grows for hours, though
    nothing is kept. Decision 15 has the numbers.
    """

    def __init__(self) -> None:
        self._given = time.monotonic()
        # glibc has it; others give pages back by themselves
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def give_back(self) -> bool:
        """Between two batches; gives whether it was time."""
        now = time.monotonic()
        if now - self._given < SECONDS:
            return False
        self._given = now
        pa.default_memory_pool().release_unused()
        if self._trim is not None:
            self._trim(0)
        return True
