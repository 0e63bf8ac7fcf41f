"""The planner, the only one: for a batch run, for a stream's first plan and for every change of its queries.

A tuple of pure stages, from draft to draft. What only data can tell comes in through the draft's ``look``; what a
running stream holds already, through its ``previous`` plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from weft.algebra.numbers import Array
from weft.optimize.constants import Constants
from weft.optimize.nodes.spread import spread
from weft.optimize.registry import NODE_OPTIMIZERS
from weft.optimize.sampled import Sampled, is_ordered, mixed
from weft.optimize.weaving import Seen, Weaving, home_of, nested, one_tree, rewoven, weave
from weft.plan.build import (
    check_technique,
    cut_at_all_edges,
    equal_queries_become_one,
    group_by_keys,
    grouping_of,
    join,
)
from weft.plan.model import BoundQuery, Grouping, Plan, key_column
from weft.plan.record import UNKEPT, GroupingRecord, PlanRecord, described, restored, restored_grouping
from weft.query.limits import DEFAULT, Limits
from weft.slicing.progression import Progression

FEW_PREDICATES = 4
"""So few predicates make at most 16 shards a slice: no sample needed."""
OWN_SIGNATURE = 0.5
"""From so many shards a row on, nearly every row is its own shard, and conditional partials take over."""
ROW_COST = 0.2
"""What a row costs in one more grouping set, as a share of what a slice costs (measured, docs/decisions/0002)."""
SMALL = 0.3
"""Groupings with at most so many slices a row are small: joined, they may end in one bucket."""
FEW_SLICES = 0.05
"""At most so many slices a row, and copying them for several nodes costs next to nothing."""
FEW_WINDOWS = 4
"""So few different windows are one tree: no sample needed."""
KEYS_A_PARTITION = 8
"""With fewer keys than this a partition is left with too little to do."""
MANY_AT_ONCE = 50
"""More new queries than these are not weighed one by one, as the batch waits: they join others of their keys."""

Look = Callable[[Plan], Sequence[Sampled]]
"""What some rows show of the groupings of a plan."""


class Previous(Protocol):
    """A running stream: what its last plan was, and what it holds."""

    @property
    def record(self) -> PlanRecord:
        """Its plan."""

    @property
    def largest(self) -> int:
        """The largest event time that it has seen."""

    @property
    def rate(self) -> float | None:
        """Rows a second of event time, as the last batches had them; None if they do not tell."""

    def groups(self, id: str) -> float:
        """How many keys a grouping has."""

    def since(self, id: str, query: BoundQuery) -> int | None:
        """From which event time on a grouping's retained slices serve a new query: None if from the beginning, what
        was never seen if they do not."""


@dataclass(frozen=True)
class PlanRequest:
    """What is to be planned, and for what."""

    stream: str
    event_time: str
    queries: Sequence[BoundQuery]
    weaving: Weaving = field(default_factory=Weaving)
    technique: str = "auto"
    partitions: int = 1
    """In how many parts keys are split."""
    limits: Limits = DEFAULT
    """What each query may cause."""
    look: Look | None = None
    """None if there are no rows to look at."""
    keeps: bool = False
    """Whether there will be a next step, which goes on from what this one keeps."""
    texts: dict[str, str] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    """By a query's name: the number of its entry in the catalog, where there is one."""

    @property
    def constants(self) -> Constants:
        """What things cost on this Spark."""
        return self.weaving.constants or Constants.load()


@dataclass(frozen=True)
class Draft:
    """A plan in the making."""

    asked: PlanRequest
    plan: Plan
    sample: tuple[Sampled, ...] = ()
    """What rows show of each grouping of the plan, once they were looked at."""
    previous: Previous | None = None
    record: PlanRecord | None = None
    """The next plan of a running stream."""


Stage = Callable[[Draft], Draft]


def plan(asked: PlanRequest, previous: Previous | None = None) -> Draft:
    """Who shares what: all that is to be known before a step, or the next one of a running stream."""
    queries = tuple(asked.queries)
    begun = Plan(asked.stream, asked.event_time, queries, technique=asked.technique, limits=asked.limits)
    draft = Draft(asked, begun, previous=previous)
    for stage in STAGES:
        draft = stage(draft)
    return draft


# ------------------------------------------------------------------------------------------------------- a new plan


def techniques_fit(draft: Draft) -> Draft:
    """Refuse a technique that some aggregate's algebra does not allow."""
    return replace(draft, plan=check_technique(draft.plan))


def group(draft: Draft) -> Draft:
    """Equal queries become one; those over the same keys stand together and are cut at all their edges."""
    if draft.previous is not None:
        return draft
    return replace(draft, plan=cut_at_all_edges(group_by_keys(equal_queries_become_one(draft.plan))))


def look_at_rows(draft: Draft) -> Draft:
    """Look at a sample of the rows, if anything depends on it."""
    if draft.previous is not None:
        return draft
    look = draft.asked.look
    if look is None or not (depends_on_data(draft.plan) or forest_depends_on_data(draft.plan, draft.asked.weaving)):
        return replace(draft, sample=tuple(Sampled.unseen(grouping) for grouping in draft.plan.groupings))
    return replace(draft, sample=tuple(look(draft.plan)))


def join_small_groupings(draft: Draft) -> Draft:
    """Groupings with few slices become one; those that are hashed and those that are sorted stay apart."""
    if not any(len(one.starts) for one in draft.sample):
        return draft
    parts = [[one for one in draft.sample if one.grouping.hashed is hashed] for hashed in (True, False)]
    return replace(draft, sample=tuple(one for part in parts for one in join_small(part)))


def weave_queries(draft: Draft) -> Draft:
    """Each grouping becomes a forest of trees."""
    if not any(len(one.starts) for one in draft.sample):
        return draft
    trees = tuple(tree for one in draft.sample for tree in woven(one, draft.asked.weaving))
    return replace(draft, sample=trees)


def shard(draft: Draft) -> Draft:
    """Predicates split slices into shards, or stand inside the partials."""
    if draft.previous is not None:
        return draft
    sample = draft.sample
    groupings = tuple(choose_sharding(one) for one in sample)
    if not any(len(one.starts) for one in sample):
        return replace(draft, plan=replace(draft.plan, groupings=groupings))
    loads = tuple(float(max(one.pieces, 1)) for one in sample)
    ordered = all(is_ordered(one.starts) for one in sample)
    seen = max(len(one.starts) for one in sample)
    return replace(draft, plan=replace(draft.plan, groupings=groupings, loads=loads, sampled=seen, ordered=ordered))


def place_on_nodes(draft: Draft) -> Draft:
    """Say where slices go: to nodes if there are any, or if keys are too few to keep all cores busy."""
    if draft.previous is not None:
        return draft
    placed = place(draft.sample, draft.plan, draft.asked.weaving, draft.asked.partitions)
    return replace(draft, plan=by_node(placed) if draft.asked.keeps else placed)


def by_node(plan: Plan) -> Plan:
    """Each node's trees as a grouping of their own: slices that are kept stay where they are."""
    groupings = []
    for grouping in plan.groupings:
        if not grouping.placed:
            groupings.append(grouping)
            continue
        named = {query.name: query for query in grouping.queries}
        for node in grouping.nodes:
            trees = tuple(tree for tree in grouping.trees if tree.node == node)
            own = grouping_of([named[name] for tree in trees for name in tree.queries])
            groupings.append(replace(own, conditional=grouping.conditional, trees=trees, node=node))
    return replace(plan, groupings=tuple(groupings), loads=())


# ---------------------------------------------------------------------------------------------------------- a change


def stay(draft: Draft) -> Draft:
    """Queries of the previous plan that are still asked for keep their place and their state."""
    if draft.previous is None:
        return draft
    before = draft.previous.record
    entries = draft.asked.entries
    gone = [name for name, entry in before.entries.items() if entries.get(name) != entry]
    return replace(draft, record=before.without(gone))


def settle(draft: Draft) -> Draft:
    """New queries find a place: where all that they need is retained, or among those that they weave with, or alone.

    The step of 000 §5.2 for queries that come; trees that are there stay as they are, as their slices hold what running
    queries need.
    """
    if draft.previous is None or draft.record is None:
        return draft
    bound = {query.name: query for query in draft.asked.queries}
    staying = draft.record.queries
    new = [query for query in draft.asked.queries if query.name not in staying]
    rate = draft.previous.rate if len(new) <= MANY_AT_ONCE else None
    groupings = list(draft.record.groupings)
    first = dict(draft.record.first)
    next_id = draft.record.next_id
    for query in new:
        at, instant = found_place(draft, groupings, bound, query, rate)
        if at is None:
            groupings.append(GroupingRecord(f"g{next_id}", (query.name,)))
            next_id += 1
        else:
            one = groupings[at]
            groupings[at] = replace(one, queries=(*one.queries, query.name))
        if instant is not None:
            first[query.name] = instant
    record = replace(
        draft.record,
        version=UNKEPT,
        queries=draft.asked.texts,
        entries=draft.asked.entries,
        groupings=tuple(groupings),
        first=first,
        next_id=next_id,
    )
    return replace(draft, record=record)


def found_place(
    draft: Draft,
    groupings: Sequence[GroupingRecord],
    bound: dict[str, BoundQuery],
    query: BoundQuery,
    rate: float | None,
) -> tuple[int | None, int | None]:
    """The grouping for a new query, None if it needs its own, and when its first window may start, if that is bounded.

    Where everything that it needs was retained, it is answered from that; else from the first window that starts after
    all that was seen.
    """
    previous = draft.previous
    assert previous is not None
    unseen = previous.largest + 1
    alike = []
    for at, one in enumerate(groupings):
        members = [bound[name] for name in one.queries]
        if all(call.hashed for member in members for call in member.calls) != all(call.hashed for call in query.calls):
            continue
        if not set(one.placing or ()) <= {key_column(key) for key in query.query.keys}:
            continue  # its keys do not tell the bucket in which a slice of this grouping lies
        keys = {key for member in members for key in member.query.keys}
        if set(query.query.keys) <= keys:
            instant = previous.since(one.id, query)
            if instant is None or instant < unseen:
                return at, instant
        if set(query.query.keys) == keys:
            alike.append(at)
    if rate is None or not alike:
        return (alike[0] if alike else None), unseen
    trees = [restored_grouping(groupings[at], [bound[name] for name in groupings[at].queries]) for at in alike]
    groups = max(previous.groups(groupings[at].id) for at in alike)
    home = home_of(query, trees, Seen(rate, groups), draft.asked.constants)
    return (None if home is None else alike[home]), unseen


def weave_again(draft: Draft) -> Draft:
    """The trees of groupings that have won or lost queries: how slices are put together can change at any time."""
    if draft.previous is None or draft.record is None:
        return draft
    bound = {query.name: query for query in draft.asked.queries}
    before = {one.id: one.queries for one in draft.previous.record.groupings}
    groupings = tuple(
        one if before.get(one.id) == one.queries else _woven_again(draft, draft.previous, one, bound)
        for one in draft.record.groupings
    )
    return replace(draft, record=replace(draft.record, groupings=groupings))


def _woven_again(
    draft: Draft, previous: Previous, record: GroupingRecord, bound: dict[str, BoundQuery]
) -> GroupingRecord:
    # cut anew: where only queries cut that are gone, new slices need not end
    grouping = restored_grouping(replace(record, trees=(), cuts=()), [bound[name] for name in record.queries])
    if previous.rate is None and draft.asked.weaving.is_default:
        grouping = replace(grouping, trees=(one_tree(grouping),))
    else:
        seen = Seen(previous.rate or 1.0, previous.groups(record.id))
        grouping = rewoven(grouping, seen, draft.asked.weaving)
    (made,) = described(Plan("", "", grouping.queries, (grouping,)), (record.id,))
    return replace(made, queries=record.queries, placing=record.placing, node=record.node)


def write_down(draft: Draft) -> Draft:
    """The record of a new plan, or the plan of a new record."""
    if draft.record is not None:
        bound = {query.name: query for query in draft.asked.queries}
        made = restored(draft.asked.stream, draft.asked.event_time, draft.record, bound, draft.asked.limits)
        return replace(draft, plan=made)
    groupings = described(draft.plan, [f"g{number}" for number in range(len(draft.plan.groupings))])
    return replace(
        draft,
        record=PlanRecord(
            UNKEPT,
            draft.asked.texts,
            draft.asked.entries,
            groupings,
            next_id=len(groupings),
            technique=draft.asked.technique,
            sampled=draft.asked.look is not None and bool(draft.plan.queries),
        ),
    )


STAGES: tuple[Stage, ...] = (
    techniques_fit,
    group,
    look_at_rows,
    join_small_groupings,
    weave_queries,
    shard,
    place_on_nodes,
    stay,
    settle,
    weave_again,
    write_down,
)


# ------------------------------------------------------------------------------------------------- what data tell


def depends_on_data(plan: Plan) -> bool:
    """Whether groupings might be joined, or predicates be too many for shards."""
    return len(plan.groupings) > 1 or len(plan.predicates) > FEW_PREDICATES


def forest_depends_on_data(plan: Plan, weaving: Weaving) -> bool:
    """Whether one tree a grouping is not good enough for sure."""
    if not weaving.is_default:
        return True
    return any(len(grouping.windows) > FEW_WINDOWS and not nested(grouping) for grouping in plan.groupings)


def woven(sampled: Sampled, weaving: Weaving) -> list[Sampled]:
    """The grouping as a forest, a tree that cuts the rows itself as a grouping of its own."""
    trees = weave(sampled.grouping, sampled.seen, weaving)
    return [replace(sampled, grouping=tree, starts=last_edge(sampled.starts, tree.progressions)) for tree in trees]


def last_edge(instants: Array, progressions: Sequence[Progression]) -> Array:
    """The last edge at or before each instant.

    Examples
    --------
    >>> last_edge(np.array([4, 9, 15]), [Progression(7, 2), Progression(10)]).tolist()
    [2, 9, 10]
    """
    last: Array = np.maximum.reduce([instants - (instants - edge.offset) % edge.step for edge in progressions])
    return last


def join_small(sample: Sequence[Sampled]) -> list[Sampled]:
    """Join groupings with few slices into one over all their keys, where a copy of every row costs more than that.

    Each grouping of an aggregation is a copy of every row. Queries by venue, by side and by nothing can all be
    answered from slices by venue and side.
    """
    rows = max((len(one.starts) for one in sample), default=0)
    small = [one for one in sample if one.pieces <= SMALL * rows]
    if len(small) < 2:
        return list(sample)
    grouping = join([one.grouping for one in small])
    together = Sampled(
        grouping,
        np.maximum.reduce([one.starts for one in small]),
        mixed([one.shards for one in small]),
        mixed([one.keys for one in small]),
    )
    saved = ROW_COST * rows * (len(small) - 1)
    if together.pieces > min(SMALL * rows, sum(one.pieces for one in small) + saved):
        return list(sample)
    return [one for one in sample if one not in small] + [together]


def choose_sharding(sampled: Sampled) -> Grouping:
    """Put predicates into the partials where they would make nearly every row a shard of its own.

    Shards cost rows: every combination of predicates that occurs in a slice is one. Conditional partials cost columns:
    every predicate has its own.
    """
    grouping = sampled.grouping
    if len(grouping.predicates) <= FEW_PREDICATES or sampled.pieces <= OWN_SIGNATURE * len(sampled.starts):
        return grouping
    conditional = replace(grouping, conditional=True)
    cheaper = sampled.slices * columns_of(conditional) < sampled.pieces * columns_of(grouping)
    return conditional if cheaper else grouping


def columns_of(grouping: Grouping) -> int:
    """How many columns a slice of this grouping has."""
    columns = set()
    for query in grouping.queries:
        if grouping.conditional:
            columns.add(query.predicate.name)
        for call in query.calls:
            predicate = query.predicate_of(call) if grouping.conditional else None
            columns |= {name for partial in call.partials for name in partial.columns(predicate)}
    return len(columns) + len(grouping.keys) + 1


def place(sample: Sequence[Sampled], plan: Plan, weaving: Weaving, partitions: int) -> Plan:
    """Say where slices go: to nodes if there are any, or if keys are too few to keep all cores busy."""
    if weaving.optimizer in NODE_OPTIMIZERS:
        placed = tuple(replace(grouping, placed=True) for grouping in plan.groupings)
        return replace(plan, groupings=placed, nodes=len(weaving.capacities) or 1)
    capacities = weaving.capacities
    if not capacities and partitions > 1 and not any(splits_by_key(one, partitions) for one in sample):
        capacities = (1.0,) * partitions
    if len(capacities) > 1:
        return replace(plan, groupings=spread(plan.groupings, capacities), nodes=len(capacities))
    return plan


def splits_by_key(sampled: Sampled, partitions: int) -> bool:
    """Whether there are keys enough to divide the work by."""
    if sampled.slices > FEW_SLICES * len(sampled.starts):
        return True  # copies of the slices for every node would cost more than an idle core
    if not sampled.grouping.placing_columns:
        return False
    return not len(sampled.keys) or sampled.seen.groups >= KEYS_A_PARTITION * partitions
