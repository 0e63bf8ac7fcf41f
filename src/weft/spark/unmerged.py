"""Slices as the map tasks made them, with no second aggregation: a slice that two tasks saw comes twice.

Spark aggregates twice, in every map task and again after a shuffle. Where rows come in the order of time, map tasks
hardly share slices, and the second time costs a shuffle and a hash table for nothing; slices that do come twice are
merged with their shards anyway (docs/decisions/0004). What a map task holds of an aggregate is a buffer of one or
more columns, from which the value is read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

BUFFERS: dict[str, tuple[tuple[str, ...], str]] = {
    "count": (("count",), "{0}"),
    "count_if": (("count",), "{0}"),
    "regr_count": (("count",), "{0}"),
    "sum": (("sum",), "{0}"),
    "min": (("min",), "{0}"),
    "max": (("max",), "{0}"),
    "bool_and": (("min",), "{0}"),
    "bool_or": (("max",), "{0}"),
    "var_pop": (("n", "avg", "m2"), "CASE WHEN {0} > 0 THEN {2} / {0} END"),
    "regr_sxy": (("n", "xAvg", "yAvg", "ck"), "CASE WHEN {0} > 0 THEN {3} END"),
}
"""The columns of an aggregate's buffer by their names in Spark, and its value as text."""


MOST_TASKS = 64
"""With more map tasks than these a slice might come too often, were the rows in another order than they seemed."""


def unmerged(merged: DataFrame, aggregates: Sequence[str]) -> DataFrame | None:
    """The rows that map tasks make of a grouped frame, or None where their buffers cannot be read."""
    functions = [text.split("(", 1)[0] for text in aggregates]
    if not all(function in BUFFERS for function in functions):
        return None
    shuffle = first_shuffle(merged)
    if shuffle is None or shuffle.child().outputPartitioning().numPartitions() > MOST_TASKS:
        return None
    schema = shuffle.child().schema()
    buffers = [name for function in functions for name in BUFFERS[function][0]]
    keys, values = merged.columns[: -len(aggregates)], merged.columns[-len(aggregates) :]
    if list(schema.fieldNames())[len(keys) :] != buffers:
        # equal aggregates that Spark made one, or the sum of a decimal, with a flag beside it
        return None
    spark = merged.sparkSession
    rows = spark._jsparkSession.internalCreateDataFrame(shuffle.child().execute(), schema, False)
    numbered = ClassicDataFrame(rows, spark).toDF(*keys, *(f"b{number}" for number in range(len(buffers))))
    named = zip(read(functions), values, strict=True)
    return numbered.selectExpr(*keys, *(f"{value} AS {name}" for value, name in named))


def read(functions: Iterable[str]) -> Iterator[str]:
    """The values of aggregates whose buffers' columns are called b0, b1, ... one after another.

    Examples
    --------
    >>> list(read(["var_pop", "count"]))
    ['CASE WHEN b0 > 0 THEN b2 / b0 END', 'b3']
    """
    at = 0
    for function in functions:
        names, value = BUFFERS[function]
        yield value.format(*(f"b{at + place}" for place in range(len(names))))
        at += len(names)


def first_shuffle(frame: DataFrame) -> Any:
    """The node of Spark's plan below which map tasks run, if they are all of one kind."""
    node = frame._jdf.queryExecution().executedPlan()
    while node.getClass().getSimpleName() != "ShuffleExchangeExec":
        children = node.children()
        if children.size() != 1:
            return None
        node = children.head()
    return node
