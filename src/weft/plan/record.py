"""The record of a plan: typed, written as JSON and read back by one pair of functions, :func:`described` and
:func:`restored`. A restart goes by it, and so does everybody who wants to see a running plan.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

from weft.plan.build import answered_by_others, grouping_of
from weft.plan.forest import Tree
from weft.plan.model import BoundQuery, Grouping, Plan
from weft.query.limits import DEFAULT, Limits
from weft.slicing.edge_rate import edge_rate
from weft.slicing.progression import Progression, contains

UNKEPT = 0
"""The version of a plan that has yet to be written down."""
Cut = tuple[int, int]
"""Step and offset of a progression."""
Value = TypeVar("Value")


class JsonRecord:
    """A record that is kept as JSON; fields of a newer Weft are passed over."""

    def dump(self) -> bytes:
        """The record as bytes."""
        return json.dumps(vars(self), default=vars).encode()

    @classmethod
    def load(cls, data: bytes) -> Self:
        """The record of these bytes."""
        return cls.of(json.loads(data))

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """The record with these fields."""
        known = {item.name for item in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in found.items() if name in known})


@dataclass(frozen=True)
class TreeRecord(JsonRecord):
    """Queries that are woven together, and where they cut the stream."""

    queries: tuple[str, ...]
    cuts: tuple[Cut, ...]
    overlap: float
    cost: float
    technique: str
    node: int = 0

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """The record with these fields."""
        return super().of({**found, "queries": tuple(found["queries"]), "cuts": _cuts(found["cuts"])})


@dataclass(frozen=True)
class GroupingRecord(JsonRecord):
    """Queries that share slices.

    Examples
    --------
    >>> GroupingRecord.of({"id": "g0", "queries": ["a", "b"], "conditional": False}).only(["b"]).queries
    ('b',)
    """

    id: str
    queries: tuple[str, ...]
    """With those that ask what others ask."""
    conditional: bool = False
    cuts: tuple[Cut, ...] = ()
    """Where the stream is cut; none: at the edges of its queries."""
    trees: tuple[TreeRecord, ...] = ()
    placing: tuple[str, ...] | None = None
    """The key columns that tell the bucket of a slice; None while there are no buckets."""
    node: int | None = None
    """The node whose buckets hold its slices; None if they may lie in any."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """The record with these fields; that of an older Weft has no trees."""
        placing = found.get("placing")
        return super().of(
            {
                **found,
                "queries": tuple(found["queries"]),
                "cuts": _cuts(found.get("cuts", ())),
                "trees": tuple(TreeRecord.of(tree) for tree in found.get("trees", ())),
                "placing": None if placing is None else tuple(placing),
            }
        )

    def only(self, names: Collection[str]) -> Self:
        """The same with some of its queries, cut as before: what is retained stays as it is."""
        trees = [replace(tree, queries=tuple(name for name in tree.queries if name in names)) for tree in self.trees]
        return replace(
            self,
            queries=tuple(name for name in self.queries if name in names),
            trees=tuple(tree for tree in trees if tree.queries),
        )


@dataclass(frozen=True)
class PlanRecord(JsonRecord):
    """A plan: queries by their texts, who shares slices with whom, and from when on late-comers are answered."""

    version: int
    queries: dict[str, str]
    """The statement of each query that is answered, by its name."""
    entries: dict[str, int]
    """The number of each query's entry in the catalog: one that was dropped and added again is another query."""
    groupings: tuple[GroupingRecord, ...]
    first: dict[str, int] = field(default_factory=dict)
    """When the first window of a query may start, where it came after the stream had begun."""
    next_id: int = 0
    technique: str = "auto"
    sampled: bool = False
    """Whether it was fitted to a sample of rows."""
    buckets: int = 0
    """In how many parts the executors keep the state and answer from it; 0 if the driver's process does all of it."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """The record with these fields."""
        return super().of({**found, "groupings": tuple(GroupingRecord.of(one) for one in found["groupings"])})

    def beside(self, other: Self) -> Self:
        """Both plans as one, which share nothing."""
        ids = [f"g{self.next_id + number}" for number in range(len(other.groupings))]
        moved = tuple(replace(one, id=id) for one, id in zip(other.groupings, ids, strict=True))
        return replace(self, groupings=(*self.groupings, *moved), next_id=self.next_id + len(ids))

    def without(self, names: Collection[str]) -> Self:
        """The same plan without some queries; one that loses any has no version until it is kept."""
        if self.queries.keys().isdisjoint(names):
            return self
        left = [name for name in self.queries if name not in names]
        groupings = [grouping.only(left) for grouping in self.groupings]
        return replace(
            self,
            version=UNKEPT,
            queries=_only(self.queries, left),
            entries=_only(self.entries, left),
            groupings=tuple(grouping for grouping in groupings if grouping.queries),
            first=_only(self.first, left),
        )


def _only(known: Mapping[str, Value], names: Collection[str]) -> dict[str, Value]:
    return {name: value for name, value in known.items() if name in names}


def _cuts(found: Iterable[Sequence[int]]) -> tuple[Cut, ...]:
    return tuple((int(step), int(offset)) for step, offset in found)


def described(plan: Plan, ids: Sequence[str]) -> tuple[GroupingRecord, ...]:
    """The groupings of a plan as records."""
    found = []
    for id, grouping in zip(ids, plan.groupings, strict=True):
        names = [query.name for query in grouping.queries]
        names += [name for name, original in plan.same_as.items() if original in names]
        trees = tuple(
            TreeRecord(tree.queries, cuts_of(tree.progressions), tree.overlap, tree.cost, tree.technique, tree.node)
            for tree in grouping.trees
        )
        cuts = cuts_of(grouping.progressions)
        found.append(GroupingRecord(id, tuple(names), grouping.conditional, cuts, trees, node=grouping.node))
    return tuple(found)


def cuts_of(progressions: Iterable[Progression]) -> tuple[Cut, ...]:
    """Progressions as they are written down."""
    return tuple((edge.step, edge.offset) for edge in progressions)


def restored(
    stream: str, event_time: str, record: PlanRecord, bound: Mapping[str, BoundQuery], limits: Limits = DEFAULT
) -> Plan:
    """The plan that a record stands for; queries that ask the same from the same window on are answered once."""
    same_as: dict[str, str] = {}
    groupings = []
    for one in record.groupings:
        members = [bound[name] for name in one.queries]
        equals = answered_by_others(members, record.first)
        same_as |= equals
        groupings.append(restored_grouping(one, [query for query in members if query.name not in equals]))
    queries = tuple(query for grouping in groupings for query in grouping.queries)
    return Plan(stream, event_time, queries, tuple(groupings), same_as, record.technique, limits=limits)


def restored_grouping(record: GroupingRecord, queries: Sequence[BoundQuery]) -> Grouping:
    """A grouping of these queries as it is recorded; cut at their edges if it was not recorded where."""
    grouping = replace(grouping_of(queries), conditional=record.conditional, node=record.node)
    cuts = tuple(Progression(step, offset) for step, offset in record.cuts)
    if cuts and contains(cuts, grouping.progressions):
        grouping = replace(grouping, progressions=cuts)
    names = {query.name for query in queries}
    return replace(grouping, trees=tuple(_tree(tree, names) for tree in record.trees if names & set(tree.queries)))


def _tree(record: TreeRecord, names: Collection[str]) -> Tree:
    progressions = tuple(Progression(step, offset) for step, offset in record.cuts)
    rate = edge_rate(progressions, budget=1)
    queries = tuple(name for name in record.queries if name in names)
    return Tree(queries, progressions, rate, record.overlap, record.cost, record.technique, record.node)
