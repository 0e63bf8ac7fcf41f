"""What a sink is, and what it is given: the answers of a batch that is committed already.

A batch's answers are files that its commit lists. They are never computed again, so a batch that is delivered again,
after a crash between a delivery and its record, consists of the same rows in the same order. A row is therefore named,
once and for all, by its query, its batch, the ordinal of its file in the batch and its ordinal in that file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from weft.store.packs import read_answers


@dataclass(frozen=True)
class QueryAnswers:
    """The answers of one query in one batch."""

    query: str
    schema: pa.Schema
    files: tuple[str, ...]
    """Parquet files, and pieces of packs (:mod:`weft.store.packs`), in the order of the commit: paths or URIs."""
    window: tuple[str | None, str | None] = (None, None)
    """The columns that hold a window's start and end, as far as the query shows them; a field of a struct is written
    ``window.start``."""
    keys: tuple[str, ...] | None = ()
    """The columns that hold the keys of a group; None if the query does not show all of them."""

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each file, under the schema of the query."""
        for file in self.files:
            yield read_answers(file).cast(self.schema)


@dataclass(frozen=True)
class CommittedBatch:
    """The answers of all queries in one batch."""

    number: int
    answers: tuple[QueryAnswers, ...]
    """Queries without files may be among them: a sink then learns their schemas."""
    watermark: int | None = None
    """Up to where all windows are answered, in microseconds since 1970."""
    run: str = ""
    """The checkpoint that counts the batches: another one starts again at 0."""


@runtime_checkable
class Sink(Protocol):
    """A place that takes committed batches, in rising order; one that it has taken already changes nothing."""

    name: str
    """Under which the runtime records how far it has delivered; stable over restarts, without any password."""

    def open(self) -> None:
        """Get ready to deliver, after an earlier life of the sink that may have ended at any instant."""

    def deliver(self, batch: CommittedBatch) -> None:
        """Take a batch. When this returns, the sink needs the batch's files no more and survives a crash with them."""

    def close(self) -> None:
        """Show readers everything that was delivered, and let go of all resources."""
