"""The reference reader of what the Kafka sink sends: the rows of whole batches, each once.

From a shell: ``python -m weft.sinks.kafka_reader TOPIC HOST:PORT`` prints a line of JSON a row.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from weft.errors import WeftError
from weft.sinks.kafka import PATIENCE, client_settings

Writer = tuple[str, str]
"""A run and one of its sinks."""


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
    sink: str


@dataclass
class PartitionReader:
    """The two rules, for one partition: rows come with their batch's marker, and no batch comes twice.

    Runs and sinks that share the topic are told apart, as each counts its own batches.

    Examples
    --------
    >>> row = {"query": "q", "batch": "0", "run": "r", "sink": "s", "window": "/", "id": "0/0/0"}
    >>> marker = {"marker": "commit", "batch": "0", "run": "r", "sink": "s"}
    >>> partition = PartitionReader()
    >>> [len(partition.take(*record)) for record in [
    ...     (row, "{}", '{"total": 1}'),  # sent before a crash
    ...     (row, "{}", '{"total": 1}'),  # and after it
    ...     (marker, "", '{"records": 1}'),
    ...     (row, "{}", '{"total": 1}'),  # an old driver, still sending
    ...     (marker, "", '{"records": 1}'),
    ... ]]
    [0, 0, 1, 0, 0]
    """

    beheaded: bool = False
    """Whether the topic has thrown its first records away: then batches may begin before what is left."""
    last: dict[Writer, int] = field(default_factory=dict)
    """By run and sink: the last batch whose marker has come."""
    _waiting: dict[tuple[Writer, int], dict[tuple[str, str], Answer]] = field(default_factory=dict)

    def take(self, headers: Mapping[str, str], key: str, value: str) -> list[Answer]:
        """The rows that a record completes: none, or with a marker those of its batch."""
        writer, batch = (headers["run"], headers.get("sink", "")), int(headers["batch"])
        if batch <= self.last.get(writer, -1):
            return []
        if "marker" in headers:
            return self._completed(writer, batch, json.loads(value).get("records", 0))
        query, id = headers["query"], headers["id"]
        rows = self._waiting.setdefault((writer, batch), {})
        found = json.loads(key or "{}"), json.loads(value)
        rows[query, id] = Answer(query, batch, headers["window"], id, *found, *writer)
        return []

    def _completed(self, writer: Writer, batch: int, count: int) -> list[Answer]:
        """The rows of a batch whose marker tells that they are ``count``."""
        rows = self._waiting.pop((writer, batch), {})
        known = writer in self.last
        self.last[writer] = batch
        if len(rows) >= count:
            return list(rows.values())
        if self.beheaded and not known:
            return []  # rows come in whole batches: of the first one here, only the end is left
        raise WeftError(
            f"batch {batch} of sink {writer[1]} has {len(rows)} of its {count} records left: "
            "a topic of answers must not be compacted (cleanup.policy=delete)"
        )


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
        self._topic = topic
        self._next = {partition: self._offsets(partition)[0] for partition in found.partitions}
        """By partition: the offset of the record that comes next."""
        self._partitions = {partition: PartitionReader(first > 0) for partition, first in self._next.items()}
        self._consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in self._partitions])

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
        partition, offset = _place(message)
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise WeftError(f"the topic cannot be read: {error.str()}")
            self._next[partition] = offset
            return []
        self._next[partition] = offset + 1
        headers = {name: _text(value) for name, value in dict(message.headers() or ()).items()}
        if "batch" not in headers:  # somebody else's record
            return []
        return self._partitions[partition].take(headers, _text(message.key()), _text(message.value()))

    def to_end(self) -> Iterator[Answer]:
        """All rows of whole batches that were not read yet, up to the end of the topic as it is now."""
        ends = {partition: self._offsets(partition)[1] for partition in self._partitions}
        while any(self._next[partition] < end for partition, end in ends.items()):
            yield from self.poll()

    def _offsets(self, partition: int) -> tuple[int, int]:
        """Of the first record of a partition, and after the last."""
        found = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=PATIENCE)
        if found is None:
            raise WeftError(f"partition {partition} of topic {self._topic} does not tell within {PATIENCE:.0f} seconds")
        first, end = found
        return first, end


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


def _place(message: Message) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return partition, offset


def main() -> None:
    """Print the rows of a topic."""
    parser = ArgumentParser(prog="python -m weft.sinks.kafka_reader", description=__doc__.splitlines()[0])
    parser.add_argument("topic", metavar="TOPIC", help="that a Kafka sink writes to")
    parser.add_argument("servers", metavar="HOST:PORT", help="of the broker; several with commas")
    given = parser.parse_args()
    try:
        with KafkaReader(given.topic, given.servers) as reader:
            for answer in reader.to_end():
                print(json.dumps(asdict(answer), ensure_ascii=False))
    except (WeftError, KafkaException) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
