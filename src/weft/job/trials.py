"""Deaths: what was being computed when a process died, so that the next ones find the query that it died over.

Before queries are computed, their names are written down. Whoever finds such a record of a batch that is not committed
has taken over from a process that died: of something else, or of one of these queries. The first death proves
nothing, unless the driver has seen that the JVM died under it: the batch is simply run again. After the second one the
suspects are computed apart from the others, those first that are new; each death makes them fewer, and so does each
part that can be computed. The one that is left is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from weft.job.checkpoint import Checkpoint
from weft.plan.record import JsonRecord

FILE = "trial.json"
PROOF = 2
"""So many deaths over the same queries are no accident."""
REASON = "the process died whenever it was computed, as one does that needs too much memory"


@dataclass(frozen=True)
class Trial(JsonRecord):
    """Queries that are being computed, in one batch."""

    batch: int
    names: list[str]
    """Empty while the batch is planned."""
    apart: bool = False
    """Whether they are computed apart from others, to see whether they can be."""
    tries: int = 1
    """How many processes in a row have come to compute them."""
    fatal: bool = False
    """Whether the JVM was seen to die over them."""

    @property
    def is_proof(self) -> bool:
        """Whether one of them must be at fault."""
        return self.fatal or self.tries >= PROOF


class Trials:
    """What is being computed, written down in the checkpoint: one record, of the last batch that was begun."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        data = checkpoint.read(FILE)
        self._last = None if data is None else Trial.load(data)

    def last(self, batch: int) -> Trial | None:
        """What was begun last of a batch, by this process or by one that died; None if nothing was."""
        return self._last if self._last is not None and self._last.batch == batch else None

    def begin(self, trial: Trial) -> None:
        """Queries are computed from now on."""
        before = self.last(trial.batch)
        if before is not None and (before.names, before.apart) == (trial.names, trial.apart):
            trial = replace(trial, tries=before.tries + 1)
        self._put(trial)

    def died(self) -> None:
        """The JVM died over what is being computed."""
        if self._last is not None:
            self._put(replace(self._last, fatal=True))

    def failed(self) -> None:
        """The computation ended with an error that somebody was told of: no death."""
        if self._last is not None:
            self._put(Trial(self._last.batch, [], tries=0))

    def _put(self, trial: Trial) -> None:
        self._last = trial
        self._checkpoint.put(FILE, trial.dump())

    def culprit(
        self, batch: int, names: Sequence[str], new: Collection[str], attempt: Callable[[Sequence[str]], object]
    ) -> dict[str, str]:
        """The query over which earlier processes died in this batch, and why; the suspects are tried apart.

        Parameters
        ----------
        names
            The queries of the batch.
        new
            Those that no batch was committed with.
        attempt
            Computes some of them to no effect; this process may die of it.
        """
        known = self.last(batch)
        if known is None or not (known.apart or known.is_proof):
            return {}
        suspects = [name for name in names if name in known.names]
        if len(suspects) == 1 and known.names == suspects and known.is_proof:
            return {suspects[0]: REASON}
        while suspects:
            some = next_suspects(suspects, new)
            self.begin(Trial(batch, some, apart=True))
            attempt(some)
            suspects = [name for name in suspects if name not in some]
        return {}


def next_suspects(suspects: Sequence[str], new: Collection[str]) -> list[str]:
    """Whom to compute next: those that are new, if others are not, else half of them.

    Examples
    --------
    >>> next_suspects(["a", "b", "c", "d"], {"c"}), next_suspects(["a", "b", "c", "d"], ())
    (['c'], ['a', 'b'])
    """
    fresh = [name for name in suspects if name in new]
    if 0 < len(fresh) < len(suspects):
        return fresh
    return list(suspects[: (len(suspects) + 1) // 2])
