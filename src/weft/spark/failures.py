"""Data errors: which of Spark's errors are the data's fault, and which queries they stop."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from weft.plan.model import BoundQuery


def data_error(error: Exception) -> str | None:
    """Spark's words if a value was at fault (SQLSTATE 22...: overflow, division, cast), else None."""
    if isinstance(error, PySparkException):
        state = error.getSqlState()
        if state and state.startswith("22"):
            return str(error.getMessage()).split("\n== SQL")[0].split(" SQLSTATE:")[0].strip()
    if isinstance(error, Py4JJavaError) and "SQLSTATE: 22" in str(error):
        return str(error).split("\n")[1].strip()
    return None


_THROWN = re.compile(r"^(?:: |Caused by: )?([\w.$]+(?:Exception|Error|Throwable)\w*)(?:: (.*))?$", re.MULTILINE)
"""A line of Java's trace that names what was thrown, and not where."""
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
    return f"{spark[-1]}\n  {cause}" if spark and cause not in spark[-1] else cause


def spark_failure(error: Exception) -> str | None:
    """What Spark, or the Java that it runs in, could not do; None if the error is no such one."""
    if isinstance(error, CapturedException):
        return in_short(error._stackTrace)
    if isinstance(error, PySparkException | Py4JError):
        return in_short(str(error))
    return None


def culprits(queries: Sequence[BoundQuery], attempt: Callable[[Sequence[BoundQuery]], str | None]) -> dict[str, str]:
    """The queries that cannot be computed and why, by halves; ``attempt`` says what stops a set of them, if anything.

    Examples
    --------
    >>> from types import SimpleNamespace as Q
    >>> queries = [Q(name=str(n)) for n in range(8)]
    >>> culprits(queries, lambda some: "bad" if any(q.name in "36" for q in some) else None)
    {'3': 'bad', '6': 'bad'}
    """
    message = attempt(queries)
    if message is None:
        return {}
    if len(queries) == 1:
        return {queries[0].name: message}
    middle = len(queries) // 2
    return culprits(queries[:middle], attempt) | culprits(queries[middle:], attempt)
