"""Delivery: committed answers go to every sink, and what each sink has taken is written down.

A batch is delivered after its commit. A crash between delivery and record has the batch delivered again, which sinks
take without harm; nothing is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

from weft.spark.live.checkpoint import Checkpoint
from weft.spark.sinks.sink import CommittedBatch, Sink

FOLDER = "delivered"


class Outbox:
    """The sinks of a job, and how far each of them is."""

    def __init__(self, checkpoint: Checkpoint, sinks: Sequence[Sink]) -> None:
        self._checkpoint = checkpoint
        self._sinks = tuple(sinks)
        self.delivered: dict[str, int] = {}
        """By a sink's name: the last batch that it took."""

    def open(self, committed: int) -> None:
        """Open the sinks; one that is new gets what is committed from now on."""
        for sink in self._sinks:
            sink.open()
            known = self._checkpoint.read(self._record(sink))
            if known is None:
                self._note(sink, committed)
            else:
                self.delivered[sink.name] = json.loads(known)["batch"]

    @property
    def behind(self) -> int:
        """The first batch that some sink has yet to take, as far as batches are committed."""
        return min(self.delivered.values(), default=2**62) + 1

    def deliver(self, batch: CommittedBatch) -> None:
        """Hand a batch to every sink that has not taken it."""
        for sink in self._sinks:
            if self.delivered[sink.name] < batch.number:
                sink.deliver(batch)
                self._note(sink, batch.number)

    def close(self) -> None:
        """Close all sinks."""
        for sink in self._sinks:
            sink.close()

    def _note(self, sink: Sink, batch: int) -> None:
        self.delivered[sink.name] = batch
        self._checkpoint.put(self._record(sink), json.dumps({"sink": sink.name, "batch": batch}).encode())

    @staticmethod
    def _record(sink: Sink) -> str:
        return f"{FOLDER}/{blake2b(sink.name.encode(), digest_size=8).hexdigest()}.json"
