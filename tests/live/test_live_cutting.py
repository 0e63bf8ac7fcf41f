"""A stream gives the same answers whoever cuts its rows, and counts them alike. The long runs: ``WEFT_TEST_CUT``."""

from __future__ import annotations

import pytest

from live import test_late_rows
from live.driven import FINALS, SECOND, Driven, frame
from live.equal_streams import against_batch
from live.live_cases import BEGIN
from oracle.compare import oracle_session
from oracle.generate import shape, workload
from oracle.trial import CUT
from weft.algebra.numbers import DataError
from weft.errors import UseError
from weft.job.records import BatchStart
from weft.spark.failures import data_error, fault
from weft.spark.fetching import brought
from weft.spark.live.cutting import DriverCutter, HereCutter, cutter_of
from weft.spark.live.next_plan import Wishes
from weft.spark.live.runner import Runner
from weft.step import cutting

ENGINES = [("driver", "driver"), ("workers", "driver"), ("workers", "executors")]
SUMS = "SELECT window.start, k, sum(v) AS s FROM s GROUP BY window(ts, '10 seconds'), k"
BROKEN = "SELECT window.start, sum(10 / (v - 2)) AS s FROM s GROUP BY window(ts, '10 seconds')"


@pytest.fixture(params=ENGINES, ids=lambda pair: " ".join(pair))
def engine(request, monkeypatch):
    """Who cuts rows, and where finals run."""
    for name, value in zip((CUT, FINALS), request.param, strict=True):
        monkeypatch.setenv(name, value)
    return request.param


def rows_at(seconds, *values):
    return [(BEGIN + seconds * SECOND, "ab"[value % 2], value, 0.0) for value in values]


def test_rows_later_than_allowed_count_in_exactly_the_windows_that_are_open(spark, tmp_path, engine):
    test_late_rows.check(spark, tmp_path, 3, 10 * SECOND)


def test_random_micro_batches_give_the_rows_of_the_batch_run(spark, tmp_path, engine):
    runs, rows = against_batch(spark, oracle_session(spark), workload(shape(1, 6)), 1, tmp_path)
    assert runs == 1 and rows


@pytest.mark.parametrize("cut", ["workers", "driver"])
def test_a_query_that_a_value_stops_is_refused_by_name_and_all_others_go_on(spark, tmp_path, cut):
    driven = Driven(spark, tmp_path, 0, finals="driver", cut=cut)
    driven.add({"sums": SUMS, "broken": BROKEN})
    driven.feed(rows_at(0, 1, 2, 3))
    driven.feed(rows_at(20, 1))
    assert driven.job.ledger.history.manifest(0).failed.keys() == {"broken"}
    assert sorted(row[1:] for row in driven.rows("sums")) == [("a", 2), ("b", 4)]


def test_a_value_that_a_kernel_cannot_hold_costs_only_its_queries(spark, tmp_path, monkeypatch):
    driven = Driven(spark, tmp_path, 0, finals="driver", cut="driver")
    driven.add({"sums": SUMS, "largest": SUMS.replace("sum(v)", "max(v)")})
    encoded = cutting.Merging._encoded

    def strict(merging, partial, condition):
        if any("max" in column for column in partial.measure.columns):
            raise DataError("a value does not fit")
        return encoded(merging, partial, condition)

    monkeypatch.setattr(cutting.Merging, "_encoded", strict)
    driven.feed(rows_at(0, 1, 2, 3))
    assert driven.job.last.failed == {"largest": "a value does not fit"}
    driven.feed(rows_at(20, 1))
    assert sorted(row[1:] for row in driven.rows("sums")) == [("a", 2), ("b", 4)]


def test_what_a_kernel_says_of_a_value_in_a_worker_is_said(spark):
    def refuse(batches):
        raise DataError("a value does not fit")
        yield from batches

    with pytest.raises(Exception, match="does not fit") as raised:
        brought(spark.range(1).mapInArrow(refuse, "id bigint"))
    assert data_error(raised.value) == fault(raised.value) == "a value does not fit"


def test_records_that_cannot_be_read_are_counted_and_not_evaluated(spark, tmp_path, engine):
    driven = Driven(spark, tmp_path, 0)
    driven.add({"broken": BROKEN})
    driven.feed(rows_at(0, 1))
    cutter = cutter_of(driven.job.live, engine[0], "mark")
    for _ in range(2):
        rows = frame(driven.spark, rows_at(30, 1, 2, 3)).selectExpr(
            "CASE WHEN v < 3 THEN ts END AS ts", "k", "v", "x", "CASE WHEN v = 2 THEN 'unreadable' END AS mark"
        )
        cut = cutter.cut(rows, None)
        assert (cut.rows, cut.without_time, cut.bad, cut.largest) == (2, 1, 1, BEGIN + 30 * SECOND)
        assert cutter._reused is not None, "Spark plans once"


def test_a_batch_that_is_run_again_is_cut_by_the_engine_that_it_was_started_with(spark, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Runner, "compute", lambda *_: 1 / 0)
        driven = Driven(spark, tmp_path, 0, finals="driver", cut="driver")
        driven.add({"sums": SUMS})
        with pytest.raises(ZeroDivisionError):
            driven.job._computed(*driven_ground(driven, rows_at(0, 1, 2, 3)))
    again = Driven(spark, tmp_path, 0, finals="driver", cut="jvm")
    again.feed(rows_at(0, 1, 2, 3))
    assert isinstance(again.job.runner._cutters["driver"], HereCutter) and len(again.job.runner._cutters) == 1
    again.feed(rows_at(20, 1))
    assert isinstance(again.job.runner._cutters["jvm"], DriverCutter)
    assert [again.job.ledger.started(batch).cut for batch in (0, 1)] == ["driver", "jvm"]
    assert sorted(row[1:] for row in again.rows("sums")) == [("a", 2), ("b", 4)]


def driven_ground(driven, rows):
    """A batch that was started, and all of its queries."""
    made = frame(driven.spark, rows)
    ground = driven.job._begin(0, made, drain=False)
    return made, ground, list(ground.record.queries)


def test_a_start_that_an_older_weft_wrote_down_is_cut_in_the_jvm():
    assert BatchStart.load(b'{"batch": 3, "plan": 1, "watermark": null, "epoch": 2}').cut == "jvm"


def test_rows_that_are_cut_in_the_driver_are_not_answered_on_executors():
    with pytest.raises(UseError, match="answered there"):
        Wishes(finals="executors", cut="driver")
