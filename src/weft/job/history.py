"""The history of a checkpoint: plans, batches that were started, batches that are committed; and what to throw away."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import WeftError
from weft.job import segments
from weft.job.checkpoint import Checkpoint
from weft.job.records import BatchStart, Manifest, Settings
from weft.plan.record import PlanRecord

BATCHES = "batches"
PLANS = "plans"
ANSWERS = "answers"
SETTINGS = "settings.json"


class History:
    """Reads and writes the records of a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint

    def settings(self, wanted: Settings) -> Settings:
        """What the checkpoint was made with; made with ``wanted`` if it is new, refused if they do not agree."""
        if self.checkpoint.claim(SETTINGS, wanted.dump()):
            return wanted
        data = self.checkpoint.read(SETTINGS)
        assert data is not None
        known = Settings.load(data)
        for what in ("stream", "event_time", "lateness"):
            ours, theirs = getattr(known, what), getattr(wanted, what)
            if ours != theirs:
                raise WeftError(
                    f"{self.checkpoint.root} was made with {what.replace('_', ' ')} {ours}, not {theirs}: "
                    "go on with the same, or start with a new checkpoint"
                )
        return known

    def committed(self) -> list[Manifest]:
        """The manifests that are kept, oldest first; the last is the truth."""
        numbers = sorted(
            int(name.split(".")[0]) for name in self.checkpoint.names(BATCHES) if not name.endswith(".start.json")
        )
        return [self.manifest(number) for number in numbers]

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

    def forget(self, old: Manifest, kept: list[Manifest]) -> None:
        """Delete what only a batch long past needed."""
        state = {name for manifest in kept for name, _ in manifest.state}
        segments.delete(self.checkpoint, [name for name, _ in old.state if name not in state])
        for folder in {file.split("/")[0] for files in old.answers.values() for file in files}:
            self.checkpoint.delete(f"{ANSWERS}/{folder}")
        self.checkpoint.delete(_start(old.batch))
        self.checkpoint.delete(_manifest(old.batch))
        plans = {manifest.plan for manifest in kept}
        if old.plan not in plans:
            self.checkpoint.delete(f"{PLANS}/{old.plan:08}.json")

    def sweep(self, kept: list[Manifest]) -> None:
        """Delete files of decided batches that no kept manifest lists: attempts that were not committed.

        Those of the batch after the last are left: an old driver may just be committing them.
        """
        state = {name for manifest in kept for name, _ in manifest.state}
        folders = {file.split("/")[0] for manifest in kept for files in manifest.answers.values() for file in files}
        for place, listed in ((segments.FOLDER, state), (ANSWERS, folders)):
            for name in set(self.checkpoint.names(place)) - listed:
                if int(name.split("-")[0]) <= kept[-1].batch:
                    self.checkpoint.delete(f"{place}/{name}")


def _manifest(batch: int) -> str:
    return f"{BATCHES}/{batch:010}.json"


def _start(batch: int) -> str:
    return f"{BATCHES}/{batch:010}.start.json"
