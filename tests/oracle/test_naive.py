"""The naive evaluator against Spark: two oracles that know nothing of each other must agree."""

from __future__ import annotations

import math
import os
import random
from fractions import Fraction
from typing import Any

import pytest

from oracle import naive
from oracle.compare import NAN, Rows, oracle_session
from oracle.data import INTEGERS, KEYS_ONLY, Column, Stream
from oracle.expressions import Scalar
from oracle.generate import shape, workload
from oracle.queries import QueryWriter, interval

EXACT = ("count", "min", "max")
MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis")


@pytest.mark.parametrize("seed", range(1, 9, 1 if os.environ.get("WEFT_LONG") else 2))
def test_the_naive_evaluator_agrees_with_spark_on_every_aggregate_of_every_column(spark: Any, seed: int) -> None:
    made = workload(shape(seed * 7919, queries=0))
    stream, rnd = made.stream, random.Random(seed)
    session = oracle_session(spark)
    session.createDataFrame(stream.arrow(), schema=stream.ddl).createOrReplaceTempView(stream.name)
    rows = [dict(zip(stream.values, values, strict=True)) for values in zip(*stream.values.values(), strict=True)]
    calls = aggregates_of(stream)
    range_, slide, start = QueryWriter(rnd, stream, made.shape.span).window()
    window = f"window(`{stream.event_time}`, '{range_} microseconds', '{slide} microseconds', '{start} microseconds')"
    names = [column.name for column in plain_columns(stream)]
    for keys in ((), tuple(names[:1]), tuple(names[:2])):
        columns = ["window.start", *(f"`{key}`" for key in keys), *(sql(call) for call in calls)]
        groups = ", ".join([window, *(f"`{key}`" for key in keys)])
        text = f"SELECT {', '.join(columns)} FROM {stream.name} GROUP BY {groups}"
        found = {
            (row[0], tuple("NaN" if part is NAN else part for part in row[1 : 1 + len(keys)])): row[1 + len(keys) :]
            for row in Rows.of(session.sql(text)).rows
        }
        windows = naive.Window(range_, slide, start)
        exact = naive.answers(rows, windows, calls, keys=keys, event_time=stream.event_time)
        assert found.keys() == exact.keys(), text
        scales = scales_of(rows, windows, calls, keys, stream.event_time)
        for place, values in exact.items():
            for call, ours, spark_value, scale in zip(calls, values, found[place], scales[place], strict=True):
                assert agrees(call.function, ours, spark_value, scale), (sql(call), place, ours, spark_value, text)


def plain_columns(stream: Stream) -> list[Column]:
    """The columns whose values Python compares as Spark does."""
    return [column for column in stream.columns if column.type not in KEYS_ONLY]


def aggregates_of(stream: Stream) -> list[naive.Aggregate]:
    """Every aggregate that its type allows, of every column, where no sum can overflow."""
    calls = [naive.Aggregate("count")]
    plain = plain_columns(stream)
    numbers = [c for c in plain if Scalar("", c.type).is_number]
    for column in plain:
        functions = [*EXACT, "first", "last"]
        if column in numbers:
            functions += MOMENTS
            exact = column.type not in ("float", "double")
            if not exact or column.bound * max(1, stream.rows) < min(2**63, 10**20):
                functions += ["sum", "avg"]
        if column.type in INTEGERS:
            functions += ["bit_and", "bit_or", "bit_xor"]
        if column.type == "boolean":
            functions += ["bool_and", "bool_or", "count_if"]
        calls += [naive.Aggregate(function, (column.name,)) for function in functions]
        calls += [naive.Aggregate(f, (column.name, plain[-1].name)) for f in ("min_by", "max_by")]
    if numbers:
        pair = (numbers[0].name, numbers[-1].name)
        calls += [naive.Aggregate(function, pair) for function in ("covar_pop", "covar_samp", "corr")]
    return calls


def sql(call: naive.Aggregate) -> str:
    """A call as Spark is asked; first and last are left to the naive evaluator's own ties."""
    arguments = ", ".join(f"`{argument}`" for argument in call.arguments) or "*"
    return f"{call.function}({arguments})"


def scales_of(
    rows: list[dict[str, Any]],
    windows: naive.Window,
    calls: list[naive.Aggregate],
    keys: tuple[str, ...],
    event_time: str,
) -> dict[Any, list[list[Any]]]:
    """The argument values of each call in each window: what bounds are computed from."""
    lists: dict[Any, list[list[Any]]] = {}
    for row in rows:
        if row[event_time] is None:
            continue
        key = tuple(naive.as_key(row[key]) for key in keys)
        for start in windows.starts(row[event_time]):
            place = lists.setdefault((start, key), [[] for _ in calls])
            for values, call in zip(place, calls, strict=True):
                present = tuple(row[argument] for argument in call.arguments)
                if None not in present:
                    values.append(present)
    return lists


def agrees(function: str, exact: Any, spark: Any, values: list[tuple[Any, ...]]) -> bool:
    """Whether Spark's value is the exact one, within the bound that semantics 3 gives to doubles."""
    if function in ("min_by", "max_by"):
        return ("NaN" if spark is NAN else spark) in exact
    if function in ("first", "last"):
        return True if values else spark is None
    if exact is None or spark is None:
        return exact is spark or (function in ("skewness", "kurtosis", "corr") and degenerate(values))
    if isinstance(exact, float) and math.isnan(exact):
        return spark is NAN
    if isinstance(exact, float) and math.isinf(exact):
        return spark == exact
    if not isinstance(spark, float) or function in EXACT:
        return spark == naive.as_key(exact) or spark == exact
    if function in ("sum", "avg"):
        size = naive.magnitude(v for (v,) in values)
        return abs(Fraction(spark) - exact) <= Fraction(1, 10**9) * size / (len(values) if function == "avg" else 1)
    if function in ("skewness", "kurtosis", "corr"):
        return degenerate(values) or math.isclose(spark, exact, rel_tol=1e-5, abs_tol=1e-5)
    spread = math.prod(math.sqrt(naive.variance(list(side), 0)) for side in zip(*values, strict=True))
    scale = math.prod(math.sqrt(mean_square(side)) for side in zip(*values, strict=True))
    if function.startswith("covar"):
        return abs(spark - exact) <= 1e-9 * spread + 1e-12 * scale
    slack = 2e-9 * spread**2 + 2e-12 * spread * scale + 1e-20 * scale**2
    return abs(spark - exact) <= (slack if function.startswith("var") else math.sqrt(slack))


def mean_square(values: Any) -> float:
    """The mean of squares."""
    return float(sum(Fraction(v) ** 2 for v in values) / len(values))


def degenerate(values: list[tuple[Any, ...]]) -> bool:
    """Whether a variance is too small beside the mean square for its quotients to be compared."""
    return any(
        not side or naive.variance(list(side), 0) <= 1e-12 * mean_square(side) for side in zip(*values, strict=True)
    )


def test_first_and_last_are_the_values_of_the_earliest_and_latest_rows() -> None:
    rows = [{"ts": 5, "x": "c"}, {"ts": 1, "x": None}, {"ts": 5, "x": "d"}, {"ts": None, "x": "never"}]
    found = naive.answers(
        rows, naive.Window(10, 10), [naive.Aggregate("first", ("x",)), naive.Aggregate("last", ("x",))]
    )
    assert found == {(0, ()): (frozenset([None]), frozenset(["c", "d"]))}


def test_rows_between_windows_belong_to_none_where_the_range_is_shorter_than_the_slide() -> None:
    rows = [{"ts": time, "x": time} for time in range(-10, 10)]
    found = naive.answers(rows, naive.Window(2, 5), [naive.Aggregate("sum", ("x",))])
    assert found == {(-10, ()): (-19,), (-5, ()): (-9,), (0, ()): (1,), (5, ()): (11,)}


def test_a_length_of_time_is_written_so_that_spark_reads_the_same(spark: Any) -> None:
    rnd = random.Random(3)
    for microseconds in (1, 999, 60_000_000, 5_400_000_000, 86_400_000_001, 604_800_000_000):
        for _ in range(4):
            text = f"SELECT window(TIMESTAMP'1970-01-01 00:00:00', '{interval(microseconds, rnd)}') AS w"
            ((start, end),) = Rows.of(spark.sql(text)).rows[0]
            assert end - start == microseconds, text
