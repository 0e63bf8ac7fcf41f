"""Delivery: committed answers go to every sink, and what each sink has taken is written down.

A batch is delivered after its commit, to each sink by its own courier: one that is slow or away holds up neither the
others nor the next batches, whose answers wait for it in the checkpoint until too many do. A crash between delivery and
record has the batch delivered again, which sinks take without harm; nothing is computed again.

A sink is known by its name. One that has yet to take a committed batch must not be gone at the next start, also not
by getting another name: the job does not start until the sink is back, or is given up. A sink that has taken everything
may be left out, and when it comes back it is told from which batch on it gets rows.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b

from weft.catalog.status import Outage, SinkStatus
from weft.errors import UseError
from weft.job.checkpoint import Checkpoint
from weft.job.courier import SLOW, Courier
from weft.job.patience import Patience
from weft.job.sink import CommittedBatch, Sink
from weft.store.folder import Folder
from weft.store.packs import Piece

FOLDER = "delivered"
LOG = logging.getLogger("weft.sinks")
FRESH = 8
"""So many batches are held ready; those that wait longer are read again from the checkpoint."""


@dataclass(frozen=True)
class Delivered:
    """How far a sink is."""

    sink: str
    batch: int
    """The last batch that it took; -1 if none."""
    left: bool = False
    """Whether it was left out since, on purpose: it had taken everything then, or was given up."""


class Outbox:
    """The sinks of a job, how far each of them is, and what waits for them.

    Parameters
    ----------
    checkpoint
        Where it is written down.
    sinks
        Of different names.
    patience
        How long a sink is waited for, and how much may wait for it.
    own
        By a sink's name: the patience with it, where it is another one.
    reload
        Gives a committed batch by its number; without it, batches that wait are held ready.
    permit
        Raises an error when this driver may deliver no more.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        sinks: Sequence[Sink],
        *,
        patience: Patience | None = None,
        own: Mapping[str, Patience] | None = None,
        reload: Callable[[int], CommittedBatch] | None = None,
        permit: Callable[[], None] = lambda: None,
    ) -> None:
        self._checkpoint = checkpoint
        self._sinks = tuple(sinks)
        self._patience = patience or Patience()
        self._own = own or {}
        self._reload = reload
        self._permit = permit
        self._couriers: list[Courier] = []
        self._changed = threading.Condition()
        self._fresh: dict[int, CommittedBatch] = {}
        self._sizes: dict[int, int] = {}
        """Bytes of the answers of batches that wait for long."""
        self.posted = -1
        """The last batch that was posted."""
        self.given_up: set[tuple[str, int]] = set()
        """Queries and batches whose answers no sink is given any more."""
        check_names(self._sinks)

    def open(self, kept: Sequence[int]) -> None:
        """Open the sinks; one that is new gets what is committed from now on.

        A sink that is away does not keep the job from its start; one that can never be opened as it was described does.

        Parameters
        ----------
        kept
            The committed batches whose answers are still there, the last one last.
        """
        committed = kept[-1] if kept else -1
        known = {one.sink: one for one in records(self._checkpoint)}
        self._part_from(known, committed)
        self._couriers = [self._courier(sink, self._delivered(sink, known, kept)) for sink in self._sinks]
        for courier in self._couriers:
            courier.start()
        until = time.monotonic() + SLOW
        for courier in self._couriers:
            courier.tried.wait(max(until - time.monotonic(), 0))
        self.raise_failure()

    def _delivered(self, sink: Sink, known: Mapping[str, Delivered], kept: Sequence[int]) -> int:
        """The last batch that a sink has taken, or need not take."""
        one = known.get(sink.name)
        committed = kept[-1] if kept else -1
        if one is None:
            if kept:
                LOG.info("sink %s is new: it gets rows from batch %d on", sink.name, committed + 1)
            put(self._checkpoint, Delivered(sink.name, committed))
            return committed
        if kept and one.batch + 1 < kept[0]:
            LOG.warning(
                "sink %s was left out after batch %d: it gets rows from batch %d on, those between are gone",
                *(sink.name, one.batch, kept[0]),
            )
        return one.batch

    def _courier(self, sink: Sink, delivered: int) -> Courier:
        patience = self._own.get(sink.name, self._patience)
        return Courier(sink, delivered, patience, self._load, self._note, self._changed)

    @property
    def delivered(self) -> dict[str, int]:
        """By a sink's name: the last batch that it took."""
        return {courier.sink.name: courier.delivered for courier in self._couriers}

    @property
    def behind(self) -> int:
        """The first batch that some sink has yet to take, as far as batches are committed."""
        return min(self.delivered.values(), default=2**62) + 1

    def post(self, batch: CommittedBatch) -> None:
        """Have a batch delivered to every sink that has not taken it."""
        backlog = max((len(courier.waiting) for courier in self._couriers), default=0)
        size = bytes_of(batch) if backlog > 1 else 0
        with self._changed:
            self._forget_taken()
            self._fresh[batch.number] = batch
            self.posted = batch.number
            if size:
                self._sizes[batch.number] = size
            if self._reload is not None and len(self._fresh) > FRESH:
                del self._fresh[next(iter(self._fresh))]
            for courier in self._couriers:
                courier.post(batch.number)
            self._changed.notify_all()

    def _forget_taken(self) -> None:
        behind = self.behind
        self._fresh = {number: batch for number, batch in self._fresh.items() if number >= behind}
        self._sizes = {number: size for number, size in self._sizes.items() if number >= behind}

    def _load(self, number: int) -> CommittedBatch:
        """A batch as it is delivered: without answers that were given up."""
        self._permit()
        with self._changed:
            fresh = self._fresh.get(number)
        if fresh is None:
            assert self._reload is not None, "what is not held ready can be read again"
            fresh = self._reload(number)
        if not self.given_up:
            return fresh
        return replace(fresh, answers=tuple(one for one in fresh.answers if (one.query, number) not in self.given_up))

    # ------------------------------------------------------------------------------------------------ waiting for it

    def await_room(self, is_stopped: Callable[[], bool]) -> None:
        """Wait until no sink has more waiting for it than it may have, or the job is to stop."""
        told = False
        with self._changed:
            while (full := next(filter(self._is_full, self._couriers), None)) is not None and not is_stopped():
                self.raise_failure()
                if not told:
                    name, count = full.sink.name, len(full.waiting)
                    LOG.warning("the stream holds: %d batches wait for sink %s, which is as many as may", count, name)
                told = True
                self._changed.wait(0.5)
        self.raise_failure()

    def _is_full(self, courier: Courier) -> bool:
        waiting, patience = courier.waiting, courier.patience
        size = sum(self._sizes.get(number, 0) for number in waiting)
        return len(waiting) >= patience.batches or size >= patience.bytes

    def settle(self, is_stopped: Callable[[], bool] = lambda: False, timeout: float | None = None) -> bool:
        """Wait until every sink has taken everything, or the job is to stop; whether they have."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while any(courier.waiting for courier in self._couriers) and not is_stopped():
                self.raise_failure()
                if until is not None and time.monotonic() >= until:
                    return False
                self._changed.wait(0.5 if until is None else max(min(until - time.monotonic(), 0.5), 0.001))
        self.raise_failure()
        return not any(courier.waiting for courier in self._couriers)

    @property
    def failure(self) -> BaseException | None:
        """Why some sink is served no more, though the job runs."""
        return next((courier.failure for courier in self._couriers if courier.failure is not None), None)

    def raise_failure(self) -> None:
        """Raise why some sink is served no more, if one is not."""
        if self.failure is not None:
            raise self.failure

    @property
    def outages(self) -> list[Outage]:
        """The sinks that are away."""
        return [courier.outage for courier in self._couriers if courier.outage is not None]

    def status(self) -> dict[str, SinkStatus]:
        """How far each sink is."""
        return {courier.sink.name: courier.status(full=self._is_full(courier)) for courier in self._couriers}

    def close(self) -> None:
        """Have sinks take what waits for them, as far as they do so soon, and close all."""
        with self._changed:
            for courier in self._couriers:
                courier.end()
            self._changed.notify_all()
        for courier in self._couriers:
            courier.join()

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
        self._permit()
        put(self._checkpoint, Delivered(sink.name, batch))


def bytes_of(batch: CommittedBatch) -> int:
    """How much room the answers of a batch take."""
    listed = {file: Piece.of(file) for answers in batch.answers for file in answers.files}
    packed = sum(piece.size for piece in listed.values() if piece is not None)
    files = [file for file, piece in listed.items() if piece is None]
    if not files:
        return packed
    filesystem, _ = Folder(files[0]).open()
    infos = filesystem.get_file_info([Folder(file).open()[1] for file in files])
    return packed + sum(info.size or 0 for info in infos)


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
