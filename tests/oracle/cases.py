"""Hand-written cases: a small stream, a few SELECTs, answered by Weft in one run and held against Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException

import weft
from oracle import compare
from oracle.compare import Rows
from oracle.data import Column, Stream
from oracle.queries import Asked, Judged
from weft.errors import WeftError

SECOND = 1_000_000
MINUTE = 60 * SECOND


def stream(schema: str, rows: Sequence[Sequence[Any]], *, name: str = "s", partitions: int = 1) -> Stream:
    """A stream from rows; the first column is the event time, instants are microseconds.

    >>> print(stream("ts timestamp, x int", [(0, 1)]))
    s(`ts` timestamp, `x` int), 1 rows, 1 partitions
    (0, 1)
    """
    fields = [tuple(field.strip().split(" ", 1)) for field in schema.replace(", ", "\n").split("\n")]
    values = {name: [row[i] for row in rows] for i, (name, _) in enumerate(fields)}
    (time, time_type), *others = fields
    return Stream(name, time, time_type, tuple(Column(n, t) for n, t in others), values, partitions)


@dataclass(slots=True)
class Case:
    """SELECTs over one stream, answered together."""

    spark: Any
    stream: Stream
    settings: dict[str, str] = field(default_factory=dict)
    cut: Any = "auto"

    def engine(self, *selects: str) -> tuple[weft.Engine, list[str]]:
        """An engine that knows the stream and the queries q0, q1, ..."""
        engine = weft.Engine(self.spark, cut=self.cut)
        engine.stream(self.stream.name, self.stream.frame(self.spark), event_time=self.stream.event_time)
        return engine, engine.sql("\n".join(f"-- name: q{i}\n{select};" for i, select in enumerate(selects)))

    def weft(self, *selects: str) -> list[Rows | WeftError | PySparkException]:
        """Weft's answers in the order asked; in place of those that cannot be had, the error."""
        engine, names = self.engine(*selects)
        answers = engine.run()
        failures = answers.failures
        return [failures[name] if name in failures else read(answers, name) for name in names]

    def spark_rows(self, *selects: str) -> list[Rows]:
        """Spark's answers in the order asked."""
        session = compare.oracle_session(self.spark, **self.settings)
        return compare.spark_rows(session, self.stream, [asked(select) for select in selects])

    def same(self, *selects: str) -> list[Rows]:
        """Assert that Weft gives Spark's schema and rows for each, exactly, cut by Spark and by kernels; the rows."""
        expected = self.spark_rows(*selects)
        for cut in ("jvm", "driver"):
            self.cut = cut
            for select, ours, theirs in zip(selects, self.weft(*selects), expected, strict=True):
                assert isinstance(ours, Rows), f"{cut}\n{select}\n{ours}"
                outcome = compare.compare(asked(select, len(theirs.schema.fields)), ours, theirs)
                assert outcome.difference is None, f"{cut}\n{select}\n{self.stream}\n{outcome.difference}"
        return expected


def read(answers: Any, name: str) -> Rows | PySparkException:
    """The rows of one query, or what Spark raises when its select list is computed."""
    try:
        return Rows.of(answers[name])
    except PySparkException as error:
        return error


def asked(select: str, columns: int = 0) -> Asked:
    """A query all of whose columns are exact."""
    return Asked("q", select, select, select, (Judged(),) * columns)
