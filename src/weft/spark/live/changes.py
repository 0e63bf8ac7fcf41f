"""Queries that come and go: the next plan from the last one, the catalog's wishes and what is retained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from weft.algebra.measures import flatten
from weft.job.records import EVERYTHING, UNKEPT, PlanRecord
from weft.optimize.constants import Constants
from weft.optimize.weaving import Seen, home_of
from weft.plan.build import join
from weft.plan.model import BoundQuery, Grouping, key_column
from weft.slicing.progression import edges_of
from weft.spark.bind import Bound
from weft.spark.live.planning import LivePlan, Wanted
from weft.spark.live.retained import END, START, kept_names, needs, straddled
from weft.spark.panes import number_rows

MANY_AT_ONCE = 50
"""More new queries than these are not weighed one by one, as the batch waits: they join others of their keys."""

Since = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Past:
    """What is known of the stream so far."""

    live: LivePlan
    tables: Mapping[str, pa.Table]
    since: Since
    largest: int | None
    rate: float | None = None
    """Rows a second of event time, as the last batches had them; None if they do not tell."""

    def keys(self, id: str) -> int:
        """How many keys the retained slices of a grouping have."""
        table = self.tables.get(id)
        if table is None:
            return 1
        names = self.live.groupings[id].key_columns
        columns = [flatten(table.column(name)) for name in names]
        return len(number_rows(columns, len(table))[1]) if names else 1


def changed_plan(past: Past, wanted: Wanted) -> PlanRecord:
    """The plan for other queries: those that stay keep their place and their state; new ones find theirs."""
    before = past.live.record
    staying = [
        name for name, entry in wanted.entries.items() if before.entries.get(name) == entry and name in before.queries
    ]
    groupings: list[dict[str, Any]] = []
    for described in before.groupings:
        names = [name for name in described["queries"] if name in staying]
        if names:
            groupings.append({**described, "queries": names})
    first = {name: instant for name, instant in before.first.items() if name in staying}
    next_id = before.next_id
    if len(wanted.bound) - len(staying) > MANY_AT_ONCE:
        past = replace(past, rate=None)
    for name, bound in wanted.bound.items():
        if name in staying:
            continue
        place, instant = placed(past, groupings, wanted.bound, bound.query)
        if place is None:
            groupings.append({"id": f"g{next_id}", "queries": [name], "conditional": False})
            next_id += 1
        else:
            place["queries"] = [*place["queries"], name]
        if instant is not None:
            first[name] = instant
    return replace(
        before,
        version=UNKEPT,
        queries=wanted.texts,
        entries=wanted.entries,
        groupings=groupings,
        first=first,
        next_id=next_id,
    )


def placed(
    past: Past, groupings: list[dict[str, Any]], bound: Mapping[str, Bound], query: BoundQuery
) -> tuple[dict[str, Any] | None, int | None]:
    """The grouping for a new query, None if it needs its own, and when its first window may start.

    Where everything that it needs was retained, it is answered from that; else from the first window that starts
    after all that was seen.
    """
    unseen = None if past.largest is None else past.largest + 1
    alike = []
    for described in groupings:
        members = [bound[name].query for name in described["queries"]]
        if all(call.hashed for member in members for call in member.calls) != all(call.hashed for call in query.calls):
            continue
        if not set(described.get("placing", ())) <= {key_column(key) for key in query.query.keys}:
            continue  # its keys do not tell the bucket in which a slice of this grouping lies
        keys = {key for member in members for key in member.query.keys}
        if set(query.query.keys) <= keys:
            instant = retained_since(past, described, query)
            if unseen is not None and instant is not None and instant < unseen:
                return described, instant
            if past.largest is not None and instant is None:
                return described, None
        if set(query.query.keys) == keys:
            alike.append(described)
    return woven_into(past, alike, bound, query), unseen


def woven_into(
    past: Past, alike: Sequence[dict[str, Any]], bound: Mapping[str, Bound], query: BoundQuery
) -> dict[str, Any] | None:
    """The one of some groupings by the query's keys that it is woven into, None if it gets its own."""
    if past.rate is None or not alike:
        return alike[0] if alike else None
    trees = [tree_of(one, bound) for one in alike]
    groups = max(past.keys(one["id"]) for one in alike)
    home = home_of(query, trees, Seen(past.rate, groups), Constants.load())
    return None if home is None else alike[home]


def tree_of(described: Mapping[str, Any], bound: Mapping[str, Bound]) -> Grouping:
    """A grouping as it is described."""
    queries = tuple(bound[name].query for name in described["queries"])
    return replace(join([Grouping((), queries)]), conditional=described["conditional"])


def retained_since(past: Past, described: Mapping[str, Any], query: BoundQuery) -> int | None:
    """From which event time on a grouping's retained slices serve a new query; what was never seen if they do not."""
    unseen = 0 if past.largest is None else past.largest + 1
    id = described["id"]
    grouping = past.live.groupings.get(id)
    if grouping is None:
        return unseen  # it was made in this very change, for another new query
    since = past.since.get(id, {})
    kept = kept_names(grouping)
    instants = [since[EVERYTHING]] if EVERYTHING in since else []
    for need in needs(grouping.conditional, query):
        met = need & kept
        if not met:
            return unseen
        if all(name in since for name in met):
            instants.append(min(since[name] for name in met))
    table = past.tables.get(id)
    if table is not None and is_straddled(table, query, max(instants, default=None)):
        return unseen
    return max(instants, default=None)


def is_straddled(table: pa.Table, query: BoundQuery, since: int | None) -> bool:
    """Whether some slice that reaches past ``since`` has one of the query's edges inside."""
    starts, ends = (np.asarray(flatten(table.column(name))) for name in (START, END))
    inside = straddled(starts, ends, edges_of(query.query.window))
    return bool(inside.any() if since is None else (inside & (ends > since)).any())


def next_since(
    since: Since, before: LivePlan | None, after: LivePlan, largest: int | None
) -> dict[str, dict[str, int]]:
    """From when on columns are complete under a new plan: those that are new, from what was never seen."""
    found: dict[str, dict[str, int]] = {}
    for id, grouping in after.groupings.items():
        known = before.groupings.get(id) if before is not None else None
        mine = dict(since.get(id, {}))
        names = kept_names(grouping)
        old = kept_names(known) if known is not None else set()
        if largest is not None:
            mine |= dict.fromkeys(names - old, largest + 1)
            if known is None:
                mine[EVERYTHING] = largest + 1
        found[id] = {name: instant for name, instant in mine.items() if name in names or name == EVERYTHING}
    return found
