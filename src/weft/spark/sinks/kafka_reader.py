"""The reference reader of what the Kafka sink sends: the rows of whole batches, each once.

From a shell: ``python -m weft.spark.sinks.kafka_reader TOPIC HOST:PORT`` prints a line of JSON a row.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from weft.errors import WeftError
from weft.spark.sinks.kafka import PATIENCE, client_settings


@dataclass(frozen=True)
class Answer:
    """A row of a committed batch."""

    query: str
    batch: int
    window: str
    id: str
    key: dict[str, Any]
    value: dict[str, Any]
    run: str


@dataclass
class PartitionReader:
    """The two rules, for one partition: rows come with their batch's marker, and no batch comes twice.

    Examples
    --------
    >>> row = {"query": "q", "batch": "0", "run": "r", "window": "/", "id": "0/0/0"}
    >>> marker = {"marker": "commit", "batch": "0", "run": "r"}
    >>> partition = PartitionReader()
    >>> [len(partition.take(*record)) for record in [
    ...     (row, "{}", '{"total": 1}'),  # sent before a crash
    ...     (row, "{}", '{"total": 1}'),  # and after it
    ...     (marker, "", "{}"),
    ...     (row, "{}", '{"total": 1}'),  # an old driver, still sending
    ...     (marker, "", "{}"),
    ... ]]
    [0, 0, 1, 0, 0]
    """

    last: dict[str, int] = field(default_factory=dict)
    """By run: the last batch whose marker has come."""
    _waiting: dict[tuple[str, int], dict[tuple[str, str], Answer]] = field(default_factory=dict)

    def take(self, headers: Mapping[str, str], key: str, value: str) -> list[Answer]:
        """The rows that a record completes: none, or with a marker those of its batch."""
        run, batch = headers["run"], int(headers["batch"])
        if batch <= self.last.get(run, -1):
            return []
        if "marker" in headers:
            self.last[run] = batch
            return list(self._waiting.pop((run, batch), {}).values())
        query, id = headers["query"], headers["id"]
        rows = self._waiting.setdefault((run, batch), {})
        rows[query, id] = Answer(query, batch, headers["window"], id, json.loads(key or "{}"), json.loads(value), run)
        return []


class KafkaReader:
    """Reads the partitions of a topic from their beginning.

    Parameters
    ----------
    topic
        The topic.
    servers
        ``HOST:PORT``, or several with commas.
    settings
        More settings of the client.
    """

    def __init__(self, topic: str, servers: str, settings: Mapping[str, str] | None = None) -> None:
        own = {"group.id": "weft-reader", "enable.auto.commit": False, "enable.partition.eof": True}
        self._consumer = Consumer({**client_settings(servers, settings), **own})
        found = self._consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
        if found.error is not None:
            raise WeftError(f"topic {topic} at {servers} cannot be read: {found.error.str()}")
        self._partitions = {partition: PartitionReader() for partition in found.partitions}
        self._consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in self._partitions])
        self._at_end: set[int] = set()

    def __enter__(self) -> KafkaReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()

    def poll(self, seconds: float = 1.0) -> list[Answer]:
        """The rows that the next record completes, if one comes in time."""
        message = self._consumer.poll(seconds)
        if message is None:
            return []
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise WeftError(f"the topic cannot be read: {error.str()}")
            self._at_end.add(_partition(message))
            return []
        self._at_end.discard(_partition(message))
        headers = {name: _text(value) for name, value in dict(message.headers() or ()).items()}
        if "batch" not in headers:  # somebody else's record
            return []
        return self._partitions[_partition(message)].take(headers, _text(message.key()), _text(message.value()))

    def to_end(self) -> Iterator[Answer]:
        """All rows of whole batches, up to the end of the topic as it is now."""
        self._at_end.clear()
        while len(self._at_end) < len(self._partitions):
            yield from self.poll()


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


def _partition(message: Message) -> int:
    partition = message.partition()
    assert partition is not None
    return partition


def main() -> None:
    """Print the rows of a topic."""
    topic, servers = sys.argv[1:3]
    with KafkaReader(topic, servers) as reader:
        for answer in reader.to_end():
            print(json.dumps(asdict(answer), ensure_ascii=False))


if __name__ == "__main__":
    main()
