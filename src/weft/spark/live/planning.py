"""Plans of a stream: made from the queries' texts and a record of who shares slices with whom, the same every time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from weft.errors import QueriesError, QueryError
from weft.job.records import UNKEPT, PlanRecord
from weft.plan.build import build, join
from weft.plan.layout import layouts
from weft.plan.model import BoundQuery, Grouping, Plan
from weft.plan.sheet import Sheet, sheet
from weft.query.limits import Limits
from weft.query.model import Window
from weft.query.sparksql import parse_file
from weft.spark.bind import Bound, Stream, bind
from weft.spark.culprits import blamed, control_of
from weft.spark.emission import Emission
from weft.spark.failures import fault
from weft.spark.fetching import arrow_type
from weft.spark.live.retained import END, START
from weft.spark.packing import Packing
from weft.spark.rows import slices
from weft.spark.sample import adapt, look

Value = TypeVar("Value")


@dataclass(frozen=True)
class LivePlan:
    """A plan with all that a batch needs of it."""

    record: PlanRecord
    plan: Plan
    bound: Mapping[str, Bound]
    schemas: Mapping[str, pa.Schema]
    """The columns of retained slices, by the id of their grouping."""
    packing: Packing

    @cached_property
    def groupings(self) -> dict[str, Grouping]:
        """The groupings by their ids."""
        ids = [grouping["id"] for grouping in self.record.groupings]
        return dict(zip(ids, self.plan.groupings, strict=True))

    @cached_property
    def names(self) -> dict[str, dict[str, str]]:
        """By a grouping's id: columns of the aggregation and what they are called in a retained slice."""
        columns = layouts(self.plan)
        found = {}
        for number, (id, grouping) in enumerate(self.groupings.items()):
            names = columns[number].names(number, grouping)
            found[id] = {slot: START if name == grouping.slice_column else name for slot, name in names.items()}
        return found

    @cached_property
    def windows(self) -> dict[str, dict[Window, int | None]]:
        """By a grouping's id: its windows, each with the instant before which none of them counts for anybody."""
        found: dict[str, dict[Window, int | None]] = {}
        for id, grouping in self.groupings.items():
            firsts: dict[Window, list[int | None]] = {}
            for query in grouping.queries:
                firsts.setdefault(query.query.window, []).append(self.record.first.get(query.name))
            found[id] = {window: _least(some) for window, some in firsts.items()}
        return found

    @cached_property
    def sheet(self) -> Sheet:
        """The table of those queries whose select lists Spark computes."""
        return sheet(self.plan.queries)

    def emission(self, after: int | None, until: int | None) -> Emission:
        """Which windows are answered while the watermark goes from one instant to another."""
        return Emission(after, until, self.record.first, self.plan.limits)


def _least(instants: Sequence[int | None]) -> int | None:
    known = [instant for instant in instants if instant is not None]
    return min(known) if len(known) == len(instants) else None


@dataclass(frozen=True)
class Wanted:
    """The queries that are to be answered from a batch on."""

    texts: dict[str, str]
    entries: dict[str, int]
    bound: dict[str, Bound]


def bind_all(stream: Stream, texts: Mapping[str, str]) -> tuple[dict[str, Bound], dict[str, QueryError]]:
    """Queries bound to the stream, and what is wrong with the others, by their names."""
    columns = {stream.name: tuple(stream.rows.columns)}
    queries, errors = [], {}
    for name, text in texts.items():
        try:
            (query,) = parse_file(text, columns)
        except QueriesError as error:
            errors[name] = error.errors[0]
            continue
        query = replace(query, name=name)
        if query.stream.lower() == stream.name.lower():
            queries.append(query)
        else:
            errors[name] = QueryError(
                f"there is no stream {query.stream}", text=query.text, hint=f"there is {stream.name}", query=name
            )
    good, bad = bind(stream, queries)
    limits = stream.limits
    bad += [error for one in good for error in (_equal_names(one), _too_long(one, limits)) if error is not None]
    errors |= {error.query or "": error for error in bad}
    return {one.query.name: one for one in good if one.query.name not in errors}, errors


def _too_long(bound: Bound, limits: Limits) -> QueryError | None:
    """What is wrong with a query of which every key would have to keep more slices than memory has room for."""
    window = bound.query.query.window
    slices = (2 if window.fragment else 1) * window.range // window.slide
    what = f"its windows overlap so much that every key would have {slices:,} slices"
    beyond = limits.beyond("slices", slices, what)
    if beyond is None:
        return None
    return QueryError(
        beyond,
        text=bound.query.query.text,
        hint="a longer slide or a shorter range makes them fewer",
        query=bound.query.name,
    )


def _equal_names(bound: Bound) -> QueryError | None:
    """What is wrong with a query that names two columns alike: Spark could not read its files."""
    lowered = [column.lower() for column in bound.query.columns]
    twice = next((column for column in lowered if lowered.count(column) > 1), None)
    if twice is None:
        return None
    return QueryError(
        f"two columns are called {twice}, which a file cannot hold",
        text=bound.query.query.text,
        hint="give one of them an alias",
        query=bound.query.name,
    )


def first_plan(stream: Stream, wanted: Wanted, rows: DataFrame | None, technique: str) -> PlanRecord:
    """The plan for a stream that has no state yet; ``rows`` show what only the data can tell."""
    queries = [one.query for one in wanted.bound.values()]
    plan = build(stream.name, stream.event_time, queries, technique, stream.limits)
    sampled = rows is not None and bool(plan.queries)
    if rows is not None and sampled:
        plan = fitted(stream, plan, rows)
    members = [[query.name for query in grouping.queries] for grouping in plan.groupings]
    for names in members:
        names += [name for name, original in plan.same_as.items() if original in names]
    groupings: list[dict[str, Any]] = [
        {"id": f"g{number}", "queries": names, "conditional": grouping.conditional}
        for number, (names, grouping) in enumerate(zip(members, plan.groupings, strict=True))
    ]
    return PlanRecord(
        UNKEPT, wanted.texts, wanted.entries, groupings, next_id=len(groupings), technique=technique, sampled=sampled
    )


def fitted(stream: Stream, plan: Plan, rows: DataFrame) -> Plan:
    """The plan fitted to the data; queries that cannot be looked at stand apart, for the batch to leave out by name."""
    by_name = {query.name: query for query in plan.queries}

    def of(names: Iterable[str]) -> Plan:
        queries = [by_name[name] for name in names]
        return build(plan.stream, plan.event_time, queries, plan.technique, plan.limits)

    try:
        return adapt(plan, rows)
    except Exception as error:
        control = control_of(stream, lambda: rows)
        stopped = blamed(list(by_name), error, lambda names: look(of(names), rows), control)
    try:
        good = adapt(of(name for name in by_name if name not in stopped), rows)
    except Exception as error:
        if fault(error) is None:
            raise
        return plan  # they stop each other: the batch will find out
    bad = of(name for name in by_name if name in stopped)
    return replace(plan, groupings=(*good.groupings, *bad.groupings))


def live_plan(stream: Stream, record: PlanRecord, bound: Mapping[str, Bound]) -> LivePlan:
    """The plan that a record stands for."""
    same_as: dict[str, str] = {}
    groupings = []
    for described in record.groupings:
        original: dict[Any, BoundQuery] = {}
        kept = []
        for name in described["queries"]:
            query = bound[name].query
            question = (replace(query.query, name=""), query.columns, record.first.get(name))
            first = original.setdefault(question, query)
            if first is query:
                kept.append(query)
            else:
                same_as[name] = first.name
        grouping = join([Grouping((), tuple(kept))])
        groupings.append(replace(grouping, conditional=described["conditional"]))
    queries = tuple(query for grouping in groupings for query in grouping.queries)
    plan = Plan(
        stream.name, stream.event_time, queries, tuple(groupings), same_as, record.technique, limits=stream.limits
    )
    if not groupings:
        return LivePlan(record, plan, bound, {}, Packing((), ()))
    with slices(stream.empty, plan) as cut:
        packing = Packing.of(cut.frame)
        types = {item.name: arrow_type(item.dataType) for item in cut.frame.schema}
    # slices of a micro-batch are few, and are merged with the retained ones anyway: once in every map task will do
    live = LivePlan(record, replace(plan, ordered=True), bound, {}, packing)
    schemas = {}
    for id, names in live.names.items():
        typed = [pa.field(name, types[slot]) for slot, name in names.items()]
        schemas[id] = pa.schema([*typed, pa.field(END, pa.int64())])
    return replace(live, schemas=schemas)


def without(record: PlanRecord, names: Collection[str]) -> PlanRecord:
    """The same plan without some queries; one that loses any has no version until it is kept."""
    if record.queries.keys().isdisjoint(names):
        return record
    groupings = [
        {**one, "queries": left}
        for one in record.groupings
        if (left := [name for name in one["queries"] if name not in names])
    ]
    return replace(
        record,
        version=UNKEPT,
        queries=_others(record.queries, names),
        entries=_others(record.entries, names),
        groupings=groupings,
        first=_others(record.first, names),
    )


def _others(known: Mapping[str, Value], names: Collection[str]) -> dict[str, Value]:
    return {name: value for name, value in known.items() if name not in names}
