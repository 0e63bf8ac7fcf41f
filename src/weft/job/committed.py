"""Committed batches as sinks take them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from weft.job.history import ANSWERS, History
from weft.job.records import Manifest
from weft.job.sink import CommittedBatch, QueryAnswers


class Committed:
    """Builds batches for sinks from their commits: those that have just been made, and those that waited for long."""

    def __init__(self, history: History, run: str) -> None:
        self._history = history
        self._run = run
        self._forms: dict[int, dict[str, QueryAnswers]] = {}
        """By a plan's version and a query: its answers without any files."""
        self._telling: dict[int, bool] = {}
        """By batch: whether it tells of queries without answers too. The first one of a plan does."""
        self._told = 0

    def knows(self, plan: int) -> bool:
        """Whether the queries of a plan are known."""
        return plan in self._forms

    def learn(self, plan: int, forms: Mapping[str, QueryAnswers]) -> None:
        """Know the queries of a plan: their answers without any files."""
        self._forms[plan] = dict(forms)

    def batch(self, manifest: Manifest) -> CommittedBatch:
        """The batch of a commit, the next one that is delivered."""
        self._telling[manifest.batch] = self._told != manifest.plan
        self._told = manifest.plan
        return self._built(manifest)

    def reload(self, number: int) -> CommittedBatch:
        """A batch that was delivered to some sinks only; called from their threads."""
        return self._built(self._history.manifest(number))

    def forget(self, batch: int, plans: Collection[int]) -> None:
        """Forget a batch that every sink has taken, and all plans but these."""
        self._telling.pop(batch, None)
        self._forms = {plan: forms for plan, forms in self._forms.items() if plan in plans}

    def _built(self, manifest: Manifest) -> CommittedBatch:
        root = f"{self._history.checkpoint.folder.root}/{ANSWERS}"
        forms = self._forms[manifest.plan]
        names: Iterable[str] = forms if self._telling[manifest.batch] else manifest.answers
        queries = [
            replace(forms[name], files=tuple(f"{root}/{file}" for file in manifest.answers.get(name, [])))
            for name in names
            if name in forms
        ]
        return CommittedBatch(manifest.batch, tuple(queries), manifest.watermark, self._run)
