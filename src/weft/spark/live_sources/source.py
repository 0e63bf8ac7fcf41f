"""A source of rows, and the parting of good rows from bad ones in each batch."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from weft.spark.live_sources.dead_letters import BAD, DeadLetters

PATIENCE = 20.0
"""Seconds that Spark may take to tell what it counted."""


@dataclass(frozen=True)
class LiveSource:
    """Rows of a stream; with ``letters``, each row carries a mark that tells whether it could be read.

    In ``foreachBatch`` the step runs on the rows of :meth:`split`, and :meth:`Part.settle` comes before the commit::

        part = source.split(frame, number)
        answers = step(plan, part.rows, state)
        bad = part.settle()
        commit(answers)
    """

    rows: DataFrame
    """A streaming DataFrame: the columns of the stream, and the mark."""
    letters: DeadLetters | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream."""
        return tuple(name for name in self.rows.columns if name != BAD)

    def split(self, frame: DataFrame, batch: int) -> Part:
        """The good rows of a batch, and what is to be done about the others."""
        if self.letters is None:
            return Part(frame, None)
        watch = Observation()
        counted = frame.observe(watch, F.count_if(F.col(BAD).isNotNull()).alias("bad"))
        good = counted.where(F.col(BAD).isNull()).drop(BAD)
        return Part(good, Bad(frame.where(F.col(BAD).isNotNull()), batch, self.letters, watch))


@dataclass(frozen=True)
class Bad:
    """The bad rows of a batch."""

    rows: DataFrame
    batch: int
    letters: DeadLetters
    watch: Observation

    def count(self) -> int:
        """How many there are: counted while the good ones were read, else now."""
        observed = self.watch._jo.future() if self.watch._jo is not None else None
        end = time.monotonic() + PATIENCE
        while observed is not None and not observed.isCompleted() and time.monotonic() < end:
            time.sleep(0.002)
        if observed is not None and observed.isCompleted():
            return int(self.watch.get["bad"])
        return self.rows.count()


@dataclass(frozen=True)
class Part:
    """One batch of a source."""

    rows: DataFrame
    """The rows that could be read."""
    bad: Bad | None

    def settle(self) -> int:
        """Put the bad rows where they belong; how many there are.

        To be called when the good rows have been read, and before the batch is committed: a batch that is run again
        finds its bad rows where it put them.
        """
        count = self.bad.count() if self.bad is not None else 0
        if self.bad is not None and count:
            self.bad.letters.keep(self.bad.rows, self.bad.batch)
        return count


def mark(bad: Column, *, raw: Column, file: Column, topic: Column, partition: Column, offset: Column) -> Column:
    """The mark of a row: NULL if it is good, else where it stood and its bytes."""
    where = {"file": file, "topic": topic, "partition": partition, "offset": offset, "raw": raw.cast("binary")}
    return F.when(bad, F.struct(*(column.alias(name) for name, column in where.items()))).alias(BAD)
