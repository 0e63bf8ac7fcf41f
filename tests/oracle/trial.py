"""One trial: a stream and its queries through Weft and through Spark, and what differs between them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import weft
from oracle import compare, totals
from oracle.compare import Rows
from oracle.data import Stream
from oracle.generate import Shape, Workload
from oracle.queries import Asked
from weft.errors import WeftError
from weft.optimize import sampled
from weft.spark import step
from weft.spark.kernel_cut import left_to_jvm

ANSI = "spark.sql.ansi.enabled"
CUT = "WEFT_TEST_CUT"
"""The environment variable that tells who cuts rows into slices: jvm, workers or driver."""
REDUCTIONS = 14
"""How many smaller trials a difference is worth."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came out: the differences by query, and how much was compared."""

    differences: dict[str, str]
    queries: int
    rows: int
    bounded: int


def weft_rows(spark: Any, stream: Stream, queries: Sequence[Asked]) -> dict[str, Rows | WeftError]:
    """Weft's answers to all queries in one run; a query that failed by its data has its error instead.

    Those that only the JVM can cut have a run of their own, or the others would be cut there, too.
    """
    apart = left_queries(spark, stream, queries) if cut_engine() in {"workers", "driver"} else set()
    found: dict[str, Rows | WeftError] = {}
    for some in ([one for one in queries if (one.name in apart) == left] for left in (False, True)):
        found |= answered(spark, stream, some) if some else {}
    return found


def left_queries(spark: Any, stream: Stream, queries: Sequence[Asked]) -> set[str]:
    """The names of queries that kernels cannot cut."""
    engine = weft.Engine(spark)
    rows = stream.frame(spark)
    engine.stream(stream.name, rows, event_time=stream.event_time)
    engine.sql("\n".join(query.statement for query in queries))
    (plan,) = engine.plans()
    left = {query.name for number in left_to_jvm(plan, rows) for query in plan.groupings[number].queries}
    return left | {name for name, original in plan.same_as.items() if original in left}


def answered(spark: Any, stream: Stream, queries: Sequence[Asked]) -> dict[str, Rows | WeftError]:
    """The answers of one run."""
    engine = weft.Engine(spark, cut=cut_engine())
    engine.stream(stream.name, stream.frame(spark), event_time=stream.event_time)
    names = engine.sql("\n".join(query.statement for query in queries))
    assert names == [query.name for query in queries], names
    with cramped() if stream.rows % 2 else nullcontext():
        answers = engine.run()
    found: dict[str, Rows | WeftError] = dict(answers.failures)
    fine = [name for name in names if name not in found]
    found.update(zip(fine, compare.collected(answers[name] for name in fine), strict=True))
    return found


def cut_engine() -> Any:
    """Who cuts rows into slices, if a test does not say it."""
    return os.environ.get(CUT, "auto")


@contextmanager
def cramped() -> Iterator[None]:
    """Slices are left unmerged whatever order rows come in, and workers hold hardly any of them at once."""
    before = sampled.FEW_FALLS, step.AT_ONCE
    sampled.FEW_FALLS, step.AT_ONCE = 1.0, 20
    try:
        yield
    finally:
        sampled.FEW_FALLS, step.AT_ONCE = before


def sessions(spark: Any, oracle: Any, shape: Shape) -> tuple[Any, Any]:
    """The sessions for Weft and for Spark's side, as ANSI as a workload asks for."""
    if shape.ansi:
        return spark, oracle
    loose = spark.newSession()
    loose.conf.set(ANSI, "false")
    return loose, compare.oracle_session(spark, **{ANSI: "false"})


def trial(spark: Any, session: Any, stream: Stream, queries: Sequence[Asked]) -> Trial:
    """Run the queries with both and compare."""
    theirs = compare.spark_rows(session, stream, queries)
    ours = weft_rows(spark, stream, queries)
    differences, rows, bounded = {}, 0, 0
    for query, expected in zip(queries, theirs, strict=True):
        found = ours[query.name]
        if isinstance(found, WeftError):
            differences[query.name] = f"failed in weft only: {found}"
            continue
        outcome = compare.compare(query, found, expected)
        rows, bounded = rows + outcome.rows, bounded + outcome.bounded
        if outcome.difference:
            differences[query.name] = outcome.difference
    return Trial(differences, len(queries), rows, bounded)


def judge(spark: Any, session: Any, workload: Workload) -> None:
    """Raise AssertionError with a report that can be read and run again, if any query of a workload differs."""
    spark, session = sessions(spark, session, workload.shape)
    try:
        outcome = trial(spark, session, workload.stream, workload.queries)
    except Exception as error:
        raise AssertionError(f"{workload.shape}\ndid not run: {error}") from error
    totals.add(
        queries_compared=outcome.queries - len(outcome.differences),
        rows_compared=outcome.rows,
        cells=outcome.bounded,
    )
    if outcome.differences:
        name = next(iter(outcome.differences))
        raise AssertionError(report(spark, session, workload, name, outcome))


def report(spark: Any, session: Any, workload: Workload, name: str, outcome: Trial) -> str:
    """The first difference, with as little around it as still shows it."""
    query = next(query for query in workload.queries if query.name == name)
    difference = outcome.differences[name]
    queries, stream, difference = reduced(spark, session, workload, query, difference)
    return "\n".join(
        [
            f"{len(outcome.differences)} of {outcome.queries} queries differ: {', '.join(outcome.differences)}",
            f"workload({workload.shape})",
            f"the first, with {len(queries)} queries at once:",
            *(asked.statement for asked in queries),
            str(stream),
            difference,
        ]
    )


def reduced(
    spark: Any, session: Any, workload: Workload, query: Asked, difference: str
) -> tuple[Sequence[Asked], Stream, str]:
    """Fewer queries and fewer rows that still differ."""

    def still_differs(queries: Sequence[Asked], stream: Stream) -> str | None:
        try:
            return trial(spark, session, stream, queries).differences.get(query.name)
        except Exception as error:
            return f"did not run: {error}"

    queries: Sequence[Asked] = workload.queries
    stream = workload.stream
    alone = still_differs([query], stream)
    if alone:
        queries, difference = [query], alone
    chunk, tries = stream.rows // 2, 0
    while chunk >= 1 and tries < REDUCTIONS:
        for start in range(0, stream.rows, chunk):
            tries += 1
            smaller = stream.keeping([i for i in range(stream.rows) if not start <= i < start + chunk])
            found = still_differs(queries, smaller)
            if found:
                stream, difference = smaller, found
                break
            if tries >= REDUCTIONS:
                break
        else:
            chunk //= 2
    return queries, stream, difference
