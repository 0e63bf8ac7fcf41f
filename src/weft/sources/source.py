"""A source of rows, and the parting of good rows from bad ones in each batch."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.sources.dead_letters import BAD, DeadLetters

__all__ = ["BAD", "LiveSource", "mark"]


@dataclass(frozen=True)
class LiveSource:
    """Rows of a stream; with ``letters``, each row carries a mark that tells whether it could be read.

    A batch counts its bad rows while it reads the good ones, and hands them to ``letters`` before it is committed.
    """

    rows: DataFrame
    """A streaming DataFrame: the columns of the stream, and the mark."""
    letters: DeadLetters | None = None
    """Where bad rows go; None if no row can be bad."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream."""
        return tuple(name for name in self.rows.columns if name != BAD)

    def good(self, frame: DataFrame) -> DataFrame:
        """The rows of a batch that could be read."""
        return frame if self.letters is None else frame.where(F.col(BAD).isNull()).drop(BAD)

    def bad(self, frame: DataFrame) -> DataFrame:
        """The rows of a batch that could not be read, with their marks."""
        return frame.limit(0) if self.letters is None else frame.where(F.col(BAD).isNotNull())


def mark(bad: Column, *, raw: Column, file: Column, topic: Column, partition: Column, offset: Column) -> Column:
    """The mark of a row: NULL if it is good, else where it stood and its bytes."""
    where = {"file": file, "topic": topic, "partition": partition, "offset": offset, "raw": raw.cast("binary")}
    return F.when(bad, F.struct(*(column.alias(name) for name, column in where.items()))).alias(BAD)
