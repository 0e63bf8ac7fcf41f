"""A forest runs: rows cut once or once a tree, trees on nodes, and answers that never depend on it."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

import weft
from weft.errors import WeftError
from weft.optimize.weaving import Weaving

SELECTS = (
    "SELECT k, window, sum(x), count(*) FROM s GROUP BY k, window(ts, '21 seconds', '7 seconds')",
    "SELECT k, window, max(x), min(x) FROM s GROUP BY k, window(ts, '11 seconds')",
    "SELECT k, window, avg(x) FROM s WHERE x > 10 GROUP BY k, window(ts, '30 seconds', '13 seconds')",
    "SELECT k, window, sum(x) FROM s GROUP BY k, window(ts, '60 seconds', '20 seconds', '3 seconds')",
    "SELECT k, window.start, sum(d) FROM s GROUP BY k, window(ts, '2 minutes', '45 seconds')",
    "SELECT k, window, sum(x) FILTER (WHERE y = 'a') FROM s GROUP BY k, window(ts, '90 seconds', '17 seconds')",
    "SELECT k, y, window, count(x) FROM s GROUP BY k, y, window(ts, '1 minute', '30 seconds')",
    "SELECT k, window, max(y) FROM s GROUP BY k, window(ts, '19 seconds')",
    "SELECT window, sum(x) * 2, max(d) FROM s GROUP BY window(ts, '23 seconds')",
    "SELECT window, count(*) FROM s WHERE k = 2 GROUP BY window(ts, '29 seconds', '14500 milliseconds')",
    "SELECT window, sum(x) AS total FROM s GROUP BY window(ts, '1 minute') HAVING sum(x) > 100",
    "SELECT y, window, sum(x) FROM s GROUP BY y, window(ts, '31 seconds')",
    "SELECT y, window, covar_pop(x, d) FROM s WHERE d < 5 GROUP BY y, window(ts, '37 seconds', '25 seconds')",
)
KEYLESS = tuple(
    f"SELECT window, sum(x) AS total, max(x) AS most FROM s GROUP BY window(ts, '{length} seconds', '{slide} seconds')"
    for slide in (7, 11, 13, 17)
    for length in (slide, 2 * slide, 5 * slide)
)


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    return spark.range(4_000).selectExpr(
        "timestamp_micros(1700000000000000 + id * 137000) AS ts",
        "int(id % 5) AS k",
        "bigint(pmod(xxhash64(id), 50)) AS x",
        "double(id % 9) AS d",
        "element_at(array('a', 'b', 'c'), int(1 + id % 3)) AS y",
    )


def engine(spark: Any, rows: Any, selects: tuple[str, ...] = SELECTS, **options: Any) -> weft.Engine:
    made = weft.Engine(spark, **options).stream("s", rows, "ts")
    made.sql(";\n".join(selects))
    return made


def answers(made: weft.Engine) -> dict[str, Counter[Any]]:
    ran = made.run()
    assert not ran.failures
    return {name: Counter(map(_rounded, ran[name].collect())) for name in ran}


def _rounded(row: Any) -> tuple[Any, ...]:
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


@pytest.fixture(scope="module")
def expected(spark: Any, rows: Any) -> dict[str, Counter[Any]]:
    return answers(engine(spark, rows))


@pytest.mark.parametrize("seed", [1, 2, 3] if os.environ.get("WEFT_LONG") else [1])
@pytest.mark.parametrize("model", ["two-level", "three-level"])
def test_answers_are_those_of_the_default_plan_whatever_the_forest(
    spark: Any, rows: Any, expected: dict[str, Counter[Any]], model: Any, seed: int
) -> None:
    made = engine(spark, rows)
    made.weaving = Weaving("random", model, seed=seed)
    assert answers(made) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"nodes": 3},
        {"nodes": [3.0, 1.0], "optimizer": "weave-share", "model": "three-level"},
        {"nodes": 4, "optimizer": "wg-i", "model": "two-level"},
        {"nodes": 2, "optimizer": "no-share", "model": "three-level", "buckets": 6},
    ],
)
def test_answers_are_those_of_the_default_plan_on_any_number_of_nodes(
    spark: Any, rows: Any, expected: dict[str, Counter[Any]], options: dict[str, Any]
) -> None:
    assert answers(engine(spark, rows, **options)) == expected


def test_random_forests_differ_and_two_levels_cut_the_rows_once_a_tree(spark: Any, rows: Any) -> None:
    made = engine(spark, rows, KEYLESS)
    made.weaving = Weaving("random", "two-level", seed=1)
    (two,) = made.plans()
    made.weaving = Weaving("random", "three-level", seed=1)
    (three,) = made.plans()
    assert len(two.groupings) > 1
    assert all(len({tree.progressions for tree in grouping.trees}) == 1 for grouping in two.groupings)
    assert len(three.groupings) == 1
    trees = {tree.progressions for tree in three.groupings[0].trees}
    assert trees == {grouping.progressions for grouping in two.groupings}


def test_queries_without_keys_run_as_many_balanced_tasks_as_there_are_nodes(spark: Any, rows: Any) -> None:
    made = engine(spark, rows, KEYLESS, nodes=3)
    ran = made.run()
    # a file of each query, named by the task that wrote it
    files = Counter(file.rsplit("-", 1)[0] for name in ran for file in ran.outcome(name).files)
    assert len(files) == 3
    assert sum(files.values()) == len(KEYLESS)
    assert max(files.values()) <= 2 * min(files.values())


def test_queries_without_keys_keep_all_cores_busy_unasked(spark: Any, rows: Any) -> None:
    (plan,) = engine(spark, rows, KEYLESS).plans()
    cores = spark.sparkContext.defaultParallelism
    assert {tree.node for grouping in plan.groupings for tree in grouping.trees} == set(range(cores))


def test_explain_shows_the_forest(spark: Any, rows: Any) -> None:
    told = engine(spark, rows, KEYLESS, nodes=2, optimizer="random", model="three-level").explain()
    assert "rows are cut once for all of them" in told
    assert "on node 0" in told
    assert "on node 1" in told


def test_an_unknown_optimizer_is_refused_with_the_nearest_name(spark: Any) -> None:
    with pytest.raises(WeftError, match="did you mean weave-share"):
        weft.Engine(spark, optimizer="weave-shar")
