"""Running a source through Spark as the runtime does, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from weft.sources.source import LiveSource


@dataclass
class Read:
    """What came of a source."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    bad: int = 0
    batches: int = 0


def keep_bad(source: LiveSource, frame: DataFrame, number: int, run: str = "test") -> int:
    """Put the bad records of a batch away; how many they are."""
    bad = source.bad(frame).count()
    if bad and source.letters is not None:
        source.letters.keep(source.bad(frame), number, run)
    return bad


def read_all(source: LiveSource, checkpoint: Path, crash_before_commit_of: int = -1) -> Read:
    """Everything that is there, from where the checkpoint is."""
    read = Read()

    def take(frame: DataFrame, number: int) -> None:
        rows = [row.asDict(recursive=True) for row in source.good(frame).collect()]
        bad = keep_bad(source, frame, number, checkpoint.name)
        if number == crash_before_commit_of:
            raise RuntimeError("killed")
        read.rows += rows
        read.bad += bad
        read.batches += 1

    writer = source.rows.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return read
