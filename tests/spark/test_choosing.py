"""The engine that cuts rows is the cheapest for the plan and its rows, and no more is brought than fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import weft
from live.driven import SECOND, Driven
from live.live_cases import BEGIN
from weft.optimize.constants import Constants
from weft.plan.model import Plan
from weft.spark.choosing import CutChooser, estimated_rows
from weft.spark.fetching import MOST, TooLargeError, brought

NARROW = "SELECT window.start, sum(v) AS s FROM t GROUP BY window(ts, '1 hour')"
WIDE = ";\n".join(
    f"SELECT v % {keys} AS k, window.start, sum(v), max(v + 1), min(v - 1), avg(v * 2), stddev(v) FROM t "
    f"GROUP BY v % {keys}, window(ts, '1 hour')"
    for keys in range(2, 14)
)


def rows_of(spark: Any, count: int) -> Any:
    return spark.range(count).selectExpr("timestamp_micros(id * 1000) AS ts", "id AS v")


def planned(spark: Any, rows: Any, sql: str) -> Plan:
    engine = weft.Engine(spark).stream("t", rows, "ts")
    engine.sql(sql)
    (plan,) = engine.plans()
    return plan


@pytest.mark.parametrize(
    ("sql", "count", "here", "chosen"),
    [
        (NARROW, 1_000, True, "driver"),
        (NARROW, 1_000, False, "jvm"),
        (NARROW, 50_000_000, True, "jvm"),
        (WIDE, 20_000, True, "driver"),
        (WIDE, 50_000_000, True, "workers"),
    ],
)
def test_few_rows_go_to_the_driver_many_of_a_wide_plan_to_workers_and_of_a_narrow_one_to_the_jvm(
    spark: Any, sql: str, count: int, here: bool, chosen: str
) -> None:
    rows = rows_of(spark, 100)
    chooser = CutChooser(planned(spark, rows, sql), rows, "auto", Constants(), here=here)
    found = chooser.chosen(count, count / 1000)
    assert found.engine == chosen, found.why


def test_what_spark_knows_of_rows_is_used_and_where_it_knows_nothing_no_rows_are_brought(spark: Any) -> None:
    rows = rows_of(spark, 100)
    assert estimated_rows(rows) == pytest.approx(100, rel=0.5)
    unknown = spark.createDataFrame([(1, 2)] * 3, "a int, v int").selectExpr("timestamp_micros(a) AS ts", "v")
    assert estimated_rows(unknown) is None
    plan = planned(spark, rows, WIDE)
    assert "driver" in CutChooser(plan, rows, "auto", Constants()).chosen().why
    assert "driver" not in CutChooser(plan, unknown, "auto", Constants()).chosen().why


def test_explain_tells_the_engine_and_what_others_would_take(spark: Any) -> None:
    engine = weft.Engine(spark).stream("t", rows_of(spark, 100), "ts")
    engine.sql(NARROW)
    told = re.search(r"rows are cut in this process, by compiled kernels \((.*)\)", engine.explain())
    assert told is not None and re.fullmatch(r"for some \d+ rows: driver .* s, jvm .* s, workers .* s", told[1])


@contextmanager
def room_for(spark: Any, size: str) -> Iterator[None]:
    """What tasks may send to the driver, for a while."""
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get(MOST, "1g")
    conf.set(MOST, size)
    try:
        yield
    finally:
        conf.set(MOST, before)


def test_rows_that_are_too_many_for_the_driver_are_cut_in_the_workers(spark: Any, tmp_path: Any) -> None:
    rows = rows_of(spark, 200_000)
    engine = weft.Engine(spark, cut="driver").stream("t", rows, "ts")
    (name,) = engine.sql(NARROW)
    with room_for(spark, "1m"):
        with pytest.raises(TooLargeError, match="larger than spark"):
            brought(rows)
        assert [row["s"] for row in engine.run()[name].collect()] == [sum(range(200_000))]
        driven = Driven(spark, tmp_path, 0, finals="driver", cut="driver")
        driven.add({"sums": "SELECT window.start, sum(v) AS s FROM s GROUP BY window(ts, '10 seconds')"})
        driven.feed([(BEGIN, "a", number, 0.0) for number in range(100_000)])
        driven.feed([(BEGIN + 20 * SECOND, "a", 1, 0.0)])
    assert [row[1] for row in driven.rows("sums")] == [sum(range(100_000))]
