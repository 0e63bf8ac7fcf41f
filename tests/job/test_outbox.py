"""How far each sink is: no sink goes, comes back or shares a name without a word."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from live.batches import committed
from live.driven import SECOND, Collecting, Driven
from live.live_cases import BEGIN
from weft import WeftError
from weft.job.checkpoint import Checkpoint
from weft.job.outbox import Outbox, give_up
from weft.job.patience import Patience
from weft.job.sink import CommittedBatch
from weft.sinks.memory import MemorySink
from weft.sinks.specs import sink_of


class AwaySink(MemorySink):
    """A place that cannot be reached."""

    def deliver(self, batch: CommittedBatch) -> None:
        raise WeftError("away")


def after_a_failed_delivery(folder: Path) -> Checkpoint:
    """A checkpoint with batch 1 committed, which the sink ``old`` has not taken."""
    checkpoint = Checkpoint(str(folder / "state"))
    outbox = Outbox(checkpoint, [MemorySink("old")])
    outbox.open([])
    outbox.post(committed(folder, 0))
    outbox.close()
    away = Outbox(checkpoint, [AwaySink("old")], patience=Patience(0))
    away.open([0])
    away.post(committed(folder, 1))
    with pytest.raises(WeftError, match=r"sink old has been away for longer than its patience of 0 seconds; 1 batch"):
        away.settle()
    return checkpoint


def test_a_sink_under_another_name_does_not_lose_the_batch_that_was_not_taken(tmp_path: Path) -> None:
    checkpoint = after_a_failed_delivery(tmp_path)
    with pytest.raises(WeftError, match=r"(?s)sink old has taken batches up to 0 only, batch 1 is .*name: 'old'"):
        Outbox(checkpoint, [MemorySink("new")]).open([0, 1])
    corrected = MemorySink("old")
    outbox = Outbox(checkpoint, [corrected])
    outbox.open([0, 1])
    assert outbox.behind == 1
    outbox.post(committed(tmp_path, 1))
    assert outbox.settle()
    assert corrected.table("a").num_rows == 6


class MovedSink(Collecting):
    """A place that cannot be reached any more."""

    def deliver(self, batch: CommittedBatch) -> None:
        raise WeftError("away")


def test_a_job_whose_sink_has_moved_delivers_the_batch_under_the_old_name_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [[(BEGIN + (number * 10 + s) * SECOND, "a", s, 0.5) for s in range(10)] for number in range(3)]
    driven = Driven(spark, tmp_path, 0)
    driven.add({"q": "SELECT window.start AS s, sum(v) AS n FROM s GROUP BY window(ts, '10 seconds')"})
    for batch in rows[:2]:
        driven.feed(batch)
    with pytest.raises(WeftError, match="away"):
        Driven(spark, tmp_path, 0, MovedSink(), patience=Patience(0)).feed(rows[2])
    corrected = Collecting()
    corrected.name = "elsewhere"
    with pytest.raises(WeftError, match="sink collecting has taken batches up to 1 only, batch 2 is committed"):
        Driven(spark, tmp_path, 0, corrected)
    corrected.name = "collecting"
    Driven(spark, tmp_path, 0, corrected)
    assert [len(corrected.batches[number]["q"]) for number in corrected.batches] == [1]
    assert list(corrected.batches) == [2]


def test_a_sink_that_is_given_up_is_not_waited_for(tmp_path: Path) -> None:
    checkpoint = after_a_failed_delivery(tmp_path)
    with pytest.raises(WeftError, match="knows no sink odl, which could be given up; it knows old"):
        give_up(checkpoint, "odl")
    give_up(checkpoint, "old")
    Outbox(checkpoint, [MemorySink("new")]).open([0, 1])


def test_a_sink_that_had_everything_may_be_left_out_and_is_told_what_it_missed_when_it_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("weft"), "propagate", True)
    checkpoint = Checkpoint(str(tmp_path / "state"))
    for sinks, batches in ((["one", "two"], range(2)), (["one"], range(2, 4)), (["one"], range(4, 6))):
        outbox = Outbox(checkpoint, [MemorySink(name) for name in sinks])
        outbox.open(range(batches[0]))
        for number in batches:
            outbox.post(committed(tmp_path, number))
        assert outbox.settle()
    back = Outbox(checkpoint, [MemorySink("one"), MemorySink("two")])
    with caplog.at_level(logging.WARNING, "weft.sinks"):
        back.open([4, 5])
    assert "sink two was left out after batch 1: it gets rows from batch 4 on" in caplog.text
    assert back.delivered == {"one": 5, "two": 1}


def test_two_sinks_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match=r"two sinks have the name memory: .*name:"):
        Outbox(Checkpoint(str(tmp_path / "state")), [MemorySink(), MemorySink()])


def test_a_name_of_its_own_stays_whatever_the_route_and_the_address_are() -> None:
    sink = sink_of({"to": "kafka:answers@elsewhere:9092", "queries": ["a*"], "name": "answers"})
    assert sink.name == "answers"
