"""Kafka and PostgreSQL when the process that delivers is killed at random moments, again and again."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import psycopg
from psycopg.rows import dict_row

from live.batches import expected, in_order
from services.kafka import Broker
from services.postgres import Server
from weft.sinks import json_values
from weft.sinks.kafka_reader import KafkaReader

BATCHES = 120
KILLS = 6
DELIVERING = """
import sys
from pathlib import Path
from live.batches import committed
from weft.sinks.specs import sink_of
work, spec, delivered = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
first = int(delivered.read_text()) + 1 if delivered.exists() else 0
sink = sink_of(spec)
sink.open()
print("ready", flush=True)
for number in range(first, int(sys.argv[4])):
    sink.deliver(committed(work, number, count=40))
    delivered.with_suffix(".new").write_text(str(number))
    delivered.with_suffix(".new").rename(delivered)
sink.close()
"""


def deliver_while_killed(spec: str, work: Path) -> None:
    """Deliver all batches; the process is killed several times and goes on after the last batch that it noted."""
    chance = random.Random(11)
    for attempt in range(KILLS + 1):
        command = [sys.executable, "-c", DELIVERING, str(work / "answers"), spec, str(work / "delivered"), str(BATCHES)]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if attempt == KILLS:
            assert process.wait(120) == 0
            return
        time.sleep(chance.random() * 0.15)
        assert process.poll() is None, "it was done before it could be killed: have it deliver more"
        process.kill()
        process.wait()


def test_readers_of_kafka_have_every_row_once(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic("killed", partitions=2)
    deliver_while_killed(f"kafka:{topic}@{kafka.address}", tmp_path)
    with KafkaReader(topic, kafka.address) as reader:
        found = [answer.value for answer in reader.to_end() if answer.query == "a"]
    wanted = [json.loads(json_values.text(row)) for row in expected("a", range(BATCHES), count=40)]
    assert in_order(found) == in_order(wanted)


def test_readers_of_postgresql_have_every_row_once(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    deliver_while_killed(url, tmp_path)
    with psycopg.connect(url, row_factory=dict_row) as connection:
        found = connection.execute("SELECT * FROM a").fetchall()
    assert in_order(found) == in_order(expected("a", range(BATCHES), count=40))
