"""The PostgreSQL sink against a real server: upserts, one transaction a batch, and a password that nobody sees."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.rows import dict_row

from live.batches import SCHEMA, START, answers, committed, expected, in_order, rows_of, written
from services.postgres import PASSWORD, Server
from weft import WeftError
from weft.job.sink import CommittedBatch, QueryAnswers
from weft.sinks.postgres import PostgresSink


def table(url: str, name: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        return connection.execute(f'SELECT * FROM "{name}"').fetchall()


def test_batches_that_are_delivered_again_change_nothing(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    for first, last in ((0, 2), (1, 4), (0, 4)):
        sink = PostgresSink(url)
        sink.open()
        for number in range(first, last):
            sink.deliver(committed(tmp_path, number))
        sink.close()
    for query in ("a", "b"):
        assert in_order(table(url, query)) == in_order(expected(query, range(4)))


def test_a_batch_appears_in_all_tables_or_in_none(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    sink = PostgresSink(url)
    sink.open()
    sink.deliver(committed(tmp_path, 0))
    twice = rows_of("b", 1, 0)[0]
    bad = written(tmp_path / "bad", "b", 1, [[twice, twice]])
    with pytest.raises(WeftError, match="batch 1 was not taken"):
        sink.deliver(CommittedBatch(1, (answers(tmp_path, "a", 1), bad)))
    assert in_order(table(url, "a")) == in_order(expected("a", range(1)))
    sink.deliver(committed(tmp_path / "better", 1))
    assert in_order(table(url, "a")) == in_order(expected("a", range(2)))


def test_a_group_whose_key_is_null_is_upserted_too(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    row = {"start": START, "end": START + timedelta(minutes=1), "city": None, "total": 1}
    sink = PostgresSink(url)
    sink.open()
    for _ in range(2):
        sink.deliver(CommittedBatch(0, (written(tmp_path, "a", 0, [[row]]),)))
    assert table(url, "a") == [row]


def test_rows_without_a_key_of_their_own_are_told_apart_by_batch_file_and_row(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    sink = PostgresSink(url)
    sink.open()
    same = {"start": START, "end": START, "city": "x", "total": 1}
    made = written(tmp_path, "a", 0, [[same, same], [same]])
    for _ in range(2):
        sink.deliver(CommittedBatch(0, (QueryAnswers("a", SCHEMA, made.files, (None, None), None),), run="r"))
    found = sorted((row["weft_run"], row["weft_batch"], row["weft_file"], row["weft_row"]) for row in table(url, "a"))
    assert found == [("r", 0, 0, 0), ("r", 0, 0, 1), ("r", 0, 1, 0)]


def test_a_nul_in_a_text_becomes_its_picture_and_stops_nothing(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    schema = SCHEMA.append(pa.field("all", pa.list_(pa.string())))
    ends = {"start": START, "end": START + timedelta(minutes=1)}
    rows = [{**ends, "city": city, "total": 1, "all": ["x\0", "\\u0000"]} for city in ("a\0b", "a\u2400b", "c")]
    sink = PostgresSink(url)
    sink.open()
    for _ in range(2):
        sink.deliver(CommittedBatch(0, (written(tmp_path, "a", 0, [rows], schema),)))
    found = sorted((row["city"], row["all"]) for row in table(url, "a"))
    assert found == [("a\u2400b", ["x\u2400", "\\u0000"]), ("c", ["x\u2400", "\\u0000"])]


def test_a_column_whose_name_is_too_long_for_postgresql_is_found_again_after_a_restart(
    postgres: Server, tmp_path: Path
) -> None:
    url = postgres.database()
    long, like = "über " * 20 + "one", "über " * 20 + "two"
    schema = pa.schema([*list(SCHEMA)[:2], pa.field(long, pa.string()), pa.field(like, pa.int64())])
    ends = {"start": START, "end": START + timedelta(minutes=1)}
    made = written(tmp_path, "a", 0, [[{**ends, long: "x", like: 7}]], schema)
    for _ in range(2):
        sink = PostgresSink(url)
        sink.open()
        sink.deliver(CommittedBatch(0, (QueryAnswers("a", schema, made.files, ("start", "end"), (long,)),)))
        sink.close()
    (found,) = table(url, "a")
    assert list(found.values())[2:] == ["x", 7]
    assert all(len(name.encode()) <= 63 for name in found)


def test_every_type_keeps_its_values(postgres: Server, tmp_path: Path) -> None:
    instant = pa.timestamp("us", "UTC")
    window = pa.struct([("start", instant), ("end", instant)])
    row = {
        "window": {"start": START, "end": START + timedelta(hours=1)},
        "tiny": 1,
        "small": -2,
        "plain": 3,
        "big": 2**62,
        "real": 0.5,
        "double": float("inf"),
        "money": Decimal("12345678901234567890.12"),
        "yes": True,
        'text: with %s, "quotes" and\ttabs\\': "a\tb\\N\n",
        "bytes": b"\0\x01\\",
        "day": date(2026, 2, 3),
        "at": datetime(2026, 1, 1, 12, 0, 0, 123456),
        "took": timedelta(seconds=90, microseconds=5),
        "list": [1, None, 3],
        "nothing": None,
    }
    kinds = [window, pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(38, 2)]
    kinds += [pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.timestamp("us"), pa.duration("us")]
    kinds += [pa.list_(pa.int64()), pa.string()]
    schema = pa.schema(list(zip(row, kinds, strict=True)))
    file = tmp_path / "typed.parquet"
    pa.parquet.write_table(pa.Table.from_pylist([row], schema), file)
    made = QueryAnswers("Typed Query", schema, (str(file),), ("window.start", "window.end"), ("tiny",))
    url = postgres.database()
    sink = PostgresSink(url)
    sink.open()
    for _ in range(2):
        sink.deliver(CommittedBatch(0, (made,)))
    (found,) = table(url, "Typed Query")
    ends = {"window_start": START, "window_end": START + timedelta(hours=1)}
    assert found == {**ends, **{name: value for name, value in row.items() if name != "window"}}
    assert found["window_start"].astimezone(UTC) == START


def test_a_table_of_other_columns_is_named(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE a (start timestamptz)")
    sink = PostgresSink(url)
    sink.open()
    with pytest.raises(WeftError, match="table a is there and has no column end, city, total"):
        sink.deliver(committed(tmp_path, 0, ("a",)))


def test_the_password_comes_from_the_environment_and_is_shown_nowhere(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = postgres.database()
    monkeypatch.setenv("WEFT_POSTGRES_PASSWORD", PASSWORD)
    sink = PostgresSink(url.replace(f":{PASSWORD}", ""))
    sink.open()
    sink.deliver(committed(tmp_path, 0))
    assert len(table(url, "a")) == 6
    wrong = PostgresSink(url.replace(PASSWORD, "wr0ng-one"))
    with pytest.raises(WeftError, match="cannot be reached") as error:
        wrong.open()
    shown = f"{sink.name} {wrong.name} {error.value!r} {error.value} {caplog.text} {vars(sink)}"
    assert PASSWORD not in shown
    assert "wr0ng-one" not in shown


def test_a_database_that_is_not_there_is_an_error_with_its_name(postgres: Server) -> None:
    with pytest.raises(WeftError, match=r"postgresql://weft@127\.0\.0\.1:\d+/nowhere: cannot be reached"):
        PostgresSink(postgres.url("nowhere")).open()
