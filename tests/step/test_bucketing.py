"""Slices that have to meet in one bucket do, wherever they were cut, and none is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weft.algebra.registry import AGGREGATES
from weft.optimize.planner import PlanRequest
from weft.optimize.planner import plan as planned
from weft.plan.forest import Tree
from weft.plan.model import BoundCall, BoundQuery, Plan
from weft.query.sparksql import parse_file
from weft.slicing.edge_rate import Rate
from weft.step.bucketing import Buckets, Bundle, bundled, unbundled
from weft.step.cutting import TIME, Cutter
from weft.step.parts import HASH

RATE = Rate(Fraction(1), Fraction(1))


def plan_of(*keys: str) -> Plan:
    """Counts by some keys, a query each."""
    groups = [", ".join(["window(ts, '1 second')", *([key] if key else [])]) for key in keys]
    texts = "\n".join(f"-- name: q{n}\nSELECT window, count(*) AS n FROM t GROUP BY {g};" for n, g in enumerate(groups))
    queries = []
    for query in parse_file(texts, {"t": ["ts", "k", "m"]}):
        calls = tuple(BoundCall(call, (), AGGREGATES["count"].kept(()), pa.int64()) for call in query.calls)
        kinds = tuple(pa.string() for _ in query.keys)
        queries.append(BoundQuery(query, calls, kinds, pa.timestamp("us", "UTC"), ("window", "n")))
    return planned(PlanRequest("t", "ts", queries)).plan


def cut(plan: Plan, rows: int, seed: int) -> dict[int, pa.Table]:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {TIME: rng.integers(0, 5_000_000, rows)}
    for grouping in plan.groupings:
        for name in grouping.key_columns:
            columns[name] = pa.array([f"k{value}" if value else None for value in rng.integers(0, 40, rows)])
    return Cutter(plan).cut(pa.table(columns)).tables


def bundles_of(plan: Plan, buckets: int, seed: int) -> list[Bundle]:
    """What tasks send, after the journey."""
    places = Buckets(plan, buckets)
    return [
        bundle
        for number, table in cut(plan, 500, seed).items()
        for bundle in unbundled(bundled(places.bundles(number, table)))
    ]


@pytest.mark.parametrize("buckets", (1, 3, 8))
def test_every_key_has_one_bucket_whichever_task_cut_it(buckets: int) -> None:
    plan = plan_of("k", "m", "")
    found: dict[tuple[int, Any], set[int]] = {}
    hashes: dict[tuple[int, Any], set[int]] = {}
    rows = 0
    for seed in (1, 2):
        for bundle in bundles_of(plan, buckets, seed):
            keys = plan.groupings[bundle.grouping].key_columns
            for row in bundle.slices.to_pylist():
                key = bundle.grouping, tuple(row[name] for name in keys)
                found.setdefault(key, set()).add(bundle.bucket)
                hashes.setdefault(key, set()).add(row[HASH])
                rows += 1
    assert rows == sum(len(table) for seed in (1, 2) for table in cut(plan, 500, seed).values())
    assert all(len(some) == 1 and some <= {*range(buckets)} for some in found.values())
    assert all(len(some) == 1 for some in hashes.values())
    if buckets > 1:
        assert len(set().union(*found.values())) == buckets


def test_slices_go_to_every_node_that_has_trees_for_them() -> None:
    plan = plan_of("k")
    (grouping,) = plan.groupings
    names = tuple(query.name for query in grouping.queries)
    trees = tuple(Tree(names, grouping.progressions, RATE, 1.0, 1.0, "auto", node) for node in (0, 2))
    placed = replace(plan, groupings=(replace(grouping, trees=trees, placed=True),), nodes=3)
    sent = bundles_of(placed, 6, 1)
    assert {(one.node, one.bucket // 2) for one in sent} == {(0, 0), (2, 2)}
    assert sum(len(one.slices) for one in sent) == 2 * len(cut(plan, 500, 1)[0])


def test_no_slices_are_no_bundles() -> None:
    plan = plan_of("k")
    assert list(unbundled(bundled(Buckets(plan, 2).bundles(0, cut(plan, 0, 1)[0])))) == []
