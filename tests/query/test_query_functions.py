"""The frozen lists of functions against the Spark that is installed."""

from __future__ import annotations

from typing import Any

import pytest

from weft.query.allowed import ALLOWED, GROUPS, KNOWN, OF_OTHER_GROUPS
from weft.query.functions import AGGREGATES_OF_SPARK, GENERATORS, NONDETERMINISTIC, SUPPORTED, WINDOW_FUNCTIONS

# In Spark an expression is one of these if its value is another at each call.
VOLATILE_TRAITS = ["Nondeterministic", "ExpressionWithRandomSeed"]


@pytest.fixture(scope="module")
def functions(spark: Any) -> dict[str, Any]:
    """What Spark's registry says of each of its functions."""
    registry = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.expressions()
    names = [name for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    return {name: registry.get(name).get()._1() for name in names if registry.contains(name)}


@pytest.fixture(scope="module")
def groups(functions: dict[str, Any]) -> dict[str, set[str]]:
    """The names of Spark's functions by their group."""
    found: dict[str, set[str]] = {}
    for name, info in functions.items():
        found.setdefault(info.getGroup(), set()).add(name)
    return found


def test_every_aggregate_of_spark_is_known(groups: dict[str, set[str]]) -> None:
    assert groups["agg_funcs"] <= AGGREGATES_OF_SPARK
    assert SUPPORTED.keys() <= AGGREGATES_OF_SPARK


def test_every_window_function_and_generator_of_spark_is_known(groups: dict[str, set[str]]) -> None:
    assert groups["window_funcs"] <= WINDOW_FUNCTIONS
    assert groups["generator_funcs"] <= GENERATORS


def test_every_volatile_function_of_spark_is_known(spark: Any, functions: dict[str, Any]) -> None:
    by_name = spark._jvm.java.lang.Class.forName
    traits = [by_name(f"org.apache.spark.sql.catalyst.expressions.{trait}") for trait in VOLATILE_TRAITS]
    volatile = set()
    for name, info in functions.items():
        expression = by_name(info.getClassName())
        if any(trait.isAssignableFrom(expression) for trait in traits):
            volatile.add(name)
    assert {"rand", "uuid"} <= volatile <= NONDETERMINISTIC


def test_the_groups_that_queries_may_call_are_those_of_spark(groups: dict[str, set[str]]) -> None:
    for group, names in GROUPS.items():
        assert names == {name for name in groups[group] if name.isidentifier()}, group


def test_every_function_of_spark_is_known_and_no_other(groups: dict[str, set[str]]) -> None:
    functions = {name for names in groups.values() for name in names if name.isidentifier()}
    assert functions <= KNOWN
    assert functions >= OF_OTHER_GROUPS
    # what is no function of the registry: tables, and generators that stand in FROM
    assert KNOWN - functions <= GENERATORS | {"collations", "range", "sql_keywords", "python_worker_logs"}


def test_no_aggregate_generator_or_random_function_of_spark_may_be_called(
    spark: Any, functions: dict[str, Any]
) -> None:
    by_name = spark._jvm.java.lang.Class.forName
    package = "org.apache.spark.sql.catalyst.expressions"
    traits = [f"{package}.{trait}" for trait in (*VOLATILE_TRAITS, "Generator")]
    traits += [f"{package}.aggregate.AggregateFunction", f"{package}.RuntimeReplaceableAggregate"]
    classes = [by_name(trait) for trait in traits]
    wrong = {
        name
        for name in ALLOWED & functions.keys()
        if any(trait.isAssignableFrom(by_name(functions[name].getClassName())) for trait in classes)
    }
    assert not wrong
