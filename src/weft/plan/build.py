"""Planning: a tuple of pure functions from plan to plan, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from weft.evaluate.registry import technique_named
from weft.evaluate.technique import TechniqueError
from weft.plan.model import BoundQuery, Grouping, Plan
from weft.query.limits import DEFAULT, Limits
from weft.query.model import Query
from weft.slicing.progression import composite

Stage = Callable[[Plan], Plan]


def equal_queries_become_one(plan: Plan) -> Plan:
    """Answer a question that several queries ask only once."""
    first: dict[Query, BoundQuery] = {}
    same_as: dict[str, str] = {}
    for bound in plan.queries:
        original = first.setdefault(replace(bound.query, name=""), bound)
        if original is not bound and original.columns == bound.columns:
            same_as[bound.name] = original.name
    kept = tuple(bound for bound in plan.queries if bound.name not in same_as)
    return replace(plan, queries=kept, same_as=same_as)


def group_by_keys(plan: Plan) -> Plan:
    """Put queries over the same set of keys together, whatever order they name them in.

    Those with an aggregate that Spark can only sort for stand apart, so that the others are hashed.
    """
    groups: dict[tuple[frozenset[str], bool], list[BoundQuery]] = {}
    for bound in plan.queries:
        hashed = all(call.hashed for call in bound.calls)
        groups.setdefault((frozenset(key.canonical for key in bound.query.keys), hashed), []).append(bound)
    return replace(plan, groupings=tuple(_grouping(queries) for queries in groups.values()))


def join(groupings: Sequence[Grouping]) -> Grouping:
    """One grouping that serves the queries of several: by all their keys, cut at all their edges."""
    return grouping_of([query for grouping in groupings for query in grouping.queries])


def grouping_of(queries: Sequence[BoundQuery]) -> Grouping:
    """One grouping that serves all of ``queries``."""
    joined = _grouping(queries)
    return replace(joined, progressions=composite(joined.windows))


def _grouping(queries: Sequence[BoundQuery]) -> Grouping:
    keys = dict.fromkeys(key for query in queries for key in query.query.keys)
    return Grouping(tuple(sorted(keys, key=lambda key: key.canonical)), tuple(queries))


def cut_at_all_edges(plan: Plan) -> Plan:
    """Cut each grouping at the edges of all its queries, and at no others."""
    return replace(
        plan,
        groupings=tuple(replace(grouping, progressions=composite(grouping.windows)) for grouping in plan.groupings),
    )


def check_technique(plan: Plan) -> Plan:
    """Refuse a technique that some aggregate's algebra does not allow, by the query's name and with the reason."""
    if plan.technique == "auto":
        return plan
    technique = technique_named(plan.technique)
    for query in plan.queries:
        for call in query.calls:
            for measure in call.recipe.measures:
                try:
                    technique.check(measure.monoid)
                except TechniqueError as error:
                    raise TechniqueError(f"query {query.name}, {call.call.function}: {error}") from None
    return plan


STAGES: tuple[Stage, ...] = (check_technique, equal_queries_become_one, group_by_keys, cut_at_all_edges)


def build(
    stream: str,
    event_time: str,
    queries: Iterable[BoundQuery],
    technique: str = "auto",
    limits: Limits = DEFAULT,
) -> Plan:
    """The plan of one shared pass over ``stream`` for all ``queries``."""
    plan = Plan(stream, event_time, tuple(queries), technique=technique, limits=limits)
    for stage in STAGES:
        plan = stage(plan)
    return plan
