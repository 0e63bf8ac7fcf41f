"""Answers as records of Kafka: one topic for all queries, or one a query.

A record's key is its group as JSON, its value the row as JSON. Its headers are ``query``, ``batch``, ``window`` (start
and end with a slash between, as far as the query shows them), ``run`` (the checkpoint), ``sink`` (the sink's name) and
``id``, which names the row for ever: batch, file and row. After the records of a batch, a *marker* goes to every
partition that got some of them: a record with the header ``marker``, whose value tells how many they are. Several runs
and several sinks may write to one topic: each has its own batches and markers there.

**Exactly once.** A batch that is delivered again, after a crash, puts its records into the topic again, under the
same ids, in the same partitions. A reader that obeys two rules, for each run and sink, has every row once: *take the
records of a batch when its marker comes, each id once; pass over records of a batch whose marker has come before.*
That is what :mod:`weft.sinks.kafka_reader` does. All records belong to committed batches, so a reader that does
not care for repetitions may read them as they come. An old driver that is still sending does no harm: what it sends
are rows that readers have, or are about to have, under the same ids.

The topic must not be compacted (``cleanup.policy=compact``), as all windows of a group have the same key.
Settings that begin with ``WEFT_KAFKA_`` in the environment are handed to the client, so that secrets stand in no file:
``WEFT_KAFKA_SASL_PASSWORD`` is its ``sasl.password``. Those with ``WEFT_KAFKA_JAVA_`` are for the source, which has
another client.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from weft.errors import WeftError
from weft.job.sink import CommittedBatch, QueryAnswers
from weft.sinks import json_values

PATIENCE = 30.0
"""Seconds that a broker may take to answer."""
ENVIRONMENT = "WEFT_KAFKA_"
QUERY = "{query}"
LONGEST = 249
"""Characters that the name of a topic may have."""


class KafkaSink:
    """Sends answers to Kafka.

    Parameters
    ----------
    topic
        The topic; with ``{query}`` in it, one a query.
    servers
        ``HOST:PORT``, or several with commas.
    partitions
        How many a topic has that is made here; the broker's default otherwise.
    settings
        More settings of the client (librdkafka's names).
    timeout
        Seconds that the broker may take to answer, before a delivery is given up and tried again.
    """

    def __init__(
        self,
        topic: str,
        servers: str,
        *,
        partitions: int = -1,
        settings: Mapping[str, str] | None = None,
        timeout: float = PATIENCE,
        name: str | None = None,
    ) -> None:
        self.topic = topic
        self.name = name or f"kafka:{topic}@{servers}"
        self.partitions = partitions
        self.timeout = timeout
        self._settings = client_settings(servers, settings)
        self._producer: Producer | None = None
        self._known: set[str] = set()

    def open(self) -> None:
        """Reach the broker."""
        sending = {"enable.idempotence": True, "linger.ms": 5, "compression.type": "zstd"}
        sending["message.timeout.ms"] = max(round(self.timeout * 1000), 10)
        # the partitioner of the Java clients: a group stays in its partition, whoever sends
        sending["partitioner"] = "murmur2_random"
        # A broker takes any records as a sender's first ones in a partition. Of two requests under way it could refuse
        # the first and take the second, as it does while a topic is being made; the client would then believe that
        # both have arrived (KAFKA-15591).
        one_by_one = {"max.in.flight.requests.per.connection": 1}
        self._producer = Producer({**sending, **self._settings, **one_by_one})
        self._known = set()
        try:
            self._known = set(self._producer.list_topics(timeout=self.timeout).topics)
        except KafkaException as error:
            raise WeftError(f"sink {self.name}: the broker does not answer: {error.args[0].str()}") from None

    def deliver(self, batch: CommittedBatch) -> None:
        """Send the rows of a batch, and when all have arrived the markers."""
        arrived: Counter[tuple[str, int]] = Counter()
        failures: list[KafkaError] = []

        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
            else:
                arrived[message.topic() or "", message.partition() or 0] += 1

        for answers in batch.answers:
            if answers.files:
                topic = topic_of(self.topic, answers.query)
                self._make(topic)
                for record in records(batch, answers, self.name):
                    self._send(topic, note, failures, **record)
        self._settle(failures)
        for (topic, partition), count in sorted(arrived.items()):
            marker = {"batch": batch.number, "records": count, "run": batch.run, "watermark": batch.watermark}
            headers = {"marker": "commit", "batch": str(batch.number), "run": batch.run, "sink": self.name}
            value = json_values.text(marker)
            note_marker = _raise_into(failures)
            self._send(topic, note_marker, failures, value=value, headers=_encoded(headers), partition=partition)
        self._settle(failures)

    def close(self) -> None:
        """Let go of the broker, and of what a failed delivery has left: its batch will be sent again as a whole."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _send(self, topic: str, note: Any, failures: list[KafkaError], **record: Any) -> None:
        assert self._producer is not None, "open() comes first"
        while True:
            try:
                self._producer.produce(topic, on_delivery=note, **record)
            except BufferError:  # as many are under way as the client holds
                self._producer.poll(0.5)
                self._raise(failures)
            else:
                self._producer.poll(0)
                return

    def _settle(self, failures: list[KafkaError]) -> None:
        assert self._producer is not None, "open() comes first"
        left = self._producer.flush(self.timeout)
        self._raise(failures)
        if left:
            raise WeftError(f"sink {self.name}: {left} records did not arrive within {self.timeout:g} seconds")

    def _raise(self, failures: list[KafkaError]) -> None:
        if failures:
            raise WeftError(f"sink {self.name}: records were not taken: {failures[0].str()}")

    def _make(self, topic: str) -> None:
        """Make a topic that is not there."""
        if topic in self._known:
            return
        admin = AdminClient(dict(self._settings))
        try:
            admin.create_topics([NewTopic(topic, self.partitions, -1)])[topic].result(self.timeout)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise WeftError(f"sink {self.name}: topic {topic} cannot be made: {error.args[0].str()}") from None
        self._known.add(topic)


def _raise_into(failures: list[KafkaError]) -> Any:
    def note(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    return note


def records(batch: CommittedBatch, answers: QueryAnswers, sink: str) -> Iterator[dict[str, Any]]:
    """What is sent for the rows of a query."""
    same = {"query": answers.query, "batch": str(batch.number), "run": batch.run, "sink": sink}
    for file, table in enumerate(answers.tables()):
        for number, row in enumerate(table.to_pylist()):
            window = "/".join(_shown(row, column) for column in answers.window)
            headers = {**same, "window": window, "id": f"{batch.number}/{file}/{number}"}
            group = {column: row[column] for column in answers.keys or ()}
            yield {
                "key": json_values.text(group),
                "value": json_values.text(row),
                "headers": _encoded(headers),
            }


def _encoded(headers: Mapping[str, str]) -> dict[str, bytes]:
    return {name: value.encode() for name, value in headers.items()}


def _shown(row: Mapping[str, Any], column: str | None) -> str:
    if column is None:
        return ""
    value: Any = row
    for part in [column] if column in row else column.split("."):
        value = value[part]
    return str(json_values.plain(value))


def topic_of(pattern: str, query: str) -> str:
    """The topic of a query; what Kafka does not allow in a name becomes ``_`` and its code.

    Examples
    --------
    >>> topic_of("answers", "delays"), topic_of("weft-{query}", "delays by hour")
    ('answers', 'weft-delays_20by_20hour')
    >>> len(topic_of("weft-{query}", "d" * 249))
    249
    """
    legal = re.sub(r"[^A-Za-z0-9._-]", lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), query)
    topic = pattern.replace(QUERY, legal)
    if len(topic) <= LONGEST:
        return topic
    return f"{topic[: LONGEST - 17]}_{blake2b(topic.encode(), digest_size=8).hexdigest()}"


def client_settings(servers: str, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Settings of a client, those of the environment included."""
    secret = {
        name.removeprefix(ENVIRONMENT).lower().replace("_", "."): value
        for name, value in os.environ.items()
        if name.startswith(ENVIRONMENT) and not name.startswith(f"{ENVIRONMENT}JAVA_")
    }
    return {"bootstrap.servers": servers, "log_level": 2, **secret, **(settings or {})}
