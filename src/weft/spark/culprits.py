"""Finding the queries that stop a step, whatever the way in which it stops: by halves, the same in batch and live.

Whose fault is a failure? A *control*, the plainest query that there is, goes the same way over the same rows. While it
fails too, the source, the disk or the workers are at fault, and nobody is blamed. Else the queries are tried by halves:
those that fail alone are to blame. If each half can be computed and all together cannot, twice, then the last query is
to blame without which those before it can: it asks for more than is left.

Workers and executors die of other things too. Nobody is blamed for what does not happen every time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from weft.optimize.planner import PlanRequest, plan
from weft.plan.layout import SLICE
from weft.plan.model import BoundQuery
from weft.query.names import quoted
from weft.query.sparksql import parse_file
from weft.spark.bind import Stream, bind
from weft.spark.failures import data_error, fault
from weft.spark.rows import slices

LOG = logging.getLogger("weft.culprits")
Found = TypeVar("Found")
Run = Callable[[Sequence[str]], object]
"""Computes the queries of some names, or raises."""
Control = Callable[[], object]
"""Raises if nothing can be computed at all."""
CERTAIN = 2
"""So many times more a query has to fail alone before it is blamed for anything but a value."""
FRUITLESS = 4
"""So often a computation is begun anew when it failed and nobody was to blame."""


def surviving(
    names: Sequence[str], compute: Callable[[Sequence[str]], Found], attempt: Run, control: Control
) -> tuple[Found, dict[str, str]]:
    """Compute all queries that can be; the others are left out, and told by name with the reason.

    Parameters
    ----------
    compute
        Computes queries for good.
    attempt
        Computes some of them only to see whether that is possible.

    Examples
    --------
    >>> def compute(names):
    ...     if "c" in names:
    ...         raise ValueError("it is c")
    ...     return len(names)
    >>> surviving(["a", "b", "c"], compute, compute, control=lambda: None)
    (2, {'c': 'ValueError: it is c'})
    """
    failed: dict[str, str] = {}
    fruitless = 0
    while True:
        left = [name for name in names if name not in failed]
        try:
            return compute(left), failed
        except Exception as error:
            found = blamed(left, error, attempt, control)
            if not found and fruitless:
                found = last_straw(left, error, attempt)
            fruitless = 0 if found else fruitless + 1
            if fruitless > FRUITLESS:
                raise
            failed |= found
            for name, reason in found.items():
                LOG.warning("query %s is left out: %s", name, reason)


def stopped_alone(names: Sequence[str], run: Run, control: Control) -> dict[str, str]:
    """Run on all names, or on halves where that fails: those that fail alone, and why; what the others made is kept."""
    try:
        run(names)
    except Exception as error:
        return blamed(names, error, run, control)
    return {}


def blamed(names: Sequence[str], error: Exception, attempt: Run, control: Control) -> dict[str, str]:
    """The queries that stop all of these with ``error``, and why; raises it if that is nobody's fault."""
    reason = fault(error)
    if reason is None or not names:
        raise error
    _clear(error, control)
    if len(names) == 1:
        return {names[0]: reason} if always_fails(names, error, attempt) else {}
    middle = len(names) // 2
    found = by_halves(names[:middle], attempt) | by_halves(names[middle:], attempt)
    if found and data_error(error) is None:
        # what went away meanwhile would have all that were tried since stand there as culprits
        _clear(error, control)
    return found


def by_halves(names: Sequence[str], run: Run) -> dict[str, str]:
    """Run on all names, or on halves where that fails, down to those that fail alone: these, and why.

    No name is in two runs that succeed, so that what they made can be kept.

    Examples
    --------
    >>> def run(names):
    ...     if set(names) & {"3", "6"}:
    ...         raise ValueError("bad")
    >>> by_halves([str(n) for n in range(8)], run)
    {'3': 'ValueError: bad', '6': 'ValueError: bad'}
    """
    try:
        run(names)
    except Exception as error:
        reason = fault(error)
        if reason is None:
            raise
        if len(names) == 1:
            return {names[0]: reason} if always_fails(names, error, run) else {}
    else:
        return {}
    middle = len(names) // 2
    return by_halves(names[:middle], run) | by_halves(names[middle:], run)


def always_fails(names: Sequence[str], error: Exception, run: Run) -> bool:
    """Whether a failure stands: a value fails every time, anything else has to do so again."""
    return data_error(error) is not None or all(is_too_much(names, run) for _ in range(CERTAIN))


def last_straw(names: Sequence[str], error: Exception, attempt: Run) -> dict[str, str]:
    """The first query that cannot be computed together with all before it, and why; none if all can by now.

    Examples
    --------
    >>> def attempt(names):
    ...     if len(names) > 5:
    ...         raise MemoryError
    >>> last_straw([str(n) for n in range(8)], MemoryError(), attempt)
    {'5': 'together with the queries before it: it needs more memory than there is'}
    """
    if not is_too_much(names, attempt):
        return {}
    least, most = 1, len(names)
    while least < most:
        middle = (least + most) // 2
        if is_too_much(names[:middle], attempt):
            most = middle
        else:
            least = middle + 1
    return {names[most - 1]: f"together with the queries before it: {fault(error)}"}


def is_too_much(names: Sequence[str], attempt: Run) -> bool:
    """Whether these cannot be computed together."""
    try:
        attempt(names)
    except Exception as error:
        if fault(error) is None:
            raise
        return True
    return False


def _clear(error: Exception, control: Control) -> None:
    """See that a query can be at fault: raise ``error`` if not even the control can be computed."""
    if data_error(error) is None:
        try:
            control()
        except Exception:
            raise error from None


def control_of(stream: Stream, rows: Callable[[], DataFrame]) -> Control:
    """The plainest query, over the rows in question, by the way that all go: source, shuffle and workers."""

    def run() -> None:
        plainly = plan(PlanRequest(stream.name, stream.event_time, [plainest(stream)])).plan
        with slices(rows(), plainly) as cut:
            starts = cut.frame.selectExpr(SLICE).mapInArrow(lambda batches: batches, f"{SLICE} bigint")
            starts.write.format("noop").mode("overwrite").save()

    return run


def spark_control(spark: SparkSession) -> Control:
    """See that Spark computes anything, where the rows are ours already."""
    return lambda: spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()


def plainest(stream: Stream) -> BoundQuery:
    """A query of which nothing can be wrong."""
    name, time = quoted(stream.name), quoted(stream.event_time)
    (query,) = parse_file(f"SELECT count(*) AS n FROM {name} GROUP BY window({time}, '1 day')")
    (bound,), _ = bind(stream, [query])
    return bound.query
