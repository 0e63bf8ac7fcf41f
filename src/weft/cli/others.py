"""What others write to standard error, as records of the log: who says it, and how bad it is."""

from __future__ import annotations

import logging
import re

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


def log_line(text: str) -> None:
    """Log what somebody wrote; what nobody can place is always shown, as it may be the last word of a process."""
    name, level, message = told_by(text)
    log = logging.getLogger(f"weft.{name}")
    if name == "stderr" or log.isEnabledFor(level):
        log.handle(log.makeRecord(log.name, level, "", 0, message, (), None))


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
    return "stderr", logging.WARNING, text
