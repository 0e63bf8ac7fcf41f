"""Committed batches for the tests of sinks: files as the runtime's commit lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from weft.job.sink import CommittedBatch, QueryAnswers
from weft.store.folder import Folder
from weft.store.packs import PackWriter

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        pa.field("start", pa.timestamp("us", "UTC")),
        pa.field("end", pa.timestamp("us", "UTC")),
        pa.field("city", pa.string()),
        pa.field("total", pa.int64()),
    ]
)


def rows_of(query: str, batch: int, ordinal: int, count: int = 3) -> list[dict[str, Any]]:
    """Rows that occur nowhere else, so that a repeated or a lost one is seen."""
    start = START + timedelta(minutes=batch)
    ends = {"start": start, "end": start + timedelta(minutes=1)}
    return [{**ends, "city": f"{query} {ordinal} {row}", "total": batch} for row in range(count)]


def answers(folder: Path, query: str, batch: int, files: int = 2, count: int = 3) -> QueryAnswers:
    """The answers of one query in one batch; the same ones whenever it is asked for them."""
    contents = [rows_of(query, batch, ordinal, count) for ordinal in range(files)]
    return written(folder, query, batch, contents)


def written(
    folder: Path, query: str, batch: int, contents: Sequence[Sequence[Mapping[str, Any]]], schema: pa.Schema = SCHEMA
) -> QueryAnswers:
    """Answers with these rows in their files."""
    names = []
    folder.mkdir(parents=True, exist_ok=True)
    for ordinal, rows in enumerate(contents):
        name = folder / f"{query}-{batch}-{ordinal}.parquet"
        if not name.exists():
            pq.write_table(pa.Table.from_pylist(list(rows), schema), name.with_suffix(".new"), store_schema=False)
            name.with_suffix(".new").rename(name)  # whoever is killed here leaves no half file
        names.append(str(name))
    return QueryAnswers(query, schema, tuple(names), ("start", "end"), ("city",))


def committed(folder: Path, batch: int, queries: Sequence[str] = ("a", "b"), **shape: int) -> CommittedBatch:
    """A batch of these queries."""
    return CommittedBatch(batch, tuple(answers(folder, query, batch, **shape) for query in queries), run="test")


def packed(batch: CommittedBatch, folder: Path, parts: int = 1) -> CommittedBatch:
    """The same batch; the first parts of each query's answers are pieces of a pack."""
    making = f"{batch.number}-{uuid4().hex[:6]}.arrows"
    found = []
    with PackWriter(Folder(str(folder)), making) as pack:
        for answers in batch.answers:
            pieces = [pack.add(pq.ParquetFile(file).read()) for file in answers.files[:parts]]
            names = [piece.moved(f"{folder}/{batch.number}-pack.arrows").text for piece in pieces]
            found.append(replace(answers, files=(*names, *answers.files[parts:])))
    (folder / making).rename(folder / f"{batch.number}-pack.arrows")  # the same bytes, whenever it is made again
    return replace(batch, answers=tuple(found))


def expected(query: str, batches: range, files: int = 2, count: int = 3) -> list[dict[str, Any]]:
    """All rows of a query in these batches."""
    return [row for batch in batches for ordinal in range(files) for row in rows_of(query, batch, ordinal, count)]


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows in an order of their own, to be compared."""
    return sorted((dict(row) for row in rows), key=lambda row: (row["start"], row["city"]))
