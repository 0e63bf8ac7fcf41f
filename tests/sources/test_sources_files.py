"""Folders of files as streams: schemas from what is there, and bad lines that are kept, once, beside the good ones."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from live.streams import read_all
from weft import WeftError
from weft.sources.specs import live_source

LINES = [
    '{"ts": "2026-01-01T00:00:00Z", "city": "a", "n": 1}',
    '{"ts": "2026-01-01T00:00:01Z", "city": "b", "n": 2}',
]
BAD = ['{"ts": "yesterday", "city": "c", "n": 3}', "no json at all", '[{"ts": null}, {"n": 4}]', '{"n": "five"}']


def folder(tmp_path: Path, **files: str) -> str:
    place = tmp_path / "in"
    place.mkdir(exist_ok=True)
    for name, text in files.items():
        (place / name.replace("_", ".")).write_text(text)
    return str(place)


def letters(dead: Path) -> list[tuple[str, str]]:
    found = [
        row for file in sorted(dead.glob("run=*/batch=*/*.parquet")) for row in pq.ParquetFile(file).read().to_pylist()
    ]
    return sorted((row["raw"].decode(), row["reason"]) for row in found)


def test_json_tells_its_columns_and_its_bad_lines_are_kept_with_reason_file_and_bytes(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = folder(tmp_path, one_json="\n".join([*LINES, "", *BAD]))
    schema = "ts TIMESTAMP, city STRING, n BIGINT"
    source = live_source(spark, place, "ts", schema=schema, dead=str(tmp_path / "dead"))
    read = read_all(source, tmp_path / "checkpoint")
    assert sorted((row["ts"], row["city"], row["n"]) for row in read.rows) == [
        (datetime(2026, 1, 1, 0, 0, 0), "a", 1),
        (datetime(2026, 1, 1, 0, 0, 1), "b", 2),
    ]
    assert read.bad == 4
    assert letters(tmp_path / "dead") == sorted(
        [
            (BAD[0], "ts is no timestamp: yesterday"),
            (BAD[1], "it is not JSON"),
            (BAD[2], "it is not a JSON object"),
            (BAD[3], "n is no bigint: five"),
        ]
    )
    (file,) = (tmp_path / "dead").glob("run=*/batch=0/*.parquet")
    assert {Path(row["file"]).name for row in pq.ParquetFile(file).read().to_pylist()} == {"one.json"}


def test_without_a_schema_files_tell_it_and_an_event_time_of_text_becomes_a_timestamp(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = live_source(spark, folder(tmp_path, one_json="\n".join(LINES)), "ts")
    assert {item.name: item.dataType.simpleString() for item in source.rows.schema if item.name in source.columns} == {
        "city": "string",
        "n": "bigint",
        "ts": "timestamp",
    }


def test_csv_with_headers_gives_its_rows_and_keeps_its_bad_lines(spark: SparkSession, tmp_path: Path) -> None:
    good = 'ts,city,n\n2026-01-01 00:00:00,a,1\n2026-01-01 00:00:01,"b, c",2\n'
    bad = "ts,city,n\nnever,d,3\n2026-01-01 00:00:02,e,x\n2026-01-01 00:00:03,f\n2026-01-01 00:00:04,g,4\n"
    place = folder(tmp_path, one_csv=good)
    source = live_source(spark, place, "ts", dead=str(tmp_path / "dead"), max_files=1)
    folder(tmp_path, two_csv=bad)
    read = read_all(source, tmp_path / "checkpoint")
    assert sorted((row["city"], row["n"]) for row in read.rows) == [("a", 1), ("b, c", 2), ("g", 4)]
    assert read.batches == 2
    assert [reason for _, reason in letters(tmp_path / "dead")] == [
        "n is no int: x",
        "it does not have 3 columns",
        "ts is no timestamp: never",
    ]


def test_a_batch_that_is_run_again_keeps_its_bad_records_once(spark: SparkSession, tmp_path: Path) -> None:
    place = folder(tmp_path, one_json="\n".join([*LINES, *BAD]))
    source = live_source(spark, place, "ts", schema="ts TIMESTAMP, n INT", dead=str(tmp_path / "dead"))
    with pytest.raises(StreamingQueryException, match="killed"):
        read_all(source, tmp_path / "checkpoint", crash_before_commit_of=0)
    read = read_all(source, tmp_path / "checkpoint")
    assert (len(read.rows), read.bad) == (2, 4)
    assert len(letters(tmp_path / "dead")) == 4


def test_two_checkpoints_that_share_the_folder_for_bad_records_both_keep_theirs(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = folder(tmp_path, one_json="\n".join([*LINES, *BAD]))
    source = live_source(spark, place, "ts", schema="ts TIMESTAMP, n INT", dead=str(tmp_path / "dead"))
    for checkpoint in ("first", "second", "second"):
        read_all(source, tmp_path / checkpoint)
    assert len(letters(tmp_path / "dead")) == 2 * 4


def test_without_a_place_for_bad_records_one_stops_the_run_with_what_it_is(spark: SparkSession, tmp_path: Path) -> None:
    place = folder(tmp_path, one_json="\n".join([*LINES, BAD[0]]))
    source = live_source(spark, place, "ts", schema="ts TIMESTAMP, n INT")
    with pytest.raises(StreamingQueryException, match=r"one\.json: ts is no timestamp: yesterday"):
        read_all(source, tmp_path / "checkpoint")


def test_parquet_whose_event_time_is_text_keeps_the_rows_whose_text_is_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"at": ["2026-01-01 00:00:00", "soon", None], "n": [1, 2, 3]}), tmp_path / "in/x.parquet")
    source = live_source(spark, str(tmp_path / "in"), "at", dead=str(tmp_path / "dead"))
    read = read_all(source, tmp_path / "checkpoint")
    assert sorted((row["n"], row["at"]) for row in read.rows) == [(1, datetime(2026, 1, 1)), (3, None)]
    ((raw, reason),) = letters(tmp_path / "dead")
    assert json.loads(raw) == {"at": "soon", "n": 2}
    assert reason == "at is no timestamp"


def test_a_folder_that_tells_no_columns_asks_for_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="give the schema"):
        live_source(spark, folder(tmp_path), "ts", format="json")
    with pytest.raises(WeftError, match="there is no folder"):
        live_source(spark, str(tmp_path / "nowhere"), "ts")


def test_numbers_that_come_by_themselves_and_any_streaming_frame_are_sources(
    spark: SparkSession, tmp_path: Path
) -> None:
    rate = live_source(spark, "rate-micro-batch:100", "timestamp")
    assert rate.columns == ("timestamp", "value")
    own = live_source(spark, rate.rows.selectExpr("timestamp AS ts", "value % 3 AS k"), "ts")
    assert own.columns == ("ts", "k")
    assert own.letters is None
    with pytest.raises(WeftError, match="is not a stream"):
        live_source(spark, spark.range(3), "id")
    with pytest.raises(WeftError, match="of the form rate:ROWS"):
        live_source(spark, "rate:many", "timestamp")
