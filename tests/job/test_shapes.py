"""A name of other columns: the query is refused, and no sink is given what it has no place for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from live.driven import SECOND, Driven, Row
from live.live_cases import BEGIN

SUMS = "SELECT window.start AS s, k, {} AS n FROM s GROUP BY window(ts, '10 seconds'), k"
KEYLESS = "SELECT window.start AS s, max(k) AS k, sum(v) AS n FROM s GROUP BY window(ts, '10 seconds')"


def batch(number: int) -> list[Row]:
    return [(BEGIN + (number * 10 + second) * SECOND, "a", second, 0.5) for second in range(10)]


def replace(driven: Driven, name: str, text: str) -> None:
    driven.catalog.add(f"CREATE OR REPLACE VIEW {name} AS {text}")


def state(driven: Driven, name: str) -> tuple[str, str]:
    entry = [entry for entry in driven.catalog.entries() if entry.name == name][-1]
    return entry.state, entry.reason or ""


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        (SUMS.format("avg(v)"), "s timestamp, k string, n double"),
        (SUMS.replace("AS n", "AS m").format("sum(v)"), "s timestamp, k string, m bigint"),
        (KEYLESS, r"s timestamp, k string, n bigint \(a row a s\)"),
    ],
)
def test_a_query_of_other_columns_cannot_take_a_name_that_was_used(
    spark: SparkSession, tmp_path: Path, text: str, answers: str
) -> None:
    driven = Driven(spark, tmp_path, 0)
    driven.add({"q": SUMS.format("sum(v)"), "other": SUMS.format("count(*)")})
    for number in range(3):
        driven.feed(batch(number))
    replace(driven, "q", text)
    driven = Driven(spark, tmp_path, 0, driven.sink)
    driven.feed(batch(3))
    found, reason = state(driven, "q")
    assert found == "refused"
    assert re.search(answers, reason)
    assert "choose another name" in reason
    assert driven.rows("q").total() == 3, "the query that was there goes on"
    driven.catalog.drop("q")
    replace(driven, "Q", SUMS.format("max(v)"))
    driven.feed(batch(4))
    driven.job.drain()
    assert state(driven, "Q")[0] == "active", "the columns are the same"
    assert driven.rows("other").total() == 5
    assert {len(row) for row in driven.rows("q")} == {3}
