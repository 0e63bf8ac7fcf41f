"""What a running stream knows of each of its queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.catalog.status import QueryFigures
from weft.job.live_plan import LivePlan
from weft.job.records import Manifest
from weft.job.running import RunningJob
from weft.slicing.window import Window
from weft.step.step_plan import StepPlan


@dataclass(slots=True)
class Tally:
    """Sums of one query since it came."""

    entry: int
    """Its entry in the catalog: a query that was dropped and added again begins anew."""
    answers: int = 0
    rows: int = 0
    seconds: float = 0.0
    state_bytes: int = 0
    answered_at: float | None = None
    lag: float | None = None


class Tallies:
    """Adds up batches by query. Asked from any thread, it tells of all queries as they were after one batch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[str, Tally] = {}

    def note(self, job: RunningJob, manifest: Manifest) -> None:
        """A batch was committed."""
        live = job.live
        if live is None:
            return
        sizes = job.state.bytes_by_grouping()
        with self._lock:
            self._follow(live.record.entries)
            self._share(live, sizes, job.answered, manifest)
            self._answered(live, job.answered, manifest)

    def figures(self) -> dict[str, QueryFigures]:
        """By a query's name."""
        with self._lock:
            return {
                name: QueryFigures(
                    answers=tally.answers,
                    rows=tally.rows,
                    seconds=round(tally.seconds, 6),
                    state_bytes=tally.state_bytes,
                    lag_seconds=tally.lag,
                    answered_at=tally.answered_at,
                )
                for name, tally in self._tallies.items()
            }

    def _follow(self, entries: Mapping[str, int]) -> None:
        """The queries of the plan, and no others."""
        known = self._tallies
        self._tallies = {
            name: known[name] if name in known and known[name].entry == entry else Tally(entry)
            for name, entry in entries.items()
        }

    def _share(self, live: StepPlan, sizes: Mapping[str, int], answered: Mapping[str, int], manifest: Manifest) -> None:
        """Rows, and every query's share of time and state."""
        trees = members(live)
        seconds, rows = manifest.counts["seconds"], manifest.counts["rows"]
        # a byte and an answer more, as nothing is for nothing
        weight = sum(sizes.get(id, 0) + 1 for id in trees)
        for id, names in trees.items():
            of_tree = seconds * (sizes.get(id, 0) + 1) / weight
            answers = sum(answered.get(name, 0) + 1 for name in names)
            for name in names:
                tally = self._tallies.get(name)
                if tally is not None:
                    tally.rows += rows
                    tally.seconds += of_tree * (answered.get(name, 0) + 1) / answers
                    tally.state_bytes = sizes.get(id, 0) // len(names)

    def _answered(self, live: LivePlan[Any], answered: Mapping[str, int], manifest: Manifest) -> None:
        now = time.time()
        for name, answers in answered.items():
            tally = self._tallies.get(name)
            if tally is not None and answers:
                tally.answers += answers
                tally.answered_at = now
                end = last_end(live.bound[name].query.window, manifest)
                tally.lag = None if end is None else round(now - end / 1e6, 3)


def members(live: StepPlan) -> dict[str, list[str]]:
    """The queries of each tree, with those that ask what one of them asks."""
    equals: dict[str, list[str]] = {}
    for name, original in live.plan.same_as.items():
        equals.setdefault(original, []).append(name)
    return {
        id: [name for query in grouping.queries for name in (query.name, *equals.get(query.name, ()))]
        for id, grouping in live.groupings.items()
    }


def last_end(window: Window, manifest: Manifest) -> int | None:
    """When the last window ends that a batch has answered, in microseconds."""
    if manifest.watermark is None or manifest.largest is None:
        return None
    # the last step of a bounded stream answers all that hold a row
    return window.last_end(manifest.largest + window.length if manifest.drained else manifest.watermark)
