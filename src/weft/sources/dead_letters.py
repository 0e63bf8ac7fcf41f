"""The place for records that cannot be read: Parquet, with the reason, where the record stood, and its bytes.

``DIR/run=<checkpoint>/batch=<n>/*.parquet`` holds the bad records of batch n, **exactly once**: the folder appears by
one rename before the batch is committed, and a batch that is run again reads the same records and finds the folder
in place. Records of a batch that is not committed yet may be there; its next run has the same ones. Several checkpoints
may share the folder: each counts its batches from 0, so each has a folder of its own in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.errors import WeftError
from weft.store.folder import Folder
from weft.store.private import close_all, make_private
from weft.store.scratch import scratch

BAD = "__weft_bad"
"""The column that marks rows which could not be read."""
SHOWN = 200
"""Bytes of a bad record that an error shows."""

Reason = Callable[[Column], Column]


@dataclass(frozen=True)
class DeadLetters:
    """What is done with records that cannot be read.

    Parameters
    ----------
    folder
        Where they are kept; without one, a bad record stops the run.
    reason
        From the bytes of a bad record, what is wrong with it.
    """

    folder: Folder | None
    reason: Reason

    def keep(self, marked: DataFrame, batch: int, run: str) -> None:
        """Write the bad records of a batch of the checkpoint ``run``, unless they are there; or stop."""
        raw = F.col(f"{BAD}.raw")
        letters = marked.select(self.reason(raw).alias("reason"), f"{BAD}.*")
        if self.folder is None:
            raise stopped(letters)
        target = Folder(f"{self.folder.root}/run={run}/batch={batch}")
        if target.exists():
            return
        if not self.folder.exists():
            make_private(self.folder)
        make_private(Folder(f"{self.folder.root}/run={run}"))
        # hidden from readers of the folder
        building = scratch(Folder(f"{self.folder.root}/.batch"), "writing")
        try:
            letters.coalesce(1).write.parquet(building.url())
            close_all(building)
            building.move_to(target)
        finally:
            building.remove()


def stopped(letters: DataFrame) -> WeftError:
    """The error for a run that bad records are to stop."""
    first = letters.first()
    assert first is not None
    where = first["file"] or f"topic {first['topic']}, partition {first['partition']}, offset {first['offset']}"
    raw = bytes(first["raw"] or b"")[:SHOWN]
    return WeftError(
        f"{where}: {first['reason']}: {raw.decode(errors='backslashreplace')}\n"
        "  correct the record, or give a folder for bad ones, where they are kept while the run goes on"
    )
