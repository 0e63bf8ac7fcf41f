"""Delivery: committed answers go to every sink, and what each sink has taken is written down.

A batch is delivered after its commit. A crash between delivery and record has the batch delivered again, which sinks
take without harm; nothing is computed again.

A sink is known by its name. One that has yet to take a committed batch must not be gone at the next start, also not
by getting another name: the job does not start until the sink is back, or is given up. A sink that has taken everything
may be left out, and when it comes back it is told from which batch on it gets rows.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b

from weft.errors import UseError
from weft.job.checkpoint import Checkpoint
from weft.job.sink import CommittedBatch, Sink

FOLDER = "delivered"
LOG = logging.getLogger("weft.sinks")


@dataclass(frozen=True)
class Delivered:
    """How far a sink is."""

    sink: str
    batch: int
    """The last batch that it took; -1 if none."""
    left: bool = False
    """Whether it was left out since, on purpose: it had taken everything then, or was given up."""


class Outbox:
    """The sinks of a job, and how far each of them is."""

    def __init__(self, checkpoint: Checkpoint, sinks: Sequence[Sink]) -> None:
        self._checkpoint = checkpoint
        self._sinks = tuple(sinks)
        self.delivered: dict[str, int] = {}
        """By a sink's name: the last batch that it took."""
        check_names(self._sinks)

    def open(self, kept: Sequence[int]) -> None:
        """Open the sinks; one that is new gets what is committed from now on.

        Parameters
        ----------
        kept
            The committed batches whose answers are still there, the last one last.
        """
        committed = kept[-1] if kept else -1
        known = {one.sink: one for one in records(self._checkpoint)}
        self._part_from(known, committed)
        for sink in self._sinks:
            sink.open()
            one = known.get(sink.name)
            if one is None:
                if kept:
                    LOG.info("sink %s is new: it gets rows from batch %d on", sink.name, committed + 1)
                self._note(sink, committed)
            else:
                if kept and one.batch + 1 < kept[0]:
                    LOG.warning(
                        "sink %s was left out after batch %d: it gets rows from batch %d on, those between are gone",
                        *(sink.name, one.batch, kept[0]),
                    )
                self.delivered[sink.name] = one.batch

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

    def _part_from(self, known: dict[str, Delivered], committed: int) -> None:
        """Let sinks go that are not there any more, unless they have something to take."""
        names = {sink.name for sink in self._sinks}
        gone = [one for one in known.values() if one.sink not in names and not one.left]
        owed = [one for one in gone if one.batch < committed]
        if owed:
            raise UseError("\n".join(_owed(one, committed) for one in owed))
        for one in gone:
            put(self._checkpoint, Delivered(one.sink, one.batch, left=True))

    def _note(self, sink: Sink, batch: int) -> None:
        self.delivered[sink.name] = batch
        put(self._checkpoint, Delivered(sink.name, batch))


def check_names(sinks: Sequence[Sink]) -> None:
    """Refuse sinks that could not be told apart: the job would take one's deliveries for the other's."""
    twice = [name for name, count in Counter(sink.name for sink in sinks).items() if count > 1]
    if twice:
        raise UseError(
            f"two sinks have the name {twice[0]}: leave one out, or give each its own (`name:` in weft.yaml)"
        )


def records(checkpoint: Checkpoint) -> list[Delivered]:
    """All sinks that a job ever had, and how far each is."""
    found = (checkpoint.read(f"{FOLDER}/{name}") for name in checkpoint.names(FOLDER))
    return [Delivered(**json.loads(data)) for data in found if data is not None]


def put(checkpoint: Checkpoint, delivered: Delivered) -> None:
    """Write down how far a sink is."""
    record = f"{FOLDER}/{blake2b(delivered.sink.encode(), digest_size=8).hexdigest()}.json"
    checkpoint.put(record, json.dumps(asdict(delivered)).encode())


def give_up(checkpoint: Checkpoint, sink: str) -> None:
    """Do without what a sink has yet to take, for ever."""
    known = {one.sink: one for one in records(checkpoint)}
    if sink not in known:
        raise UseError(
            f"{checkpoint.root} knows no sink {sink}, which could be given up; it knows {', '.join(known) or 'none'}"
        )
    put(checkpoint, Delivered(sink, known[sink].batch, left=True))


def _owed(one: Delivered, committed: int) -> str:
    took = f"has taken batches up to {one.batch} only" if one.batch >= 0 else "has taken no batch"
    return (
        f"sink {one.sink} {took}, batch {committed} is committed, and the sink is not there any more\n"
        f"  if it has moved, give the new one the same name (name: '{one.sink}' in weft.yaml); "
        "else bring it back until it has taken all,\n"
        f"  or do without what it lacks: weft stream --give-up '{one.sink}'"
    )
