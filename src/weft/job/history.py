"""The history of a checkpoint: plans, batches that were started, batches that are committed; and what to throw away."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from weft.errors import WeftError
from weft.job import segments
from weft.job.checkpoint import Checkpoint
from weft.job.records import BatchStart, CheckpointSettings, Manifest
from weft.plan.record import PlanRecord

BATCHES = "batches"
PLANS = "plans"
ANSWERS = "answers"
SETTINGS = "settings.json"


@dataclass(frozen=True)
class WaitingBatch:
    """What is left of a batch long past while some sink has yet to take its answers."""

    batch: int
    plan: int
    folders: frozenset[str]
    """Where its answers are."""

    @classmethod
    def of(cls, manifest: Manifest) -> WaitingBatch:
        """Of a commit."""
        folders = frozenset(file.split("/")[0] for files in manifest.answers.values() for file in files)
        return cls(manifest.batch, manifest.plan, folders)


class History:
    """Reads and writes the records of a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint

    def settings(self, wanted: CheckpointSettings) -> CheckpointSettings:
        """What the checkpoint was made with; made with ``wanted`` if it is new, refused if they do not agree."""
        if self.checkpoint.claim(SETTINGS, wanted.dump()):
            return wanted
        data = self.checkpoint.read(SETTINGS)
        assert data is not None
        known = CheckpointSettings.load(data)
        for what in ("stream", "event_time", "lateness"):
            ours, theirs = getattr(known, what), getattr(wanted, what)
            if ours != theirs:
                raise WeftError(
                    f"{self.checkpoint.root} was made with {what.replace('_', ' ')} {ours}, not {theirs}: "
                    "go on with the same, or start with a new checkpoint"
                )
        return known

    def committed(self) -> list[int]:
        """The batches whose commits are kept, oldest first; the last is the truth."""
        return sorted(
            int(name.split(".")[0]) for name in self.checkpoint.names(BATCHES) if not name.endswith(".start.json")
        )

    def manifest(self, batch: int) -> Manifest:
        """The commit of a batch."""
        data = self.checkpoint.read(_manifest(batch))
        if data is None:
            raise WeftError(f"{self.checkpoint.root} has no commit of batch {batch}")
        return Manifest.load(data)

    def commit(self, manifest: Manifest) -> bool:
        """Make a batch count; False if another driver did so before."""
        return self.checkpoint.claim(_manifest(manifest.batch), manifest.dump())

    def started(self, batch: int) -> BatchStart | None:
        """How a batch was started, if it was."""
        data = self.checkpoint.read(_start(batch))
        return None if data is None else BatchStart.load(data)

    def start(self, start: BatchStart) -> BatchStart:
        """Write down how a batch starts; what was written before counts."""
        if self.checkpoint.claim(_start(start.batch), start.dump()):
            return start
        known = self.started(start.batch)
        assert known is not None
        return known

    def plan(self, version: int) -> PlanRecord:
        """A plan by its version."""
        data = self.checkpoint.read(f"{PLANS}/{version:08}.json")
        if data is None:
            raise WeftError(f"{self.checkpoint.root} has lost plan {version}")
        return PlanRecord.load(data)

    def keep_plan(self, record: PlanRecord) -> PlanRecord:
        """Keep a plan under the next free version."""
        versions = [int(name.split(".")[0]) for name in self.checkpoint.names(PLANS)]
        version = max(versions, default=0)
        while True:
            version += 1
            record = replace(record, version=version)
            if self.checkpoint.claim(f"{PLANS}/{version:08}.json", record.dump()):
                return record

    def forget_state(self, old: Manifest, kept: Iterable[Manifest]) -> None:
        """Delete what only going on from a batch long past needed."""
        state = {name for manifest in kept for name, _ in manifest.state}
        segments.delete(self.checkpoint, [name for name, _ in old.state if name not in state])
        self.checkpoint.delete(_start(old.batch))

    def forget(self, old: WaitingBatch, plans: Container[int]) -> None:
        """Delete a batch that every sink has taken, with its plan unless that is one of ``plans``.

        Its commit goes first: nobody is promised answers that are gone. What a crash leaves of them is swept.
        """
        self.checkpoint.delete(_manifest(old.batch))
        self.checkpoint.delete(_start(old.batch))
        for folder in old.folders:
            self.checkpoint.delete(f"{ANSWERS}/{folder}")
        if old.plan not in plans:
            self.checkpoint.delete(f"{PLANS}/{old.plan:08}.json")

    def sweep(self, kept: Sequence[Manifest], waiting: Iterable[WaitingBatch] = ()) -> None:
        """Delete files of decided batches that no commit lists: attempts that were not committed.

        Of batches that only wait for sinks, the answers are needed. What belongs to the batch after the last is left:
        an old driver may just be committing it.
        """
        state = {name for manifest in kept for name, _ in manifest.state}
        folders = {folder for old in (*map(WaitingBatch.of, kept), *waiting) for folder in old.folders}
        for place, listed in ((segments.FOLDER, state), (ANSWERS, folders)):
            for name in set(self.checkpoint.names(place)) - listed:
                if int(name.split("-")[0]) <= kept[-1].batch:
                    self.checkpoint.delete(f"{place}/{name}")


def _manifest(batch: int) -> str:
    return f"{BATCHES}/{batch:010}.json"


def _start(batch: int) -> str:
    return f"{BATCHES}/{batch:010}.start.json"
