"""Data errors: which of Spark's errors are the data's fault, and which queries they stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

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
