"""The events of the crash tests, and what readers of each sink see of the answers."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg.rows import dict_row

from weft.sinks import json_values
from weft.sinks.kafka_reader import KafkaReader

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
Rows = dict[str, Counter[str]]
"""The rows of each query as JSON, and how often each is there."""


def write_source(folder: Path, seed: int, files: int) -> None:
    """Files of rows, disordered within the allowed lateness."""
    rnd = random.Random(seed)
    folder.mkdir(parents=True)
    for number in range(files):
        count = rnd.randint(50, 400)
        instants = [BEGIN + number * 12 * SECOND + rnd.randrange(12 * SECOND) for _ in range(count)]
        instants = [instant - rnd.choice((0, 0, 4 * SECOND)) for instant in instants]
        columns = {
            "ts": pa.array(instants, pa.timestamp("us", tz="UTC")),
            "k": pa.array([rnd.choice("abcde") for _ in instants]),
            "v": pa.array([rnd.randrange(100) for _ in instants], pa.int64()),
        }
        file = folder / f"{number:04}.parquet"
        pq.write_table(pa.table(columns), file)
        os.utime(file, (number, number))  # Spark takes files in the order of their times


def counted(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Rows as JSON, without the columns by which a sink tells them apart."""
    return Counter(
        json.dumps({name: json_values.plain(row[name]) for name in sorted(row) if not name.startswith("weft_")})
        for row in rows
    )


def parquet_rows(folder: Path) -> Rows:
    """What a reader of the folder sees."""
    found: Rows = {}
    for query in sorted(folder.glob("query=*")):
        tables = [pq.read_table(file, partitioning=None) for file in query.glob("*.parquet")]
        found[query.name.removeprefix("query=")] = counted(row for table in tables for row in table.to_pylist())
    return found


def kafka_rows(topic: str, servers: str) -> Rows:
    """What the reference reader reads by committed batch."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    with KafkaReader(topic, servers) as reader:
        for answer in reader.to_end():
            found.setdefault(answer.query, []).append(answer.value)
    return {query: counted(rows) for query, rows in found.items()}


def postgres_rows(url: str) -> Rows:
    """What the tables hold."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        tables = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        names = [str(table["table_name"]) for table in tables]
        return {name: counted(connection.execute(f'SELECT * FROM "{name}"')) for name in names}
