"""The broker and the database of the tests are real ones."""

from __future__ import annotations

import psycopg
import pytest
from confluent_kafka import Consumer

from services.kafka import Broker
from services.postgres import Server
from services.processes import ServiceError, start


def test_the_broker_gives_back_what_was_sent(kafka: Broker) -> None:
    topic = kafka.topic("greetings", partitions=2)
    kafka.produce(topic, [f"{number}" for number in range(100)])
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "tests", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = [record.value() for _ in range(100) if (record := consumer.poll(20)) and not record.error()]
    consumer.close()
    assert sorted(int(value) for value in found) == list(range(100))


def test_the_database_keeps_what_was_written(postgres: Server) -> None:
    with psycopg.connect(postgres.database()) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]


def test_a_server_that_does_not_start_says_why(tmp_path: object) -> None:
    def never() -> None:
        raise OSError("nobody there")

    with pytest.raises(ServiceError, match="no such luck"):
        start(["sh", "-c", "echo no such luck; exit 3"], tmp_path / "log", never)
