"""The Kafka sink against a real broker: the reference reader has every row of a committed batch once."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from live.batches import committed, expected
from services.kafka import Broker
from services.processes import finished
from weft import WeftError
from weft.job.sink import CommittedBatch
from weft.sinks import json_values
from weft.sinks.kafka import KafkaSink
from weft.sinks.kafka_reader import Answer, KafkaReader, PartitionReader
from weft.sinks.specs import sink_of


def read(broker: Broker, topic: str) -> list[Answer]:
    with KafkaReader(topic, broker.address) as reader:
        return list(reader.to_end())


def values(found: list[Answer], query: str) -> list[str]:
    return sorted(json.dumps(answer.value) for answer in found if answer.query == query)


def wanted(query: str, batches: range) -> list[str]:
    return sorted(json.dumps(json.loads(json_values.text(row))) for row in expected(query, batches))


def test_one_topic_for_all_queries_gives_every_row_once_also_when_batches_are_delivered_again(
    kafka: Broker, tmp_path: Path
) -> None:
    for first, last in ((0, 2), (1, 4)):
        sink = KafkaSink("all", kafka.address, partitions=3)
        sink.open()
        for number in range(first, last):
            sink.deliver(committed(tmp_path, number))
        sink.close()
    found = read(kafka, "all")
    assert values(found, "a") == wanted("a", range(4))
    assert values(found, "b") == wanted("b", range(4))


def test_a_topic_a_query(kafka: Broker, tmp_path: Path) -> None:
    sink = KafkaSink("own-{query}", kafka.address)
    sink.open()
    sink.deliver(committed(tmp_path, 0, ("a", "b c")))
    sink.close()
    assert values(read(kafka, "own-b_20c"), "b c") == wanted("b c", range(1))
    assert {answer.query for answer in read(kafka, "own-a")} == {"a"}


def test_rows_without_their_marker_are_not_read(kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = KafkaSink("half", kafka.address)
    sink.open()
    sink.deliver(committed(tmp_path, 0))
    crash_after(4, sink, monkeypatch)
    with pytest.raises(RuntimeError, match="killed"):
        sink.deliver(committed(tmp_path, 1))
    assert {answer.batch for answer in read(kafka, "half")} == {0}
    again = KafkaSink("half", kafka.address)
    again.open()
    again.deliver(committed(tmp_path, 1))
    assert values(read(kafka, "half"), "a") == wanted("a", range(2))


def test_records_that_the_broker_refuses_at_first_are_there_in_the_end(kafka: Broker, tmp_path: Path) -> None:
    kafka.topic("refused")
    with kafka.shaky() as address:
        sink = KafkaSink("refused", address, settings={"batch.num.messages": "2"})
        sink.open()
        sink.deliver(committed(tmp_path, 0))
        sink.close()
    assert values(read(kafka, "refused"), "a") == wanted("a", range(1))
    assert values(read(kafka, "refused"), "b") == wanted("b", range(1))


def crash_after(records: int, sink: KafkaSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let some records through, and then nothing more, as if the process had gone."""
    left = iter(range(records))
    send = sink._send

    def sending(*arguments: object, **record: object) -> None:
        if next(left, None) is None:
            assert sink._producer is not None
            sink._producer.flush(30)
            raise RuntimeError("killed")
        send(*arguments, **record)

    monkeypatch.setattr(sink, "_send", sending)


def test_batches_of_another_checkpoint_in_the_same_topic_are_read_too(kafka: Broker, tmp_path: Path) -> None:
    sink = KafkaSink("two-runs", kafka.address)
    sink.open()
    for run in ("first", "second"):
        batch = committed(tmp_path, 0)
        sink.deliver(CommittedBatch(0, batch.answers, run=run))
    assert len(read(kafka, "two-runs")) == 2 * 2 * 6


def test_two_sinks_in_one_topic_are_told_apart(kafka: Broker, tmp_path: Path) -> None:
    sinks = [sink_of(f"{query}=kafka:shared@{kafka.address}") for query in ("a", "b")]
    for sink in sinks:
        sink.open()
    for number in range(3):
        for sink in sinks:
            sink.deliver(committed(tmp_path, number))
    found = read(kafka, "shared")
    for query in ("a", "b"):
        assert values(found, query) == wanted(query, range(3))


def test_the_reader_goes_to_the_end_again_and_does_not_wait_for_more(kafka: Broker, tmp_path: Path) -> None:
    sink = KafkaSink("twice", kafka.address, partitions=2)
    sink.open()
    sink.deliver(committed(tmp_path, 0))
    with KafkaReader("twice", kafka.address) as reader:
        assert len(list(reader.to_end())) == 12
        assert list(reader.to_end()) == []
        sink.deliver(committed(tmp_path, 1))
        assert {answer.batch for answer in reader.to_end()} == {1}


def test_a_batch_that_lacks_records_is_not_taken_for_a_whole_one() -> None:
    row = {"query": "q", "batch": "1", "run": "r", "sink": "s", "window": "/", "id": "1/0/0"}
    marker = {"marker": "commit", "batch": "1", "run": "r", "sink": "s"}
    compacted = PartitionReader()
    compacted.take(row, "{}", "{}")
    with pytest.raises(WeftError, match=r"batch 1 of sink s has 1 of its 2 records left: .* compacted"):
        compacted.take(marker, "", '{"records": 2}')
    old = PartitionReader(beheaded=True)
    old.take(row, "{}", "{}")
    assert old.take(marker, "", '{"records": 2}') == []


def test_the_reader_s_command_says_how_it_is_used() -> None:
    command = [sys.executable, "-m", "weft.sinks.kafka_reader"]
    done = finished(command, Path.cwd(), 60)
    assert done.returncode == 2
    assert "usage: python -m weft.sinks.kafka_reader [-h] TOPIC HOST:PORT" in done.stderr


def test_a_record_tells_its_query_batch_window_and_id(kafka: Broker, tmp_path: Path) -> None:
    sink = KafkaSink("headers", kafka.address)
    sink.open()
    sink.deliver(committed(tmp_path, 7, ("a",)))
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "headers"})
    consumer.assign([TopicPartition("headers", 0, OFFSET_BEGINNING)])
    record = consumer.poll(30)
    consumer.close()
    assert record is not None
    assert {name: value.decode() for name, value in record.headers()} == {
        "query": "a",
        "batch": "7",
        "run": "test",
        "sink": f"kafka:headers@{kafka.address}",
        "window": "2026-01-01T00:07:00.000000Z/2026-01-01T00:08:00.000000Z",
        "id": "7/0/0",
    }
    assert json.loads(record.key()) == {"city": "a 0 0"}
    assert json.loads(record.value())["total"] == 7


def test_a_broker_that_is_not_there_is_named_without_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_KAFKA_SASL_PASSWORD", "hush-hush")
    with pytest.raises(WeftError, match=r"kafka:t@127.0.0.1:1: the broker does not answer") as error:
        KafkaSink("t", "127.0.0.1:1", timeout=1.0).open()
    assert "hush" not in str(error.value)
