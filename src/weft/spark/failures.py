"""What failed: a value, a query that asks for too much, or the machinery; in few words, and whose fault it may be."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from weft.algebra.numbers import DataError
from weft.errors import WeftError
from weft.spark.outages import source_is_away

IN_A_BATCH = (
    "the JVM that Spark runs in died while a batch was computed\n"
    "  started again, the job goes on there; if it dies of a query, it finds that one and goes on without it"
)


class JvmGoneError(WeftError):
    """The JVM died, or its context was stopped from outside."""

    def __init__(self, message: str = IN_A_BATCH) -> None:
        super().__init__(message)


SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark fails with: an error that it has words for, or what Java threw, such as a stack that overflowed."""
DATA = ("22", "P0001")
"""How SQLSTATEs begin that tell of values: of data, and those that ``raise_error`` gives."""


_DATA_ERROR = re.compile(rf"^{re.escape(f'{DataError.__module__}.{DataError.__qualname__}')}: (.*)$", re.MULTILINE)
"""The line of a worker's trace that says what is wrong with a value."""


def data_error(error: Exception) -> str | None:
    """What is said of a value that was at fault (overflow, division, cast, an error that was asked for), else None."""
    if isinstance(error, DataError):
        return str(error)
    in_a_worker = _DATA_ERROR.search(str(error)) if isinstance(error, SPARK_ERRORS) else None
    if in_a_worker:
        return in_a_worker[1].strip()
    if isinstance(error, PySparkException):
        state = error.getSqlState()
        if state and state.startswith(DATA):
            said = str(error.getMessage()).split("\n== SQL")[0].split(" SQLSTATE:")[0]
            return said.removeprefix("[USER_RAISED_EXCEPTION]").strip()
    if isinstance(error, Py4JJavaError) and any(f"SQLSTATE: {state}" in str(error) for state in DATA):
        return str(error).split("\n")[1].strip()
    return None


_THROWN = re.compile(r"^(?:: |Caused by: )?([\w.$]+(?:Exception|Error|Throwable)\w*)(?:: (.*))?$", re.MULTILINE)
"""A line of Java's trace that names what was thrown, and not where."""
_IN_NANOSECONDS = re.compile(r"TIMESTAMP\(NANOS|Expected Spark type timestamp\w*, actual Parquet type INT64")
_NANOSECONDS = (
    "if these are timestamps in nanoseconds, which Spark has not: write them in microseconds, "
    "from pandas by to_parquet(..., coerce_timestamps='us', allow_truncated_timestamps=True)"
)
_WRAPPED = ("[STREAM_FAILED]", "[JOB_ABORTED]", "Job aborted")


def in_short(trace: str) -> str:
    """What a trace of Java comes down to: Spark's own words, and those of the first cause.

    Examples
    --------
    >>> print(in_short(
    ...     "org.apache.spark.SparkException: [FAILED_READ_FILE] Error while reading file x. SQLSTATE: KD001\\n"
    ...     "\\tat org.apache.spark.Reader.read(Reader.scala:1)\\n"
    ...     "Caused by: java.lang.RuntimeException: x is not a Parquet file"
    ... ))
    [FAILED_READ_FILE] Error while reading file x.
      x is not a Parquet file
    """
    thrown = [(message or name).split(" SQLSTATE:")[0].strip() for name, message in _THROWN.findall(trace)]
    if not thrown:
        return trace.strip().split("\n")[0]
    *above, cause = thrown
    spark = [message for message in above if message.startswith("[") and not message.startswith(_WRAPPED)]
    told = f"{spark[-1]}\n  {cause}" if spark and cause not in spark[-1] else cause
    return f"{told}\n  {_NANOSECONDS}" if _IN_NANOSECONDS.search(trace) else told


def spark_failure(error: Exception) -> str | None:
    """What Spark, or the Java that it runs in, could not do; None if the error is no such one."""
    if isinstance(error, CapturedException):
        return in_short(error._stackTrace)
    if isinstance(error, PySparkException | Py4JError):
        return in_short(str(error))
    return None


_WORDS = {
    "java.lang.OutOfMemoryError": "Spark ran out of memory while it was computed",
    "java.lang.StackOverflowError": "it is nested too deeply for Spark",
    "Python worker exited": "the worker that computed its answers died, as one does that needs too much memory",
    "ExecutorLostFailure": "the executor that computed it was lost, as one is that needs too much memory",
}
"""What is said of failures whose own words say nothing to whoever wrote the query."""


def fault(error: Exception) -> str | None:
    """What stopped a computation, if a query can have caused it; None if none can.

    A value, memory, a plan that is too deep or too long, and whatever else Spark or our own kernels fail with may be a
    query's fault. What Weft says on purpose, files that are not there, a source that is away and a JVM that is gone are
    not: of the last, the next start finds out.
    """
    on_purpose = isinstance(error, WeftError) and not isinstance(error, DataError)
    if on_purpose or isinstance(error, OSError) or jvm_is_gone(error) or source_is_away(error):
        return None
    said = data_error(error) or spark_failure(error)
    if said is None:
        return "it needs more memory than there is" if isinstance(error, MemoryError) else _own_words(error)
    trace = error._stackTrace if isinstance(error, CapturedException) else str(error)
    known = next((words for sign, words in _WORDS.items() if sign in trace), None)
    return said if known is None else f"{known} ({said.splitlines()[-1].strip()})"


def _own_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip().split("\n")[0]


def jvm_is_gone(error: BaseException) -> bool:
    """Whether the JVM that Spark runs in died under what failed."""
    if isinstance(error, Py4JNetworkError):
        return True
    if isinstance(error, Py4JJavaError | CapturedException):
        return False  # it answered
    # an answer that is cut off, or a connection that is: by the JVM's death, or by that of somebody else
    cut_off = isinstance(error, Py4JError) and "Trace:" not in str(error)
    return (cut_off or isinstance(error, ConnectionError | EOFError)) and not _jvm_answers()


def _jvm_answers() -> bool:
    gateway = SparkContext._gateway
    if gateway is None:
        return False
    try:
        return bool(gateway.jvm.java.lang.System.nanoTime() is not None)
    except (Py4JError, OSError):
        return False
