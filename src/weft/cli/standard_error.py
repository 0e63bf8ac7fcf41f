"""Standard error, taken over: what others write there comes to the log line by line, and nobody writes over the view.

Java, Spark's workers, C libraries such as librdkafka and Python itself write to file descriptor 2 without asking
anybody. Once it is taken over it is one end of a pipe; a thread reads the other one and hands on what it finds. Only
the log and the view write to what standard error really is.
"""

from __future__ import annotations

import atexit
import logging
import os
import select
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

STANDARD_ERROR = 2
_PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031
"""Linux has room for 64 KB in a pipe unless it is asked; whoever writes more would wait for this process."""

_taken: TakenOver | None = None


def take_over(take: Callable[[str], object], *, for_good: bool) -> None:
    """Have ``take`` told everything that is written to standard error, until the process ends.

    Nothing happens if it was taken over before, or if Python's standard error is not the process's.

    Parameters
    ----------
    for_good
        Whether nobody may write to it in the last moment either, when no Python runs any more that could take it:
        threads of C libraries may still do so.
    """
    global _taken
    if _taken is None and _is_the_process_s(sys.stderr):
        _taken = TakenOver(take, for_good)
        logging.captureWarnings(True)
        atexit.register(_give_back)


def real() -> TextIO:
    """Where the process's own lines go: what standard error was before it was taken over."""
    return sys.stderr if _taken is None else _taken.file


def is_taken_over() -> bool:
    """Whether others' lines come to the log."""
    return _taken is not None


def _give_back() -> None:
    global _taken
    if _taken is not None:
        _taken.close()
        _taken = None


def _is_the_process_s(stream: TextIO) -> bool:
    try:
        return stream.fileno() == STANDARD_ERROR
    except (OSError, ValueError, AttributeError):
        return False


class TakenOver:
    """File descriptor 2 as one end of a pipe, and the thread at the other one."""

    def __init__(self, take: Callable[[str], object], for_good: bool) -> None:
        self._take = take
        self._for_good = for_good
        sys.stderr.flush()
        real = os.dup(STANDARD_ERROR)
        self.file: TextIO = os.fdopen(real, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
        self._reading, writing = os.pipe()
        self._ended, self._end = os.pipe()
        _widen(writing)
        os.dup2(writing, STANDARD_ERROR)  # children inherit it
        os.close(writing)
        self._thread = threading.Thread(target=self._read, name="weft-standard-error", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hand on what is there still, and have standard error as it was, or nowhere."""
        sys.stderr.flush()
        afterwards = os.open(os.devnull, os.O_WRONLY) if self._for_good else self.file.fileno()
        os.dup2(afterwards, STANDARD_ERROR)
        # Java may hold the pipe open for a while: nobody waits for that
        os.close(self._end)
        self._thread.join()
        self.file.flush()

    def _read(self) -> None:
        rest = b""
        while True:
            ready, _, _ = select.select([self._reading, self._ended], [], [])
            if self._reading not in ready:
                break
            found = os.read(self._reading, _PIPE_BYTES)
            if not found:
                break
            *lines, rest = (rest + found).split(b"\n")
            self._hand_on(lines)
        self._hand_on([rest])

    def _hand_on(self, lines: Iterable[bytes]) -> None:
        for text in messages(line.decode(errors="backslashreplace").rstrip() for line in lines):
            self._take(text)


def messages(lines: Iterable[str]) -> Iterator[str]:
    """Lines as they belong together: a trace is one message.

    Examples
    --------
    >>> list(messages(["careful", "Exception: why", "\\tat Main.java:1", "Caused by: that", "", "next"]))
    ['careful', 'Exception: why\\n\\tat Main.java:1\\nCaused by: that', 'next']
    >>> list(messages(["Traceback (most recent call last):", "  File x", "ValueError: why", "next"]))
    ['Traceback (most recent call last):\\n  File x\\nValueError: why', 'next']
    """
    message: list[str] = []
    for line in lines:
        if message and _goes_on(message, line):
            message.append(line)
        else:
            if message:
                yield "\n".join(message)
            message = [line] if line else []
    if message:
        yield "\n".join(message)


def _goes_on(message: list[str], line: str) -> bool:
    of_python = message[0].startswith("Traceback ") and message[-1].startswith((" ", "Traceback "))
    return bool(line) and (of_python or line.startswith((" ", "\t", "Caused by:")))


def _widen(pipe: int) -> None:
    if sys.platform == "linux":
        import fcntl

        try:
            fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE_BYTES)
        except OSError:
            return  # as small as it is: only slower
