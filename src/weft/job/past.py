"""Queries that come and go: what a running stream holds for those that come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weft.algebra.numbers import flatten
from weft.job.records import EVERYTHING
from weft.plan.model import BoundQuery
from weft.plan.record import PlanRecord
from weft.step.retained import END, START, needs, straddled
from weft.step.slices import number_rows
from weft.step.state import reach
from weft.step.step_plan import StepPlan

Since = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Past:
    """What is known of the stream so far."""

    plan: StepPlan
    record: PlanRecord
    """The plan so far."""
    tables: Mapping[str, pa.Table]
    kept_since: Since
    largest: int
    rate: float | None = None
    """Rows a second of event time, as the last batches had them; None if they do not tell."""

    def groups(self, id: str) -> float:
        """How many keys the retained slices of a grouping have."""
        table = self.tables.get(id)
        if table is None:
            return 1.0
        names = self.plan.groupings[id].key_columns
        columns = [flatten(table.column(name)) for name in names]
        return float(len(number_rows(columns, len(table))[1])) if names else 1.0

    def since(self, id: str, query: BoundQuery) -> int | None:
        """From which event time on a grouping's retained slices serve a new query: None if from the beginning, what
        was never seen if they do not."""
        unseen = self.largest + 1
        grouping = self.plan.groupings.get(id)
        if grouping is None:
            return unseen  # it was made in this very change, for another new query
        since = self.kept_since.get(id, {})
        kept = self.plan.kept[id]
        instants = [since[EVERYTHING]] if EVERYTHING in since else []
        for need in needs(grouping.conditional, query):
            met = need & kept
            if not met:
                return unseen
            if all(name in since for name in met):
                instants.append(min(since[name] for name in met))
        table = self.tables.get(id)
        if table is not None and is_straddled(table, query, max(instants, default=None)):
            return unseen
        return max(instants, default=None)


def is_straddled(table: pa.Table, query: BoundQuery, since: int | None) -> bool:
    """Whether some slice that reaches past ``since`` has one of the query's edges inside."""
    starts, ends = (np.asarray(flatten(table.column(name))) for name in (START, END))
    inside = straddled(starts, ends, query.window.edges())
    return bool(inside.any() if since is None else (inside & (ends > since)).any())


def next_since(
    since: Since, before: StepPlan | None, after: StepPlan, largest: int | None
) -> dict[str, dict[str, int]]:
    """From when on columns are complete under a new plan: those that are new, from what was never seen."""
    found: dict[str, dict[str, int]] = {}
    known = before.kept if before is not None else {}
    for id, names in after.kept.items():
        mine = dict(since.get(id, {}))
        if largest is not None:
            mine |= dict.fromkeys(names - known.get(id, frozenset()), largest + 1)
            if id not in known:
                mine[EVERYTHING] = largest + 1
        found[id] = {name: instant for name, instant in mine.items() if name in names or name == EVERYTHING}
    return found


def reached_since(
    since: Since, plan: StepPlan, watermark: int | None, largest: int | None
) -> dict[str, dict[str, int]]:
    """From when on columns are complete after a batch, which has thrown away what no open window needs."""
    found = {}
    for id in plan.groupings:
        known = dict(since.get(id, {}))
        reached = reach(plan, id, watermark, largest)
        if reached is not None:
            known[EVERYTHING] = max(reached, known.get(EVERYTHING, reached))
        found[id] = known
    return found
