"""A place for every kind of sink, empty at first, that can be read back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg.rows import dict_row

from weft.checks import SinkPlace
from weft.job.sink import Sink
from weft.sinks.kafka_reader import KafkaReader
from weft.sinks.memory import MemorySink
from weft.sinks.specs import sink_of

_numbers = itertools.count()


@dataclass
class Memory:
    """Nothing outlives the sink."""

    kept: MemorySink = field(default_factory=MemorySink)

    def sink(self) -> Sink:
        return self.kept

    def rows(self, query: str) -> list[dict[str, Any]]:
        return self.kept.table(query).to_pylist() if query in self.kept.queries else []


@dataclass
class Named:
    """A place that a word names, and a way to read it."""

    word: str
    read: Callable[[str], Iterable[dict[str, Any]]]

    def sink(self) -> Sink:
        return sink_of(self.word)

    def rows(self, query: str) -> Iterable[dict[str, Any]]:
        return self.read(query)


def memory(_: pytest.FixtureRequest, __: Path) -> SinkPlace:
    return Memory()


def parquet(_: pytest.FixtureRequest, folder: Path) -> SinkPlace:
    def read(query: str) -> Iterable[dict[str, Any]]:
        for file in sorted((folder / f"query={query}").glob("*.parquet")):
            yield from pq.read_table(file, partitioning=None).to_pylist()

    return Named(f"parquet:{folder}", read)


def delta(_: pytest.FixtureRequest, folder: Path) -> SinkPlace:
    from deltalake import DeltaTable

    def read(query: str) -> list[dict[str, Any]]:
        table = folder / f"query={query}"
        return DeltaTable(str(table)).to_pyarrow_table().to_pylist() if table.exists() else []

    return Named(f"delta:{folder}", read)


def postgresql(request: pytest.FixtureRequest, _: Path) -> SinkPlace:
    url = request.getfixturevalue("postgres").database()

    def read(query: str) -> list[dict[str, Any]]:
        with psycopg.connect(url, row_factory=dict_row) as connection:
            if connection.execute("SELECT to_regclass(%s) AS found", [query]).fetchone()["found"] is None:
                return []
            return connection.execute(f'SELECT * FROM "{query}"').fetchall()

    return Named(url, read)


def kafka(request: pytest.FixtureRequest, _: Path) -> SinkPlace:
    broker = request.getfixturevalue("kafka")
    topic = broker.topic(f"checks-{next(_numbers)}", partitions=2)

    def read(query: str) -> Iterable[dict[str, Any]]:
        with KafkaReader(topic, broker.address) as reader:
            for answer in reader.to_end():
                if answer.query == query:
                    row = answer.value if isinstance(answer.value, dict) else json.loads(answer.value)
                    yield {**row, **{name: datetime.fromisoformat(row[name]) for name in ("start", "end")}}

    return Named(f"kafka:{topic}@{broker.address}", read)


PLACES = {"memory": memory, "parquet": parquet, "delta": delta, "postgresql": postgresql, "kafka": kafka}
NOT_READ_BACK = {"console"}
"""What is printed, nobody reads."""
