"""A live job weaves its queries as a batch run does, in its first plan and when queries come, and answers the same."""

from __future__ import annotations

import random

import pytest

from live.driven import SECOND, Driven
from live.live_cases import BEGIN, Case, model, sql
from weft.cli.run import running_plan
from weft.errors import UseError
from weft.optimize.weaving import Weaving
from weft.slicing.time_window import TimeWindow

LATENESS = 10 * SECOND
WINDOWS = ((30, 10), (21, 7), (20, 5), (22, 11), (36, 9), (10, 10))
FORESTS = {
    "a tree a query, rows cut once": Weaving("no-share", "three-level"),
    "a tree a query, each cuts the rows": Weaving("no-share", "two-level"),
    "woven": Weaving("weave-share", "two-level"),
    "as seconds tell": Weaving("weft", "calibrated"),
}


def cases(windows=WINDOWS) -> dict[str, Case]:
    aggregates = ("count(*)", "sum(v)", "max(v)", "min(k)")
    return {
        f"q{number}": Case(
            TimeWindow(length * SECOND, slide * SECOND),
            50 if number % 3 == 2 else None,
            number % 2 == 0,
            aggregates[: 1 + number % 4],
        )
        for number, (length, slide) in enumerate(windows)
    }


def batches(count: int) -> list[list[tuple]]:
    rnd = random.Random(11)
    return [
        [
            (BEGIN + (12 * number + rnd.randrange(-5, 12)) * SECOND, rnd.choice("ab"), rnd.randrange(100), 0.0)
            for _ in range(30)
        ]
        for number in range(count)
    ]


def run(spark, folder, weaving: Weaving, finals: str = "driver") -> Driven:
    queries = cases()
    naive = model(queries, LATENESS)
    driven = Driven(spark, folder, LATENESS, finals=finals, weaving=weaving)
    driven.add({name: sql(query) for name, query in queries.items()})
    for number, rows in enumerate(batches(5)):
        if number == 3:
            driven = Driven(spark, folder, LATENESS, driven.sink, finals, weaving=weaving)
        naive.feed(rows)
        driven.feed(rows)
    naive.drain()
    driven.job.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])
    return driven


@pytest.mark.parametrize("forest", FORESTS)
def test_a_woven_stream_gives_the_answers_of_the_naive_one(spark, tmp_path, forest):
    driven = run(spark, tmp_path, FORESTS[forest])
    trees = [tree for grouping in driven.job.live.plan.groupings for tree in grouping.trees]
    assert sorted(name for tree in trees for name in tree.queries) == sorted(cases())
    if "a query" in forest:
        assert len(trees) == len(WINDOWS)


def test_trees_on_nodes_are_groupings_whose_slices_stay_there(spark, tmp_path):
    driven = run(spark, tmp_path, Weaving("w-tl", "two-level", (1.0, 1.0)), finals="executors")
    assert {one.node for one in driven.job.live.record.groupings} == {0, 1}


def test_nodes_need_executors(spark, tmp_path):
    with pytest.raises(UseError, match="nodes are executors"):
        Driven(spark, tmp_path, LATENESS, finals="driver", weaving=Weaving(capacities=(1.0, 1.0)))


def test_a_query_that_comes_is_woven_with_those_that_run_and_the_plan_is_told(spark, tmp_path):
    driven = Driven(spark, tmp_path, LATENESS, finals="driver", weaving=FORESTS["a tree a query, rows cut once"])
    assert "no plan yet" in running_plan(driven.catalog)
    queries = cases()
    driven.add({name: sql(queries[name]) for name in ("q0", "q2")})
    first, second, *_ = batches(2)
    driven.feed(first)
    driven.add({"q4": sql(queries["q4"])})
    driven.feed(second)
    driven.feed([(BEGIN + 100 * SECOND, "a", 1, 0.0)])
    (grouping,) = [one for one in driven.job.live.record.groupings if "q0" in one.queries]
    assert sorted(tree.queries for tree in grouping.trees) == [("q0",), ("q2",), ("q4",)]
    told = running_plan(driven.catalog)
    assert "3 queries in one pass" in told
    assert ": 1 query: q4" in told
