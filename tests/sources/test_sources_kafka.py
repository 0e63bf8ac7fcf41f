"""Topics of a real broker as streams: JSON, CSV and Avro by a given schema, bad records kept with their offset."""

from __future__ import annotations

import io
import json
import socketserver
import threading
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from live.streams import keep_bad, read_all
from services.kafka import Broker
from weft import WeftError
from weft.sources.specs import live_source

SCHEMA = "ts TIMESTAMP, city STRING, n BIGINT"
AVRO = {
    "type": "record",
    "name": "reading",
    "fields": [{"name": "city", "type": "string"}, {"name": "n", "type": ["null", "long"]}],
}


def letters(dead: Path) -> list[dict[str, Any]]:
    return [
        row for file in sorted(dead.glob("run=*/batch=*/*.parquet")) for row in pq.ParquetFile(file).read().to_pylist()
    ]


def good(number: int) -> str:
    return json.dumps({"ts": f"2026-01-01T00:00:{number:02}Z", "city": "x", "n": number})


def test_json_records_are_parsed_and_bad_ones_kept_with_topic_partition_and_offset(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    topic = kafka.topic("readings-json")
    kafka.produce(topic, [good(0), "{broken", good(1), b"\xff\xfe", good(2)])
    source = live_source(spark, f"kafka:{topic}@{kafka.address}", "ts", schema=SCHEMA, dead=str(tmp_path / "dead"))
    read = read_all(source, tmp_path / "checkpoint")
    assert sorted(row["n"] for row in read.rows) == [0, 1, 2]
    found = letters(tmp_path / "dead")
    assert sorted((row["topic"], row["partition"], row["offset"], row["raw"]) for row in found) == [
        (topic, 0, 1, b"{broken"),
        (topic, 0, 3, b"\xff\xfe"),
    ]
    kafka.produce(topic, [good(3)])
    assert [row["n"] for row in read_all(source, tmp_path / "checkpoint").rows] == [3]


def test_csv_records_are_parsed(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic("readings-csv")
    kafka.produce(topic, ["2026-01-01 00:00:00;x;1", "2026-01-01 00:00:00;y;many"])
    spec = f"kafka:{topic}@{kafka.address}"
    dead = str(tmp_path / "dead")
    source = live_source(spark, spec, "ts", format="csv", schema=SCHEMA, options={"sep": ";"}, dead=dead)
    read = read_all(source, tmp_path / "checkpoint")
    assert [(row["city"], row["n"]) for row in read.rows] == [("x", 1)]
    assert [row["reason"] for row in letters(tmp_path / "dead")] == ["n is no bigint: many"]


def test_avro_records_are_parsed_by_their_schema(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic("readings-avro")
    kafka.produce(topic, [encoded({"city": "x", "n": 1}), b"\x7f", encoded({"city": "y", "n": None})])
    spec = f"kafka:{topic}@{kafka.address}"
    dead = str(tmp_path / "dead")
    source = live_source(spark, spec, "ts", format="avro", schema=json.dumps(AVRO), dead=dead)
    read = read_all(source, tmp_path / "checkpoint")
    assert sorted((row["city"], row["n"]) for row in read.rows) == [("x", 1), ("y", None)]
    assert [(row["offset"], row["reason"]) for row in letters(tmp_path / "dead")] == [
        (1, "it is not an Avro record of the schema")
    ]


def encoded(record: dict[str, object]) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(AVRO), record)
    return buffer.getvalue()


def test_lines_of_a_socket_are_parsed(spark: SparkSession, tmp_path: Path) -> None:
    class Lines(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(f"{good(1)}\nbroken\n{good(2)}\n".encode())
            self.wfile.flush()
            sent.wait(60)

    sent = threading.Event()
    found: list[int] = []
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Lines) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        spec = f"socket:127.0.0.1:{server.server_address[1]}"
        source = live_source(spark, spec, "ts", schema=SCHEMA, dead=str(tmp_path / "dead"))

        def take(frame: Any, number: int) -> None:
            found.extend(row["n"] for row in source.good(frame).collect())
            keep_bad(source, frame, number)

        query = source.rows.writeStream.foreachBatch(take).start()
        while len(found) < 2 or not letters(tmp_path / "dead"):
            assert query.exception() is None
            query.awaitTermination(1)
        query.stop()
        sent.set()
        server.shutdown()
    assert sorted(found) == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema": None}, "give their schema"),
        ({"format": "xml"}, "there are json, csv, avro"),
        ({"format": "avro"}, 'give {"type": "record", ...}'),
        ({"schema": "ts TIMESTAMPP"}, "the schema cannot be read"),
    ],
)
def test_records_that_nothing_describes_are_refused(
    spark: SparkSession, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(WeftError) as error:
        live_source(spark, "kafka:t@127.0.0.1:1", "ts", **{"schema": SCHEMA, **arguments})
    assert message in str(error.value)
