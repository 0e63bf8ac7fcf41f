"""What others write to standard error, as records of the log: who says it, and how bad it is."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable

UNKNOWN = "stderr"
AGAIN = 30.0
"""Seconds in which the same message is logged once."""
KNOWN = 1000
_NUMBER = re.compile(r"\d+")
_LOG4J = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) (\S+?): (.*)", re.DOTALL)
_LIBRDKAFKA = re.compile(r"%(\d)\|[\d.]+\|(\w+)\|[^|]*\|\s*(.*)", re.DOTALL)
_JAVA = re.compile(r"(WARNING|SEVERE|INFO): (.*)|.*? VM (warning): (.*)", re.DOTALL)
_GREETINGS = (
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
    "Picked up ",
    "NOTE: Picked up ",
)
"""What Java and Spark say at every start, which tells nobody anything."""
_USUAL = ("NativeCodeLoader: Unable to load", "Utils: Your hostname,", "Utils: Set SPARK_LOCAL_IP")
"""And the like of it, as warnings."""

_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "warning": logging.WARNING,
    "ERROR": logging.ERROR,
    "SEVERE": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_SYSLOG = (*[logging.CRITICAL] * 3, logging.ERROR, logging.WARNING, logging.INFO, logging.INFO, logging.DEBUG)


class OthersLog:
    """Logs what others write; what one of them says again and again, as of a broker that is away, now and then only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}
        """By who said what, numbers aside: when it was logged last, and how often it was said since."""

    def take(self, text: str) -> None:
        """Log this; what nobody can place always, as it may be the last word of a process."""
        name, level, message = told_by(text)
        log = logging.getLogger(f"weft.{name}")
        if name == UNKNOWN:
            log.handle(log.makeRecord(log.name, level, "", 0, message, (), None))
        elif log.isEnabledFor(level) and (again := self._times(name, message)) is not None:
            more = f" (and {again:,} times before)" if again else ""
            log.handle(log.makeRecord(log.name, level, "", 0, message + more, (), None))

    def _times(self, name: str, message: str) -> int | None:
        """How often the like was passed over since it was logged; None if it is to be passed over again."""
        what = name, _NUMBER.sub("0", message)
        now = self._clock()
        last, passed = self._said.pop(what, (-math.inf, 0))
        if now - last < AGAIN:
            self._said[what] = last, passed + 1
            return None
        self._said[what] = now, 0
        if len(self._said) > KNOWN:
            del self._said[next(iter(self._said))]
        return passed


def told_by(text: str) -> tuple[str, int, str]:
    """Who wrote this, how bad it is, and the message without what the log says itself.

    Examples
    --------
    >>> told_by("26/01/31 10:00:00 WARN BlockManager: a block was lost")
    ('spark', 30, 'BlockManager: a block was lost')
    >>> told_by("%3|1700000000.123|FAIL|rdkafka#producer-1| [thrd:x]: refused")
    ('kafka', 40, 'FAIL: [thrd:x]: refused')
    >>> told_by("WARNING: Using incubator modules: jdk.incubator.vector")
    ('java', 10, 'WARNING: Using incubator modules: jdk.incubator.vector')
    >>> told_by("terminate called")
    ('stderr', 30, 'terminate called')
    """
    if text.startswith(_GREETINGS):
        return "java", logging.DEBUG, text
    if found := _LOG4J.match(text):
        message = f"{found[2]}: {found[3]}"
        return "spark", logging.DEBUG if message.startswith(_USUAL) else _LEVELS[found[1]], message
    if found := _LIBRDKAFKA.match(text):
        return "kafka", _SYSLOG[min(int(found[1]), 7)], f"{found[2]}: {found[3]}"
    if found := _JAVA.match(text):
        return "java", _LEVELS[found[1] or found[3]], found[2] or found[4]
    return UNKNOWN, logging.WARNING, text
