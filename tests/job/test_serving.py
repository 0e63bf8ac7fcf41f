"""Sinks that fail and come back: nobody else waits for them, nothing is lost, and nothing comes twice."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from live.batches import committed, expected, in_order
from live.driven import SECOND, Collecting, Driven, frame
from live.live_cases import BEGIN
from weft import WeftError
from weft.errors import UseError
from weft.job import courier
from weft.job.checkpoint import Checkpoint
from weft.job.history import ANSWERS
from weft.job.outbox import FRESH, Outbox
from weft.job.patience import Patience
from weft.job.sink import CommittedBatch
from weft.sinks.memory import MemorySink


class ShakySink(MemorySink):
    """A place that can be reached only while it is ``up``."""

    def __init__(self, name: str = "shaky", *, up: bool = False) -> None:
        super().__init__(name)
        self.up = threading.Event()
        if up:
            self.up.set()
        self.taken: list[int] = []
        self.opened = 0

    def open(self) -> None:
        self._reach()
        self.opened += 1

    def deliver(self, batch: CommittedBatch) -> None:
        self._reach()
        super().deliver(batch)
        self.taken.append(batch.number)

    def _reach(self) -> None:
        if not self.up.is_set():
            raise WeftError("connection refused")


def until(condition: Callable[[], object]) -> None:
    """Wait until it holds."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.01)


def outbox_of(folder: Path, *sinks: MemorySink, **how: object) -> Outbox:
    made = Outbox(Checkpoint(str(folder / "state")), sinks, **how)  # type: ignore[arg-type]
    made.open([])
    return made


def test_a_sink_that_is_away_holds_up_no_other_and_gets_everything_in_order_when_it_is_back(tmp_path: Path) -> None:
    shaky, steady = ShakySink(), MemorySink("steady")
    outbox = outbox_of(tmp_path, shaky, steady)
    for number in range(5):
        outbox.post(committed(tmp_path, number))
    until(lambda: outbox.delivered["steady"] == 4)
    told = outbox.status()
    assert (told["shaky"]["state"], told["shaky"]["waiting"], told["shaky"]["batch"]) == ("away", 5, -1)
    assert told["shaky"]["error"] == "connection refused"
    assert told["steady"]["state"] == "ok"
    assert [outage["what"] for outage in outbox.outages] == ["sink shaky"]
    shaky.up.set()
    assert outbox.settle()
    assert shaky.taken == [0, 1, 2, 3, 4]
    assert in_order(shaky.table("a").to_pylist()) == in_order(expected("a", range(5)))
    assert outbox.status()["shaky"] == {"state": "ok", "batch": 4, "waiting": 0, "since": None, "error": None}
    outbox.close()


def test_people_are_told_once_that_a_sink_is_away_and_once_that_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("weft"), "propagate", True)
    shaky = ShakySink()
    with caplog.at_level(logging.INFO, "weft.sinks"):
        outbox = outbox_of(tmp_path, shaky)
        outbox.post(committed(tmp_path, 0))
        until(lambda: outbox._couriers[0]._retrying is not None and len(caplog.records) > 0)
        time.sleep(1.0)  # several attempts
        shaky.up.set()
        outbox.settle()
        outbox.close()
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "sink shaky is away: connection refused; what is for it waits in the checkpoint"
    assert len(said) == 2 and said[1].startswith("sink shaky is back after ")


def test_a_stream_holds_when_as_much_waits_for_a_sink_as_may_and_other_sinks_are_served_meanwhile(
    tmp_path: Path,
) -> None:
    shaky, steady = ShakySink(), MemorySink("steady")
    outbox = outbox_of(tmp_path, shaky, steady, own={"shaky": Patience(batches=3)})
    begun: list[int] = []

    def stream() -> None:
        for number in range(6):
            outbox.await_room(lambda: False)
            begun.append(number)
            outbox.post(committed(tmp_path, number))

    thread = threading.Thread(target=stream)
    thread.start()
    until(lambda: outbox.status()["shaky"]["state"] == "full" and outbox.delivered["steady"] == 2)
    assert begun == [0, 1, 2]
    shaky.up.set()
    thread.join()
    assert outbox.settle()
    assert shaky.taken == list(range(6))
    outbox.close()


def test_bytes_are_bounded_too(tmp_path: Path) -> None:
    shaky = ShakySink()
    outbox = outbox_of(tmp_path, shaky, patience=Patience(bytes=10_000))
    number = 0
    while outbox.status()["shaky"]["state"] != "full":
        outbox.post(committed(tmp_path, number))
        number += 1
    assert 3 < number < 20
    outbox.close()


def test_what_waits_for_long_is_read_again_and_not_held_in_memory(tmp_path: Path) -> None:
    shaky = ShakySink()
    outbox = outbox_of(tmp_path, shaky, reload=lambda number: committed(tmp_path, number))
    for number in range(3 * FRESH):
        outbox.post(committed(tmp_path, number))
    assert len(outbox._fresh) == FRESH
    shaky.up.set()
    outbox.settle()
    assert shaky.taken == list(range(3 * FRESH))
    outbox.close()


def test_a_failed_delivery_is_tried_again_with_a_sink_that_is_opened_anew(tmp_path: Path) -> None:
    shaky = ShakySink(up=True)
    outbox = outbox_of(tmp_path, shaky)
    until(lambda: shaky.opened == 1)
    shaky.up.clear()
    outbox.post(committed(tmp_path, 0))
    until(lambda: outbox.outages)
    shaky.up.set()
    outbox.settle()
    assert shaky.opened == 2
    outbox.close()


def test_a_sink_that_does_not_answer_is_shown_before_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "SLOW", 0.05)
    answer = threading.Event()

    class HangingSink(MemorySink):
        def deliver(self, batch: CommittedBatch) -> None:
            answer.wait()

    outbox = outbox_of(tmp_path, HangingSink("hanging"))
    outbox.post(committed(tmp_path, 0))
    until(lambda: outbox.outages)
    assert "it has been taking batch 0 for" in outbox.outages[0]["error"]
    answer.set()
    outbox.settle()
    assert not outbox.outages
    outbox.close()


def test_what_the_user_has_to_change_ends_the_job_at_once(tmp_path: Path) -> None:
    class WrongSink(MemorySink):
        def open(self) -> None:
            raise UseError("there is no such package")

    with pytest.raises(UseError, match="no such package"):
        outbox_of(tmp_path, WrongSink("wrong"))


def test_answers_that_were_given_up_are_delivered_to_nobody(tmp_path: Path) -> None:
    shaky = ShakySink()
    outbox = outbox_of(tmp_path, shaky)
    for number in range(2):
        outbox.post(committed(tmp_path, number))
    outbox.given_up.add(("a", 0))
    shaky.up.set()
    outbox.settle()
    assert in_order(shaky.table("a").to_pylist()) == in_order(expected("a", range(1, 2)))
    assert in_order(shaky.table("b").to_pylist()) == in_order(expected("b", range(2)))
    outbox.close()


class ShakyCollecting(Collecting):
    """A sink of a job that can be reached only while it is ``up``."""

    up = False

    def deliver(self, batch: CommittedBatch) -> None:
        if not self.up:
            raise WeftError("away")
        super().deliver(batch)


QUERY = "SELECT window.start AS s, sum(v) {}AS n FROM s GROUP BY window(ts, '10 seconds')"


@pytest.mark.parametrize("restarts", [0, 2])
def test_committed_answers_wait_in_the_checkpoint_over_restarts_and_changes_of_the_queries(
    spark: SparkSession, tmp_path: Path, restarts: int
) -> None:
    sink = ShakyCollecting()
    driven = Driven(spark, tmp_path, 0, sink, settle=False)
    driven.add({"q": QUERY.format("")})
    for number in range(8):
        if number == 3:
            driven.add({"later": QUERY.format("+ 1 ")})
        if number == 5:
            driven.catalog.drop("later")
        if restarts and number in (2, 6):
            driven.job.outbox.close()
            driven = Driven(spark, tmp_path, 0, sink, settle=False)
        rows = [(BEGIN + (number * 10 + second) * SECOND, "a", second, 0.5) for second in range(10)]
        driven.job.process(frame(driven.spark, rows), number)
    assert not sink.batches
    assert answer_folders(driven) == 7, "the first batch closes no window; all others wait"
    if restarts:
        driven.job.outbox.close()
        driven = Driven(spark, tmp_path, 0, sink, settle=False)
    sink.up = True
    assert driven.job.outbox.settle()
    assert list(sink.batches) == list(range(8))
    assert [len(sink.batches[number].get("q", [])) for number in range(8)] == [0, *[1] * 7]
    assert len(sink.rows("later")) == 2
    driven.job.process(frame(driven.spark, [(BEGIN + 80 * SECOND, "a", 1, 0.5)]), 8)
    assert driven.job.outbox.settle()
    assert answer_folders(driven) == 2, "what all sinks have taken is thrown away, but for the last two batches"


def answer_folders(driven: Driven) -> int:
    return len(driven.job.ledger.history.checkpoint.names(ANSWERS))


def test_after_an_outage_in_the_middle_of_a_batch_a_job_goes_on_as_after_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven = Driven(spark, tmp_path, 0)
    driven.add({"q": QUERY.format("")})
    batches = [
        [(BEGIN + (number * 10 + second) * SECOND, "a", second, 0.5) for second in range(10)] for number in range(4)
    ]
    for rows in batches[:2]:
        driven.feed(rows)
    for name in ("commit", "forget_state"):
        with monkeypatch.context() as patch:

            def full(*_: object) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(type(driven.job.ledger.history), name, full)
            with pytest.raises(OSError, match="No space"):
                driven.job.process(frame(driven.spark, batches[2]), 2)
                driven.job.process(frame(driven.spark, batches[3]), 3)
        driven.job.resume()
    driven.job.process(frame(driven.spark, batches[2]), 2)
    driven.job.process(frame(driven.spark, batches[3]), 3)
    driven.job.outbox.settle()
    assert [row[1] for row in driven.sink.rows("q")] == [45, 45, 45]
    assert list(driven.sink.batches) == [0, 1, 2, 3]
