"""Parts of planning that need to see no data: pure functions from plan to plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from weft.evaluate.registry import technique_named
from weft.evaluate.technique import TechniqueError
from weft.plan.model import BoundQuery, Grouping, Plan
from weft.slicing.progression import composite


def equal_queries_become_one(plan: Plan) -> Plan:
    """Answer a question that several queries ask only once."""
    same_as = answered_by_others(plan.queries)
    kept = tuple(bound for bound in plan.queries if bound.name not in same_as)
    return replace(plan, queries=kept, same_as=same_as)


def answered_by_others(queries: Iterable[BoundQuery], first: Mapping[str, int] | None = None) -> dict[str, str]:
    """Names of queries that ask what an earlier one asks, and that one's name.

    Parameters
    ----------
    first
        By a query's name: when its first window may start, where it came after the stream had begun.
    """
    originals: dict[object, str] = {}
    same_as: dict[str, str] = {}
    for bound in queries:
        since = None if first is None else first.get(bound.name)
        question = (replace(bound.query, name=""), bound.columns, bound.window, since)
        original = originals.setdefault(question, bound.name)
        if original != bound.name:
            same_as[bound.name] = original
    return same_as


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
