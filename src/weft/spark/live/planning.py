"""Plans of a stream: made from the queries' texts and a record of who shares slices with whom, the same every time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from weft.catalog.seeding import own_sql
from weft.errors import QueriesError, QueryError
from weft.job import live_plan
from weft.optimize.planner import Draft, PlanRequest, plan
from weft.plan.record import PlanRecord, restored
from weft.query.limits import Limits
from weft.query.sparksql import parse_file
from weft.spark.bind import Bound, Stream, bind
from weft.spark.culprits import blamed, control_of
from weft.spark.failures import fault
from weft.spark.fetching import arrow_type
from weft.spark.rows import slices
from weft.spark.sample import look
from weft.step.retained import END, START

LivePlan = live_plan.LivePlan[Bound]
"""The plan of a stream whose queries have the schemas that Spark gives them."""


def bind_all(stream: Stream, texts: Mapping[str, str]) -> tuple[dict[str, Bound], dict[str, QueryError]]:
    """Queries bound to the stream, and what is wrong with the others, by their names."""
    columns = {stream.name: tuple(stream.rows.columns)}
    queries, errors = [], {}
    for name, text in texts.items():
        try:
            (query,) = parse_file(own_sql(text), columns, functions=stream.functions)
        except QueriesError as error:
            errors[name] = error.errors[0]
            errors[name].query = name
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
    slices = bound.query.window.slices
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


def first_plan(stream: Stream, asked: PlanRequest, rows: DataFrame | None) -> PlanRecord:
    """The plan for a stream that has no state yet; ``rows`` show what only the data can tell.

    Queries that cannot be looked at stand apart, for the batch to leave them out by name.
    """
    if rows is None or not asked.queries:
        return recorded(plan(asked))
    by_name = {query.name: query for query in asked.queries}
    seeing = replace(asked, look=lambda drafted: look(drafted, rows))

    def of(names: Iterable[str]) -> PlanRequest:
        return replace(seeing, queries=[by_name[name] for name in names])

    try:
        return recorded(plan(seeing))
    except Exception as error:
        stopped = blamed(list(by_name), error, lambda names: plan(of(names)), control_of(stream, lambda: rows))
    try:
        good = plan(of(name for name in by_name if name not in stopped))
    except Exception as error:
        if fault(error) is None:
            raise
        return recorded(plan(asked))  # they stop each other: the batch will find out
    bad = plan(replace(of(stopped), look=None))
    return recorded(good).beside(recorded(bad))


def recorded(draft: Draft) -> PlanRecord:
    """The record of a plan that is made."""
    assert draft.record is not None
    return draft.record


def restored_plan(stream: Stream, record: PlanRecord, bound: Mapping[str, Bound]) -> LivePlan:
    """The plan that a record stands for."""
    queries = {name: one.query for name, one in bound.items()}
    made = restored(stream.name, stream.event_time, record, queries, stream.limits)
    ids = tuple(one.id for one in record.groupings)
    if not made.groupings:
        return LivePlan(made, ids, record=record, bound=bound)
    with slices(stream.empty, made) as cut:
        types = {item.name: arrow_type(item.dataType) for item in cut.frame.schema}
    # slices of a micro-batch are few, and are merged with the retained ones anyway: once in every map task will do
    live = LivePlan(replace(made, ordered=True), ids, first=record.first, record=record, bound=bound)
    schemas = {}
    for id, names in live.names.items():
        starts = live.groupings[id].slice_column
        typed = [pa.field(START if name == starts else name, types[slot]) for slot, name in names.items()]
        schemas[id] = pa.schema([*typed, pa.field(END, pa.int64())])
    return replace(live, schemas=schemas)
