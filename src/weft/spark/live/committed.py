"""Committed batches as sinks take them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from weft.job.history import ANSWERS, History
from weft.job.records import Manifest
from weft.job.sink import CommittedBatch, QueryAnswers
from weft.query.model import Part
from weft.spark.bind import Bound
from weft.spark.live.planning import LivePlan


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

    def learn(self, plan: int, live: LivePlan) -> None:
        """Know the queries of a plan."""
        self._forms[plan] = {
            name: query_answers(live.bound[name], ()) for name in live.record.queries if name in live.bound
        }

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


def query_answers(bound: Bound, files: Sequence[str]) -> QueryAnswers:
    """The answers of one query: its files, and which columns tell window and group."""
    window, keys = identity(bound)
    return QueryAnswers(bound.query.name, bound.arrow_schema, tuple(files), window, keys)


def identity(bound: Bound) -> tuple[tuple[str | None, str | None], tuple[str, ...] | None]:
    """The columns that hold a window's start and end, and those of the group's keys if all are shown."""
    query = bound.query
    start = end = None
    keys: dict[int, str] = {}
    for output, column in zip(query.query.outputs, query.columns, strict=True):
        if output.part is Part.WINDOW:
            start, end = f"{column}.start", f"{column}.end"
        elif output.part is Part.WINDOW_START:
            start = column
        elif output.part is Part.WINDOW_END:
            end = column
        elif output.part is Part.KEY:
            keys[output.index] = column
    shown = tuple(keys[index] for index in sorted(keys)) if len(keys) == len(query.query.keys) else None
    return (start, end), shown
