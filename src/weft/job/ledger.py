"""The ledger of a checkpoint: what is committed, what sinks have yet to take of it, and what can be thrown away."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from weft.errors import WeftError
from weft.job.committed import Committed
from weft.job.given_up import answers_given_up
from weft.job.history import History, WaitingBatch
from weft.job.lease import Lease
from weft.job.outbox import Outbox
from weft.job.patience import Patience
from weft.job.records import BatchStart, CheckpointSettings, Manifest
from weft.job.sink import QueryAnswers, Sink
from weft.plan.cut_engine import CutEngine

NOTHING = Manifest(batch=-1, plan=0, epoch=0, watermark=None, largest=None)
"""What stands before the first commit."""
KEPT = 2
"""So many commits are kept whole."""
FORGOTTEN = 20
"""So many batches are thrown away after one at most, when a sink has caught up."""


class Ledger:
    """Commits batches and has them delivered. Everything that it knows it could read again from the checkpoint.

    Parameters
    ----------
    forms
        What the answers of a plan's queries look like, by the plan's version.
    """

    def __init__(
        self,
        history: History,
        settings: CheckpointSettings,
        lease: Lease,
        sinks: Sequence[Sink],
        forms: Callable[[int], Mapping[str, QueryAnswers]],
        *,
        patience: Patience | None = None,
        own_patience: Mapping[str, Patience] | None = None,
    ) -> None:
        self.history = history
        self.settings = settings
        self.lease = lease
        self._forms = forms
        self._batches = Committed(history, settings.run)
        self.outbox = Outbox(
            history.checkpoint,
            sinks,
            patience=patience,
            own=own_patience,
            reload=self._batches.reload,
            permit=lambda: self.lease.check(),
        )
        self.kept: list[Manifest] = []
        """The last two commits."""
        self._waiting: deque[WaitingBatch] = deque()
        """Batches before these, of which some sink has yet to take the answers."""
        self._swept = False

    @property
    def last(self) -> Manifest:
        """The last commit."""
        return self.kept[-1] if self.kept else NOTHING

    # ------------------------------------------------------------------------------------------------- restarts

    def take_up(self) -> list[int]:
        """Read what is committed; the batches."""
        committed = self.history.committed()
        self.kept = [self.history.manifest(batch) for batch in committed[-KEPT:]]
        self._waiting = deque(WaitingBatch.of(self.history.manifest(batch)) for batch in committed[:-KEPT])
        return committed

    def open_sinks(self, committed: Sequence[int]) -> None:
        """Have sinks take what was committed but not delivered."""
        self.outbox.given_up = answers_given_up(self.history.checkpoint, committed)
        self.outbox.open(committed)

    def deliver_since(self, committed: Sequence[int], first: int) -> None:
        """Have all batches delivered from ``first`` on."""
        for batch in committed:
            if batch >= first:
                self.deliver(self.history.manifest(batch))
        self._forget_taken(len(committed))

    # -------------------------------------------------------------------------------------------------- batches

    def refuse_drained(self) -> None:
        """Refuse a batch after the last one."""
        if self.last.drained:
            root = self.history.checkpoint.root
            raise WeftError(f"{root} is drained: all its windows are closed; new rows need a new checkpoint")

    def started(self, batch: int) -> BatchStart | None:
        """How a batch was started, if it was."""
        return self.history.started(batch)

    def start(self, batch: int, plan: int, *, drain: bool, cut: CutEngine) -> BatchStart:
        """Write down what a batch starts from."""
        return self.history.start(BatchStart(batch, plan, self.last.watermark, self.lease.epoch, drain, cut))

    def commit(self, manifest: Manifest) -> bool:
        """Make a batch count; False if the driver before this one did so at the last moment: what it wrote counts."""
        self.lease.check()
        counts = self.history.commit(manifest)
        # others may have committed this very batch and forgotten it since: then nothing is ours to deliver or delete
        self.lease.check()
        self.kept.append(manifest if counts else self.history.manifest(manifest.batch))
        return counts

    def deliver(self, manifest: Manifest) -> None:
        """Have a batch handed to the sinks, each when it is ready."""
        if not self._batches.knows(manifest.plan):
            self._batches.learn(manifest.plan, self._forms(manifest.plan))
        self.outbox.post(self._batches.batch(manifest))

    # --------------------------------------------------------------------------------------------------- tidying

    def unsweep(self) -> None:
        """Something was written that no commit will list."""
        self._swept = False

    def sweep(self) -> None:
        """Delete what attempts left that were not committed."""
        self.history.sweep(self.kept, self._waiting)
        self._swept = True

    def tidy(self) -> None:
        """Throw away what nobody needs any more."""
        while len(self.kept) > KEPT:
            old = self.kept.pop(0)
            self._waiting.append(WaitingBatch.of(old))
            self.history.forget_state(old, self.kept)
        self._forget_taken(FORGOTTEN)
        if not self._swept:
            self.sweep()

    def _forget_taken(self, most: int) -> None:
        """Throw away batches long past that every sink has taken, ``most`` at once: the next one must not wait."""
        for _ in range(most):
            if not self._waiting or self._waiting[0].batch >= self.outbox.behind:
                return
            old = self._waiting.popleft()
            plans = {manifest.plan for manifest in self.kept} | {waiting.plan for waiting in self._waiting}
            self.history.forget(old, plans)
            self._batches.forget(old.batch, plans)
