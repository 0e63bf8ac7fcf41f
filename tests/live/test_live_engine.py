"""The engine on a real Structured Streaming query: started, changed while it runs, stopped, started again, drained."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JNetworkError

from live.driven import Row, table
from live.live_cases import BEGIN
from weft import Engine, QueriesError, WeftError
from weft.sinks.parquet import ParquetSink
from weft.spark.failures import JvmGoneError
from weft.spark.live.engine import LiveEngine
from weft.spark.live.reading import Reading

SECOND = 1_000_000
SCHEMA = "ts TIMESTAMP, k STRING, v BIGINT, x DOUBLE"
SUMS = (
    "CREATE VIEW sums AS SELECT window.start, window.end, k, sum(v) AS s FROM s "
    "GROUP BY window(ts, '20 seconds', '10 seconds'), k"
)
COUNTS = "CREATE VIEW counts AS SELECT window.end, count(*) AS n FROM s GROUP BY window(ts, '10 seconds')"


class Folders:
    """A source, a checkpoint and a sink."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root / "source"
        self.source.mkdir()
        self.rows: list[Row] = []
        self.rnd = random.Random(7)

    def write(self, number: int) -> None:
        """Ten seconds of rows arrive as a file."""
        rows = [
            (BEGIN + (number * 10 * SECOND) + self.rnd.randrange(10 * SECOND), self.rnd.choice("ab"), n, 0.5)
            for n in range(50)
        ]
        self.rows += rows
        hidden = self.source / f".{number}"
        pq.write_table(table(rows), hidden)
        hidden.rename(self.source / f"{number:04}.parquet")

    def start(self, spark: object, text: str | None, **pace: object) -> LiveEngine:
        """A live engine on these folders."""
        files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.source))
        engine = Engine(spark).stream("s", files, event_time="ts")
        if text is not None:
            engine.sql(text)
        sink = ParquetSink(str(self.root / "answers"))
        return engine.start(str(self.root / "checkpoint"), lateness="2 seconds", sinks=[sink], **pace)

    def answers(self, query: str) -> list[Row]:
        """What a reader sees."""
        files = sorted((self.root / "answers" / f"query={query}").glob("*.parquet"))
        tables = [pq.read_table(file, partitioning=None) for file in files]
        return [tuple(row.values()) for found in tables for row in found.to_pylist()]


def wait(condition: Callable[[], bool]) -> None:
    """Until it holds."""
    until = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.05)


def test_a_running_engine_is_changed_stopped_and_started_again(spark, tmp_path):
    folders = Folders(tmp_path)
    folders.write(0)
    live = folders.start(spark, SUMS)
    wait(lambda: live.status()["batch"] == 0)
    with pytest.raises(QueriesError, match="nosuch"):
        live.sql("SELECT count(nosuch) AS n FROM s GROUP BY window(ts, '10 seconds')")
    assert live.sql(COUNTS) == ["counts"]
    for number in (1, 2):
        folders.write(number)
        wait(lambda number=number: live.status()["batch"] >= number)
    assert live.queries == ("sums", "counts")
    live.drop("counts")
    folders.write(3)
    wait(lambda: live.status()["batch"] >= 3)
    live.stop()
    assert live.status()["state"] == "stopped"
    assert live.status()["queries"] == 1
    folders.write(4)

    again = folders.start(spark, None, available_now=True, drain=True)
    assert again.await_termination()
    assert again.queries == ("sums",), "a restart comes up with the queries that it had"
    sums: dict[tuple, int] = {}
    for t, k, v, _ in folders.rows:
        for start in (t // (10 * SECOND) * 10 * SECOND - 10 * SECOND, t // (10 * SECOND) * 10 * SECOND):
            sums[start, k] = sums.get((start, k), 0) + v
    found = {(round(row[0].timestamp() * SECOND), row[2]): row[3] for row in folders.answers("sums")}
    assert found == sums
    assert len(folders.answers("sums")) == len(sums), "none comes twice"
    counts = folders.answers("counts")
    assert counts, "it was answered while it was there"
    assert len({row[0] for row in counts}) == len(counts)

    folders.write(5)
    drained = folders.start(spark, None, available_now=True)
    assert drained.await_termination(), "a drained checkpoint ends at once"
    assert drained.status()["state"] == "drained"
    assert len(folders.answers("sums")) == len(sums), "and takes nothing new"


def test_a_checkpoint_goes_on_with_what_it_was_made_with(spark, tmp_path):
    folders = Folders(tmp_path)
    folders.write(0)
    assert folders.start(spark, SUMS, available_now=True).await_termination()
    files = spark.readStream.schema(SCHEMA).parquet(str(folders.source))
    engine = Engine(spark).stream("s", files, event_time="ts")
    with pytest.raises(WeftError, match="lateness 2000000, not 1000000"):
        engine.start(str(tmp_path / "checkpoint"), lateness="1 second")


def test_a_query_that_a_value_stops_is_refused_by_name_and_all_others_go_on(spark, tmp_path):
    folders = Folders(tmp_path)
    folders.write(0)
    broken = "CREATE VIEW broken AS SELECT window.end, sum(10 / (v - 20)) AS s FROM s GROUP BY window(ts, '10 seconds')"
    live = folders.start(spark, f"{SUMS};{broken}", available_now=True, drain=True)
    assert live.await_termination()
    assert folders.answers("sums")
    (entry,) = live.catalog.entries("refused")
    assert entry.name == "broken"
    assert "zero" in (entry.reason or "").lower()


def test_a_window_that_would_need_too_much_state_is_refused_with_the_figure(spark, tmp_path):
    folders = Folders(tmp_path)
    folders.write(0)
    live = folders.start(spark, SUMS, available_now=True)
    with pytest.raises(QueriesError, match="2,592,000 slices"):
        live.sql("SELECT count(*) AS n FROM s GROUP BY window(ts, '30 days', '1 second')")
    live.await_termination()


def test_a_stream_whose_java_is_gone_ends_with_that_error_though_nothing_can_be_stopped(spark, tmp_path, monkeypatch):
    folders = Folders(tmp_path)
    folders.write(0)

    def gone(*_: object) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    def refused(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    with monkeypatch.context() as patch:
        patch.setattr(Reading, "run", gone)
        patch.setattr(Reading, "stop", refused)
        live = folders.start(spark, SUMS)
        with pytest.raises(JvmGoneError):
            live.await_termination()
        assert live.status()["state"] == "failed"
    live.stop()


def test_a_driver_that_was_killed_while_spark_wrote_its_first_offsets_is_started_again(spark, tmp_path):
    folders = Folders(tmp_path)
    folders.write(0)
    unfinished = tmp_path / "checkpoint" / "spark" / "offsets" / ".0.5a1b.tmp"
    unfinished.parent.mkdir(parents=True)
    unfinished.write_text("v1")
    started = folders.start(spark, SUMS, available_now=True, drain=True)
    started.await_termination()
    assert sum(row[3] for row in folders.answers("sums")) == 2 * sum(range(50))
    again = folders.start(spark, None, available_now=True)
    again.await_termination()
    assert (tmp_path / "checkpoint" / "spark" / "offsets" / "0").exists()


def test_offsets_that_are_lost_after_a_commit_are_an_error_and_no_rows_are_passed_over(spark, tmp_path):
    folders = Folders(tmp_path)
    folders.write(0)
    started = folders.start(spark, SUMS, available_now=True)
    started.await_termination()
    for file in (tmp_path / "checkpoint" / "spark" / "offsets").iterdir():
        file.unlink()
    (tmp_path / "checkpoint" / "spark" / "offsets" / ".0.5a1b.tmp").write_text("v1")
    folders.write(1)
    with pytest.raises(WeftError, match="offsets holds no batch of Spark's, though batch 0 is committed"):
        folders.start(spark, None, available_now=True).await_termination()
