"""A plan told to people: what is shared, and by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.algebra.monoid import Monoid
from weft.plan.cut_engine import CutEngine
from weft.plan.model import Grouping, Plan
from weft.plan.record import GroupingRecord
from weft.query.model import Query
from weft.slicing.progression import Progression

MOST_TREES, MOST_NAMES = 20, 6
UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))


def duration(microseconds: int) -> str:
    """A duration in the largest unit that divides it.

    Examples
    --------
    >>> duration(90_000_000), duration(120_000_000), duration(0)
    ('90 s', '2 min', '0 s')
    """
    if microseconds == 0:
        return "0 s"
    size, unit = next((size, unit) for size, unit in UNITS if microseconds % size == 0)
    return f"{microseconds // size} {unit}"


def explain(plan: Plan, cutting: Sequence[str] = ()) -> str:
    """What one pass over the stream shares; ``cutting`` tells who cuts rows into slices."""
    count = len(plan.queries) + len(plan.same_as)
    lines = [
        f"stream {plan.stream}: {count} {_plural(count, 'query', 'queries')} in one pass, "
        f"{len(plan.groupings)} {_plural(len(plan.groupings), 'grouping')}, "
        f"{len(plan.partials)} {_plural(len(plan.partials), 'partial')}, "
        f"{len(plan.predicates)} {_plural(len(plan.predicates), 'predicate')}"
    ]
    lines += [f"  {name} asks what {original} asks" for name, original in plan.same_as.items()]
    lines += [f"  {line}" for line in (*techniques(plan), *cutting)]
    for grouping in plan.groupings:
        lines += [""] + [f"  {line}" for line in _grouping(grouping)]
    return "\n".join(lines)


CUT_BY: Mapping[CutEngine, str] = {
    "jvm": "in the JVM, by Spark's own aggregation",
    "workers": "in the workers, by compiled kernels",
    "driver": "in this process, by compiled kernels",
}


def cutting(plan: Plan, cut: CutEngine, left: Mapping[int, str], why: str) -> list[str]:
    """Who cuts rows into slices, and why.

    Parameters
    ----------
    left
        The groupings that kernels cannot cut, by number, and why.
    """
    if not left:
        return [f"rows are cut {CUT_BY[cut]} ({why})"]
    lines = ["rows are cut in the JVM, by Spark's own aggregation, as compiled kernels cannot cut"]
    for number, reason in left.items():
        lines.append(f"  by {', '.join(key.sql for key in plan.groupings[number].keys) or 'no key'}: {reason}")
    return lines


def techniques(plan: Plan) -> list[str]:
    """Which technique each aggregate got, and why."""
    monoids: dict[str, tuple[Monoid, set[str]]] = {}
    for query in plan.queries:
        for call in query.calls:
            for measure in call.recipe.measures:
                monoids.setdefault(measure.monoid.name, (measure.monoid, set()))[1].add(call.call.function)
    lines = []
    for monoid, functions in monoids.values():
        name, why = (plan.technique, "as asked for") if plan.technique != "auto" else bulk_technique(monoid)
        lines.append(f"{', '.join(sorted(functions))} by {name}: {why}")
    return lines


def bulk_technique(monoid: Monoid) -> tuple[str, str]:
    """The bulk form that ``auto`` takes for many slices at once, and why."""
    if monoid.invertible:
        return "slickdeque-inv (prefix differences)", "it has an exact inverse"
    return "twostacks-lite (flips)", "it has no exact inverse, and nothing that left a window may leave a trace"


def explain_running(groupings: Sequence[GroupingRecord], queries: Mapping[str, Query]) -> str:
    """What the queries of a running stream share, as far as its record tells."""
    count = sum(len(one.queries) for one in groupings)
    lines = [
        f"{count} {_plural(count, 'query', 'queries')} in one pass, {len(groupings)} "
        f"{_plural(len(groupings), 'grouping')}"
    ]
    for one in groupings:
        keys = {key.canonical: key.sql for name in one.queries if name in queries for key in queries[name].keys}
        lines += ["", f"  {one.id} by {', '.join(keys.values()) or 'no key'}: " + _named(one.queries)]
        if one.cuts:
            lines.append("    cut at " + ", ".join(_edge(Progression(step, offset)) for step, offset in one.cuts))
        if one.conditional:
            lines.append("    predicates in the partials")
        if one.node is not None:
            lines.append(f"    on node {one.node}")
        for number, tree in enumerate(one.trees[:MOST_TREES], 1):
            lines.append(f"    tree {number}: {_named(tree.queries)}")
        if len(one.trees) > MOST_TREES:
            lines.append(f"    and {len(one.trees) - MOST_TREES} more trees")
    return "\n".join(lines)


def _named(names: Sequence[str]) -> str:
    """How many queries, and the first of them.

    Examples
    --------
    >>> _named(("a", "b"))
    '2 queries: a, b'
    """
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    return f"{len(names)} {_plural(len(names), 'query', 'queries')}: {shown}"


def _grouping(grouping: Grouping) -> list[str]:
    keys = ", ".join(key.sql for key in grouping.keys) or "no key"
    asked = sum(len(query.calls) for query in grouping.queries)
    uses: dict[str, int] = {}
    for query in grouping.queries:
        for call in query.calls:
            for partial in call.partials:
                for template in partial.measure.columns:
                    text = template.format(*(argument.sql for argument in partial.arguments))
                    uses[text] = uses.get(text, 0) + 1
    lines = [
        f"by {keys}: {len(grouping.queries)} {_plural(len(grouping.queries), 'query', 'queries')}, {asked} aggregates",
        f"  cut at {', '.join(_edge(progression) for progression in grouping.progressions)}",
    ]
    if grouping.predicates:
        how = "in the partials" if grouping.conditional else "as shards"
        lines.append(f"  {len(grouping.predicates)} {_plural(len(grouping.predicates), 'predicate')} {how}")
    lines += [f"  {text} for {count} {_plural(count, 'aggregate')}" for text, count in uses.items()]
    return lines + [f"  {line}" for line in _trees(grouping)]


def _trees(grouping: Grouping) -> list[str]:
    """The forest: who is woven with whom, and where each tree is answered."""
    if not grouping.trees:
        return []
    count = len(grouping.trees)
    lines = [f"{count} {_plural(count, 'tree')}" + (": rows are cut once for all of them" if count > 1 else "")]
    for number, tree in enumerate(grouping.trees[:MOST_TREES], 1):
        names = ", ".join(tree.queries[:MOST_NAMES]) + (", ..." if len(tree.queries) > MOST_NAMES else "")
        where = f" on node {tree.node}" if grouping.placed else ""
        slices = f"{tree.edge_rate.per_second:.4g} slices a second" + ("" if tree.edge_rate.exact else " or so")
        lines.append(f"  tree {number}{where}: {len(tree.queries)} queries, {slices}: {names}")
    if count > MOST_TREES:
        lines.append(f"  and {count - MOST_TREES} more")
    return lines


def _edge(progression: Progression) -> str:
    every = f"every {duration(progression.step)}"
    return every + (f" + {duration(progression.offset)}" if progression.offset else "")


def _plural(count: int, one: str, many: str | None = None) -> str:
    return one if count == 1 else many or f"{one}s"
