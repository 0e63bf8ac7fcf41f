"""Which calls of an aggregate Spark and Weft take, over the columns of the samples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.algebra.aggregate import Aggregate, UnsupportedAggregateError
from weft.algebra.measure import Measure, Recipe
from weft.algebra.registry import AGGREGATES
from weft.checks.samples import ARGUMENTS, SCHEMA
from weft.spark.bind import arrow_type

FURTHER = "d"
"""What stands behind the first argument: no two rows have the same value, so that no order is tied."""
TELLING = ("l", "d", "n")
"""First arguments that are enough where every call costs time."""

_MISREAD = re.compile(r"cast\(s#\d+ as (?!double)")
"""Texts of the samples are numbers: what Spark reads them as, where it wants no text, must be one."""


@dataclass(frozen=True, slots=True)
class SampledCall:
    """An aggregate over some columns of the samples."""

    aggregate: Aggregate
    arguments: tuple[str, ...]
    recipe: Recipe
    result: pa.DataType

    @property
    def sql(self) -> str:
        """As people write it."""
        return f"{self.aggregate.name}({', '.join(self.arguments)})"

    @property
    def in_spark(self) -> str:
        """As Spark is asked."""
        return in_spark(self.aggregate, self.arguments)

    def columns(self) -> list[str]:
        """What Spark computes of a slice."""
        return [text for measure in self.recipe.measures for text in self.columns_of(measure)]

    def columns_of(self, measure: Measure) -> list[str]:
        """What it computes for one of the measures."""
        return [text.format(*_kept(self.aggregate, self.arguments)[1]) for text in measure.columns]


def in_spark(aggregate: Aggregate, arguments: tuple[str, ...]) -> str:
    """A call as Spark is asked: what is first by event time, Spark has to be told."""
    kept, columns = _kept(aggregate, arguments)
    return kept.spelled(columns)


def _kept(aggregate: Aggregate, arguments: tuple[str, ...]) -> tuple[Aggregate, tuple[str, ...]]:
    """The aggregate that it is, and of what."""
    if aggregate.by_event_time is None:
        return aggregate, arguments
    return AGGREGATES[aggregate.by_event_time], (*arguments, "ts")


def sampled_calls(aggregate: Aggregate, rows: DataFrame) -> list[SampledCall]:
    """The calls that both take."""
    return [call for arguments in _arguments(aggregate) if (call := _taken(aggregate, arguments, rows)) is not None]


def telling(calls: list[SampledCall]) -> list[SampledCall]:
    """A few of the calls: of integers, doubles and decimals, else any."""
    return [call for call in calls if call.arguments[0] in TELLING and set(call.arguments[1:]) <= {FURTHER}] or calls[
        :2
    ]


def _arguments(aggregate: Aggregate) -> Iterator[tuple[str, ...]]:
    if aggregate.by_event_time is not None:  # the others say IGNORE NULLS
        yield from ((name,) for name in ARGUMENTS.names)
        return
    for many in sorted({aggregate.least, aggregate.most or aggregate.least + 1}):
        yield from ((first, *(FURTHER,) * (many - 1)) for first in ARGUMENTS.names)
        yield from ((*(FURTHER,) * (many - 1), last) for last in TELLING if many > 1)


def _taken(aggregate: Aggregate, arguments: tuple[str, ...], rows: DataFrame) -> SampledCall | None:
    kept, columns = _kept(aggregate, arguments)
    try:
        frame = rows.agg(F.expr(in_spark(aggregate, arguments)))
        result = frame.schema[0].dataType
        if _MISREAD.search(frame._jdf.queryExecution().analyzed().toString()):
            return None
        recipe = kept.kept([SCHEMA.field(name).type for name in columns])
    except (PySparkException, UnsupportedAggregateError):
        return None
    return SampledCall(aggregate, arguments, recipe, arrow_type(result))
