"""Committed batches for sinks: files as the commit of a batch lists them, with rows that occur nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.job.sink import CommittedBatch, QueryAnswers

START = datetime(2026, 1, 1, tzinfo=UTC)
FILES, ROWS = 2, 3
"""Of a query in a batch, and of a file."""
SCHEMA = pa.schema(
    [
        ("start", pa.timestamp("us", "UTC")),
        ("end", pa.timestamp("us", "UTC")),
        ("city", pa.string()),
        ("total", pa.int64()),
    ]
)
Row = dict[str, Any]


def rows_of(query: str, batch: int) -> list[Row]:
    """The rows of a query in a batch: a repeated or a lost one is seen."""
    start = START + timedelta(minutes=batch)
    ends = {"start": start, "end": start + timedelta(minutes=1)}
    return [{**ends, "city": f"{query} {row}", "total": batch} for row in range(FILES * ROWS)]


def committed(
    folder: Path, batch: int, queries: Sequence[str] = ("a", "b"), silent: Sequence[str] = ()
) -> CommittedBatch:
    """A batch with answers of some queries, and without any of those that are silent."""
    answers = [_answers(folder, query, batch) for query in queries]
    nothing = [_described(query, ()) for query in silent]
    return CommittedBatch(batch, (*answers, *nothing), run="checks")


def _answers(folder: Path, query: str, batch: int) -> QueryAnswers:
    names = []
    for ordinal in range(FILES):
        name = folder / f"{query}-{batch}-{ordinal}.parquet"
        rows = rows_of(query, batch)[ordinal * ROWS : (ordinal + 1) * ROWS]
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), name, store_schema=False)
        names.append(str(name))
    return _described(query, tuple(names))


def _described(query: str, files: tuple[str, ...]) -> QueryAnswers:
    return QueryAnswers(query, SCHEMA, files, ("start", "end"), ("city",))
