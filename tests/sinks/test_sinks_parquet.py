"""The Parquet sink: every row once, whatever is killed, and nothing that a reader has seen goes away."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from live.batches import SCHEMA, answers, committed, expected, in_order, packed, written
from weft import WeftError
from weft.job.sink import CommittedBatch
from weft.sinks.parquet import ParquetSink
from weft.sinks.shelf import Shelf
from weft.store.folder import Folder

RISING = """
import sys
from pathlib import Path
from live.batches import committed, packed
from weft.sinks.parquet import ParquetSink
work, target, delivered = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
first = int(delivered.read_text()) + 1 if delivered.exists() else 0
sink = ParquetSink(target, every=0.01, small=20_000)
sink.open()
print("ready", flush=True)
for number in range(first, 250):
    batch = committed(work, number, ("a", "b"), files=1 + number % 3, count=2000 if number % 7 == 0 else 3)
    sink.deliver(packed(batch, work, number % 5) if number % 2 else batch)
    delivered.with_suffix(".new").write_text(str(number))
    delivered.with_suffix(".new").rename(delivered)
sink.close()
"""


def seen(folder: Path, query: str) -> list[dict[str, object]]:
    """What a reader finds that lists first and reads afterwards."""
    listed = sorted((folder / f"query={query}").glob("*.parquet"))
    return [row for file in listed for row in pq.ParquetFile(file).read().to_pylist()]


def test_small_files_of_many_batches_appear_as_one_file_with_every_row_once(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "out"), every=3600)
    sink.open()
    for number in range(20):
        sink.deliver(committed(tmp_path / "answers", number))
    sink.close()
    assert in_order(seen(tmp_path / "out", "a")) == in_order(expected("a", range(20)))
    assert len(list((tmp_path / "out" / "query=a").glob("*.parquet"))) <= 2


def test_a_query_s_first_answers_appear_at_once_and_the_next_ones_without_a_further_batch(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "out"), every=0.5)
    sink.open()
    for number in range(2):
        sink.deliver(committed(tmp_path / "answers", number))
        wait_until(lambda number=number: len(seen(tmp_path / "out", "a")) == 6 * (number + 1))
    sink.close()


def wait_until(holds: object, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.02)


def test_a_batch_that_is_delivered_again_changes_nothing(tmp_path: Path) -> None:
    for _ in range(3):
        sink = ParquetSink(str(tmp_path / "out"))
        sink.open()
        for number in (0, 0, 1, 1):
            sink.deliver(committed(tmp_path / "answers", number))
        sink.close()
    assert in_order(seen(tmp_path / "out", "a")) == in_order(expected("a", range(2)))


def test_the_empty_file_of_a_query_without_answers_is_never_seen_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object, **named: object) -> None:
        with pq.ParquetWriter(arguments[1], SCHEMA) as writer:
            writer.write_table(SCHEMA.empty_table())
            monkeypatch.undo()
            raise RuntimeError("killed")

    monkeypatch.setattr(pq, "write_table", killed)
    shelf = Shelf(Folder(str(tmp_path / "shown")), Folder(str(tmp_path / "hidden")))
    with pytest.raises(RuntimeError, match="killed"):
        shelf.say_schema(SCHEMA)
    assert not list((tmp_path / "shown").iterdir())
    shelf.say_schema(SCHEMA)
    assert [file.name for file in (tmp_path / "shown").iterdir()] == ["part-empty.parquet"]
    assert pq.read_schema(tmp_path / "shown" / "part-empty.parquet").names == SCHEMA.names


def test_large_files_appear_as_they_are(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "out"), small=0)
    sink.open()
    sink.deliver(committed(tmp_path / "answers", 5))
    names = [file.name for file in sorted((tmp_path / "out" / "query=a").glob("*"))]
    assert names == ["batch-0000000005-0000.parquet", "batch-0000000005-0001.parquet"]
    sink.close()


def test_killed_at_random_moments_it_loses_nothing_repeats_nothing_and_no_reader_ever_sees_a_row_go(
    tmp_path: Path,
) -> None:
    chance = random.Random(5)
    target, delivered = tmp_path / "out", tmp_path / "delivered"
    before: Counter[str] = Counter()
    kills = looks = 0
    while True:
        command = [sys.executable, "-c", RISING, str(tmp_path / "answers"), str(target), str(delivered)]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + chance.random() * 0.2
        while process.poll() is None and (kills >= 6 or time.monotonic() < deadline):
            now = Counter(str(row) for row in seen(target, "a"))
            assert not [row for row, times in now.items() if times > 1]
            assert not before - now
            before = now
            looks += 1
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    assert process.returncode == 0
    assert kills == 6
    assert looks > 10
    for query in ("a", "b"):
        wanted = [
            row
            for number in range(250)
            for row in expected(
                query, range(number, number + 1), files=1 + number % 3, count=2000 if number % 7 == 0 else 3
            )
        ]
        assert in_order(seen(target, query)) == in_order(wanted)


def test_what_stands_in_the_footers_of_small_files_stands_in_that_of_the_one_they_become(tmp_path: Path) -> None:
    found = [answers(tmp_path / "answers", "a", number, files=1) for number in range(3)]
    for one in found:
        rows = pq.read_table(one.files[0])
        with pq.ParquetWriter(one.files[0], rows.schema, store_schema=False) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({"org.apache.spark.sql.parquet.row.metadata": "its types"})
    shelf = Shelf(Folder(str(tmp_path / "shown")), Folder(str(tmp_path / "hidden")))
    for number, one in enumerate(found):
        shelf.take(number, one.files, 1 << 20)
    assert shelf.place(0.0, 1 << 20)
    (file,) = (tmp_path / "shown").iterdir()
    said = pq.read_metadata(file).metadata
    assert said == {b"org.apache.spark.sql.parquet.row.metadata": b"its types", b"weft.through": b"2"}


def test_a_batch_that_has_arrived_in_part_waits_for_its_rest(tmp_path: Path) -> None:
    folders = Folder(str(tmp_path / "shown")), Folder(str(tmp_path / "hidden"))
    whole = answers(tmp_path / "answers", "a", 0)
    interrupted = Shelf(*folders)
    interrupted.take(0, whole.files, 1 << 20)
    (tmp_path / "hidden" / ".batch-0000000000-0001-of-0002").unlink()
    successor = Shelf(*folders)
    assert not successor.place(0.0, 1 << 20)
    successor.take(0, whole.files, 1 << 20)
    assert successor.place(0.0, 1 << 20)
    assert len(pq.read_table(tmp_path / "shown")) == 6


def test_an_old_driver_that_compacts_the_same_files_as_its_successor_adds_nothing(tmp_path: Path) -> None:
    folders = Folder(str(tmp_path / "shown")), Folder(str(tmp_path / "hidden"))
    batches = [answers(tmp_path / "answers", "a", number).files for number in range(4)]
    old = Shelf(*folders)
    for number in range(2):
        old.take(number, batches[number], 1 << 20)
    new = Shelf(*folders)
    for number in range(1, 3):
        new.take(number, batches[number], 1 << 20)
    assert new.place(0.0, 1 << 20)
    for number in range(1, 4):
        old.take(number, batches[number], 1 << 20)
    while old.place(0.0, 1 << 20):
        pass
    new.take(3, batches[3], 1 << 20)
    while new.place(0.0, 1 << 20):
        pass
    assert in_order(pq.read_table(tmp_path / "shown").to_pylist()) == in_order(expected("a", range(4)))


def test_pieces_of_packs_and_small_files_of_many_batches_appear_as_one_file(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "out"), every=3600)
    sink.open()
    for number in range(20):
        sink.deliver(packed(committed(tmp_path / "answers", number, files=3), tmp_path / "answers", number % 4))
    sink.close()
    assert in_order(seen(tmp_path / "out", "a")) == in_order(expected("a", range(20), files=3))
    assert len(list((tmp_path / "out" / "query=a").glob("*.parquet"))) <= 2
    assert not list((tmp_path / "out" / ".weft" / "packs").iterdir())


@pytest.mark.parametrize("lost", ["all but its packs", "a small file"])
def test_a_batch_of_which_only_a_part_arrived_is_shown_when_it_comes_again(tmp_path: Path, lost: str) -> None:
    batch = packed(committed(tmp_path / "answers", 0, files=3), tmp_path / "answers", 2)
    interrupted = ParquetSink(str(tmp_path / "out"), every=3600)
    interrupted._run = "test"
    interrupted.deliver(batch)
    lacking = ["query=a/.batch-*"] if lost == "a small file" else ["*.json", ".batch-*"]
    for file in [file for some in lacking for file in (tmp_path / "out" / ".weft").rglob(some)]:
        file.unlink()
    sink = ParquetSink(str(tmp_path / "out"), every=3600)
    sink.open()
    sink._run = "test"
    sink.flush()
    assert not (lost == "a small file" and seen(tmp_path / "out", "a"))
    sink.deliver(batch)
    sink.close()
    for query in ("a", "b"):
        assert in_order(seen(tmp_path / "out", query)) == in_order(expected(query, range(1), files=3))


def test_a_process_shows_nothing_once_another_one_has_opened_the_folder(tmp_path: Path) -> None:
    old, new = (ParquetSink(str(tmp_path / "out"), every=3600) for _ in range(2))
    batches = [packed(committed(tmp_path / "answers", number), tmp_path / "answers") for number in range(3)]
    old.open()
    old.deliver(batches[0])
    old.flush()
    old.deliver(batches[1])
    new.open()
    new.deliver(batches[1])
    new.deliver(batches[2])
    new.close()
    with pytest.raises(WeftError, match="belongs to another process"):
        old.close()
    assert in_order(seen(tmp_path / "out", "a")) == in_order(expected("a", range(3)))


def test_types_that_arrow_would_write_otherwise_stay_in_files_of_their_own(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("start", pa.timestamp("ns"))])
    found = [written(tmp_path / "answers", "a", number, [[], []], schema) for number in range(2)]
    for one in found:
        for file in one.files:
            pq.write_table(schema.empty_table(), file, use_deprecated_int96_timestamps=True, store_schema=False)
    sink = ParquetSink(str(tmp_path / "out"))
    sink.open()
    for number, one in enumerate(found):
        sink.deliver(CommittedBatch(number, (one,), run="test"))
    sink.close()
    assert len(list((tmp_path / "out" / "query=a").glob("*.parquet"))) == 4


def test_a_query_without_answers_has_a_file_that_tells_its_columns(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "out"))
    sink.open()
    sink.deliver(committed(tmp_path / "answers", 0, ("quiet",), files=0))
    sink.close()
    assert pq.read_table(tmp_path / "out" / "query=quiet").schema.names == ["start", "end", "city", "total"]


def test_plain_spark_reads_all_queries_and_never_what_waits(spark: SparkSession, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "out"), every=3600)
    sink.open()
    sink.deliver(committed(tmp_path / "answers", 0))
    sink.flush()
    sink.deliver(committed(tmp_path / "answers", 1))
    assert spark.read.parquet(str(tmp_path / "out")).groupBy("query").count().collect() in (
        [("a", 6), ("b", 6)],
        [("b", 6), ("a", 6)],
    )
    sink.close()
    assert spark.read.parquet(str(tmp_path / "out" / "query=a")).count() == 12


def test_the_folder_of_another_checkpoint_is_refused(tmp_path: Path) -> None:
    first = ParquetSink(str(tmp_path / "out"))
    first.open()
    first.deliver(committed(tmp_path / "answers", 0))
    first.close()
    second = ParquetSink(str(tmp_path / "out"))
    second.open()
    with pytest.raises(WeftError, match="another checkpoint"):
        second.deliver(CommittedBatch(1, (), run="other"))
    second.close()


def test_a_folder_with_answers_of_a_batch_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out" / "query=a").mkdir(parents=True)
    sink = ParquetSink(str(tmp_path / "out"))
    sink.open()
    with pytest.raises(WeftError, match="another run"):
        sink.deliver(committed(tmp_path / "answers", 0))
    sink.close()
