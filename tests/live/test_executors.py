"""Finals on the executors: the same answers, whoever dies, whichever worker gets a bucket."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from pyspark import RDD
from pyspark.serializers import NoOpSerializer

from live import test_late_rows
from live.driven import FINALS, SECOND, Collecting, Driven, outlive
from live.equal_streams import against_batch
from live.live_cases import BEGIN, disordered, model, queries_of, sql
from live.test_deaths import DiedError, after, alive, before
from live.test_live_changes import random_changes
from oracle.compare import oracle_session
from oracle.generate import shape, workload
from weft.job import segments
from weft.job.history import History
from weft.job.outbox import Outbox
from weft.spark import bucket_task
from weft.spark.bucket_task import BucketTask
from weft.spark.live import finals_place, on_executors
from weft.spark.live.on_executors import OnExecutors
from weft.spark.scatter import Scattered
from weft.step import state
from weft.step import turn as turn_module

LATENESS = 20 * SECOND
BATCHES = 12


@pytest.fixture(autouse=True)
def _there(monkeypatch):
    monkeypatch.setenv(FINALS, "executors")


@pytest.mark.long
def test_random_micro_batches_give_the_rows_of_the_batch_run(spark, tmp_path):
    runs, rows = against_batch(spark, oracle_session(spark), workload(shape(3, 6)), 2, tmp_path)
    assert runs == 2
    assert rows


def test_rows_later_than_allowed_count_in_exactly_the_windows_that_are_open(spark, tmp_path):
    test_late_rows.check(spark, tmp_path, 6, 15 * SECOND)


def test_every_query_is_answered_for_its_lifetime(spark, tmp_path):
    assert random_changes(spark, tmp_path, 2, operations=6)["add"]


POINTS = {
    "after the start is written down": after(History, "start"),
    "when all buckets are turned": after(OnExecutors, "turn"),
    "before the commit": before(History, "commit"),
    "after the commit": after(History, "commit"),
    "after a sink took the batch": before(Outbox, "_note"),
}
SOME = list(POINTS) if os.environ.get("WEFT_LONG") else list(POINTS)[1:2]


@pytest.mark.parametrize("point", SOME)
def test_a_driver_that_dies_loses_nothing_and_repeats_nothing(spark, tmp_path, monkeypatch, point):
    deaths = []

    def death():
        if len(deaths) < 3 and random.random() < 0.5:
            deaths.append(point)
            raise DiedError

    random.seed(point)
    POINTS[point](monkeypatch, death)
    through(spark, tmp_path, DiedError)
    assert deaths, f"nothing died {point}"


def through(spark, folder: Path, error: type[BaseException]) -> None:
    """A stream in which ``error`` ends drivers, against the naive model."""
    queries, batches = queries_of(5, most=2), disordered(5, 30 * SECOND, most_batches=4)
    naive = model(queries, LATENESS)
    sink = Collecting()
    driven = alive(spark, folder, sink)
    driven.add({name: sql(query) for name, query in queries.items()})
    driven = outlive(driven, batches, error, lambda: alive(spark, folder, sink))
    for rows in batches:
        naive.feed(rows)
    naive.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])


MOMENTS = ("with half of its files", "when all is written")


@pytest.mark.parametrize("moment", MOMENTS if os.environ.get("WEFT_LONG") else MOMENTS[:1])
def test_a_worker_that_is_killed_loses_nothing_and_repeats_nothing(spark, tmp_path, monkeypatch, moment):
    place = tmp_path / "killed"
    place.mkdir()

    class Dying(BucketTask):
        """Ends the worker that runs it, twice; made here, it is sent to the workers as it is."""

        def __call__(self, bucket, batches):
            def die(*arguments):
                marks = len(list(place.iterdir()))
                if bucket == 1 and marks < 2 and self.order.state.batch > 0:
                    (place / str(marks)).touch()
                    os.kill(os.getpid(), signal.SIGKILL)

            write = segments.write
            if moment == "with half of its files":
                segments.write = lambda *arguments: (write(*arguments), die())
            try:
                found = list(BucketTask.__call__(self, bucket, batches))
            finally:
                segments.write = write
            die()
            return found

    monkeypatch.setattr(on_executors, "BucketTask", Dying)
    # one failure of a task fails the job here, and so the batch, as on a machine where it fails four times
    through(spark, tmp_path / "checkpoint", Exception)
    assert len(list(place.iterdir())) == 2


def test_a_worker_that_gets_a_bucket_back_takes_in_what_others_wrote(spark, tmp_path, monkeypatch):
    """Two workers in this process, which get buckets at random; segments are merged by fours."""
    workers: list[dict] = [{}, {}]
    rnd = random.Random(3)
    made = []

    def turn(scattered, task):
        batches = scattered.frame._jdf.toArrowBatchRdd(scattered.exchange).toJavaRDD()
        rdd = RDD(batches, spark.sparkContext, NoOpSerializer())
        found = []
        for bucket, payload in rdd.mapPartitionsWithIndex(lambda number, data: [(number, list(data))]).collect():
            monkeypatch.setattr(bucket_task, "KEPT", rnd.choice(workers))
            found += task(bucket, payload)
        return found

    class Counted(turn_module.Finals):
        @classmethod
        def over(cls, *arguments):
            made.append(1)
            return super().over(*arguments)

    monkeypatch.setattr(Scattered, "map", turn)
    monkeypatch.setattr(state, "WIDTH", 4)
    monkeypatch.setattr(turn_module, "Finals", Counted)
    queries = queries_of(9, most=3)
    naive = model(queries, LATENESS)
    driven = Driven(spark, tmp_path, LATENESS)
    driven.add({name: sql(query) for name, query in queries.items()})
    for number in range(BATCHES):
        instants = [BEGIN + (number * 4 + rnd.randrange(4)) * SECOND for _ in range(12)]
        rows = [(instant, rnd.choice("abcdefg"), rnd.randrange(100), 0.0) for instant in instants]
        naive.feed(rows)
        driven.feed(rows)
    turns = BATCHES * driven.job.live.record.buckets
    assert len(made) < turns * 2 / 3, "often there was something to go on from"
    driven.job.drain()
    naive.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])


def test_a_query_that_a_value_stops_in_one_bucket_is_refused_and_all_others_go_on(spark, tmp_path):
    driven = Driven(spark, tmp_path, 0)
    window = "window(ts, '10 seconds')"
    driven.add(
        {
            "sums": f"SELECT window.start, k, sum(v) AS s FROM s GROUP BY {window}, k",
            "doubled": f"SELECT window.start, k, sum(v) * 2 AS s FROM s GROUP BY {window}, k",
            "counts": f"SELECT window.start, k, count(*) AS n FROM s GROUP BY {window}, k",
        }
    )
    large = 2**62
    driven.feed([(BEGIN, k, 1, 0.0) for k in "abcdefgh"] + [(BEGIN, "a", large, 0.0), (BEGIN, "a", large, 0.0)])
    driven.feed([(BEGIN + 10 * SECOND, k, 1, 0.0) for k in "abcdefgh"])
    assert set(driven.job.last.failed) == {"sums", "doubled"}
    assert "does not fit" in driven.job.last.failed["sums"]
    assert not driven.rows("sums"), "not of other buckets either"
    assert sorted(row[1:] for row in driven.rows("counts")) == [(k, 3 if k == "a" else 1) for k in "abcdefgh"]
    driven.feed([(BEGIN + 20 * SECOND, "a", 1, 0.0)])
    assert list(driven.job.live.record.queries) == ["counts"]


def test_the_first_rows_tell_where_finals_run_and_a_checkpoint_keeps_to_it(spark, tmp_path, monkeypatch):
    rows = [(BEGIN + n * SECOND, k, 1, 0.0) for n in range(10) for k in "abcdefgh"]
    text = "SELECT window.start, k, sum(v) AS s FROM s GROUP BY window(ts, '5 seconds'), k"
    few = Driven(spark, tmp_path / "few", 0, finals="auto")
    few.add({"q": text})
    few.feed(rows)
    assert few.job.live.record.buckets == 0
    monkeypatch.setattr(finals_place, "MANY_SLICES", 12)
    for kept in (few, Driven(spark, tmp_path / "few", 0, few.sink, finals="executors")):
        assert kept.job.live.record.buckets == 0
    many = Driven(spark, tmp_path / "many", 0, finals="auto")
    many.add({"q": text})
    many.feed(rows)
    assert many.job.live.record.buckets == spark.sparkContext.defaultParallelism
    again = Driven(spark, tmp_path / "many", 0, many.sink, finals="driver")
    again.add({"total": "SELECT window.start, sum(v) AS s FROM s GROUP BY window(ts, '5 seconds')"})
    again.feed([(BEGIN + 20 * SECOND, "a", 1, 0.0)])
    assert again.job.live.record.buckets == spark.sparkContext.defaultParallelism
    first, second = again.job.live.record.groupings
    assert (first.placing, second.placing) == (again.job.live.groupings["g0"].key_columns, ())


def test_state_that_stays_in_its_bucket_is_bounded_and_leaves_no_other_files(spark, tmp_path):
    driven = Driven(spark, tmp_path, 0)
    driven.add({"q": "SELECT window.start, k, sum(v) + 1 AS s FROM s GROUP BY window(ts, '10 seconds'), k"})
    for number in range(5):
        driven.feed([(BEGIN + number * 10 * SECOND + n, k, 1, 0.0) for n, k in enumerate("abcdefgh")])
    listed = {file for manifest in driven.job.ledger.kept for file, _ in manifest.state}
    assert {path.name for path in (tmp_path / "weft" / "state").iterdir()} == listed
    buckets = {segments.BucketFile.of(file).bucket for file in listed}
    assert buckets == set(range(driven.job.live.record.buckets))
    assert driven.job.last.counts["state_rows"] == 8
    driven.job.drain()
    assert not driven.job.last.state
