"""What a running stream knows of each of its queries."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from live.driven import SECOND, Driven
from live.live_cases import BEGIN
from weft.job.records import Manifest
from weft.job.tallies import Tallies, last_end
from weft.slicing.time_window import TimeWindow
from weft.spark.live.finals_place import FinalsPlace

SUMS = "SELECT k, window.start AS s, sum(v) {}AS n FROM s GROUP BY k, window(ts, '10 seconds')"
LONG = "SELECT window.start AS s, max(x) AS x FROM s GROUP BY window(ts, '1 day')"


def batch(number: int) -> list[tuple[int, str, int, float]]:
    return [(BEGIN + (number * 10 + second) * SECOND, "ab"[second % 2], second, 0.5) for second in range(10)]


@pytest.mark.parametrize("place", ["driver", "executors"])
def test_answers_rows_time_state_and_lag_are_told_of_each_query(
    spark: SparkSession, tmp_path: Path, place: FinalsPlace
) -> None:
    driven = Driven(spark, tmp_path, 0, finals=place)
    tallies = Tallies()
    seconds: list[float] = []
    driven.job.listeners = [tallies.note, lambda job, manifest: seconds.append(manifest.counts["seconds"])]
    driven.add({"sums": SUMS.format(""), "equal": SUMS.format(""), "computed": SUMS.format("+ 1 "), "long": LONG})
    began = time.time()
    for number in range(3):
        driven.feed(batch(number))
    told = tallies.figures()
    assert told.keys() == {"sums", "equal", "computed", "long"}
    assert {name: one["answers"] for name, one in told.items()} == {"sums": 4, "equal": 4, "computed": 4, "long": 0}
    assert {one["rows"] for one in told.values()} == {30}
    assert sum(one["seconds"] for one in told.values()) == pytest.approx(sum(seconds), abs=0.001)
    assert all(one["seconds"] > 0 for one in told.values())
    assert 0 < sum(one["state_bytes"] for one in told.values()) <= driven.job.last.counts["state_bytes"]
    assert told["long"]["answered_at"] is None and told["long"]["lag_seconds"] is None
    answered, lag = told["sums"]["answered_at"], told["sums"]["lag_seconds"]
    assert answered is not None and began <= answered <= time.time()
    assert lag == pytest.approx(answered - (BEGIN + 20 * SECOND) / 1e6, abs=0.01)


def test_a_query_that_comes_later_counts_from_then_on_and_one_that_goes_is_forgotten(
    spark: SparkSession, tmp_path: Path
) -> None:
    driven = Driven(spark, tmp_path, 0)
    tallies = Tallies()
    driven.job.listeners = [tallies.note]
    driven.add({"first": SUMS.format("")})
    driven.feed(batch(0))
    driven.add({"second": LONG})
    driven.feed(batch(1))
    assert {name: one["rows"] for name, one in tallies.figures().items()} == {"first": 20, "second": 10}
    driven.catalog.drop("first")
    driven.add({"first": SUMS.format("")})
    driven.feed(batch(2))
    assert {name: one["rows"] for name, one in tallies.figures().items()} == {"first": 10, "second": 20}
    driven.catalog.drop("second")
    driven.feed(batch(3))
    assert tallies.figures().keys() == {"first"}


@pytest.mark.parametrize(
    ("watermark", "largest", "drained", "end"),
    [
        (100, 100, False, 100),
        (109, 120, False, 100),
        (110, 120, False, 110),
        (95, 118, True, 140),
        (None, None, False, None),
    ],
)
def test_the_last_answered_window_ends_where_arithmetic_says(
    watermark: int | None, largest: int | None, drained: bool, end: int | None
) -> None:
    manifest = Manifest(batch=0, plan=1, epoch=1, watermark=watermark, largest=largest, drained=drained)
    assert last_end(TimeWindow(range=30, slide=10), manifest) == end
