"""Committed batches for sinks: files as the commit of a batch lists them, with rows that occur nowhere else.

A query has a Parquet file and a piece of the batch's pack: sinks get either, and both.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.job.sink import CommittedBatch, QueryAnswers
from weft.store.folder import Folder
from weft.store.packs import PackWriter

START = datetime(2026, 1, 1, tzinfo=UTC)
PARTS, ROWS = 2, 3
"""Of a query in a batch, and of a part."""
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
    return [{**ends, "city": f"{query} {row}", "total": batch} for row in range(PARTS * ROWS)]


def committed(
    folder: Path, batch: int, queries: Sequence[str] = ("a", "b"), silent: Sequence[str] = ()
) -> CommittedBatch:
    """A batch with answers of some queries, and without any of those that are silent."""
    with PackWriter(Folder(str(folder)), f"{batch}.arrows") as pack:
        answers = [_answers(folder, query, batch, pack) for query in queries]
    nothing = [_described(query, ()) for query in silent]
    return CommittedBatch(batch, (*answers, *nothing), run="checks")


def _answers(folder: Path, query: str, batch: int, pack: PackWriter) -> QueryAnswers:
    rows = pa.Table.from_pylist(rows_of(query, batch), SCHEMA)
    file = folder / f"{query}-{batch}.parquet"
    pq.write_table(rows.slice(0, ROWS), file, store_schema=False)
    piece = pack.add(rows.slice(ROWS))
    return _described(query, (str(file), piece.moved(f"{folder}/{piece.file}").text))


def _described(query: str, files: tuple[str, ...]) -> QueryAnswers:
    return QueryAnswers(query, SCHEMA, files, ("start", "end"), ("city",))
