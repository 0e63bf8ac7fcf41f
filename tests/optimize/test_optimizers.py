"""Every optimizer: golden numbers, honest costs, and none better than the optimum."""

from collections import Counter
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import WeftError
from weft.optimize import loom, optimize
from weft.optimize.entry import items_of
from weft.optimize.omega import TechniqueCode, overlap
from weft.optimize.registry import NAMES, NODE_OPTIMIZERS, OPTIMIZERS
from weft.optimize.workload import Workload
from weft.slicing.edge_rate import MICROSECONDS, edge_rate
from weft.slicing.progression import composite
from weft.slicing.time_window import TimeWindow

EXAMPLE_3 = [("a", (16, 4)), ("b", (10, 5)), ("c", (8, 4))]
SINGLE = tuple(name for name in ("no-share", *OPTIMIZERS) if name != "tri-weave")


def seconds(windows):
    return [(name, TimeWindow(length * MICROSECONDS, slide * MICROSECONDS)) for name, (length, slide) in windows]


windows = st.builds(
    lambda slide, overlap: TimeWindow(max(1, round(overlap * slide)) * MICROSECONDS, slide * MICROSECONDS),
    st.integers(1, 90),
    st.floats(0.5, 12),
)


def recomputed(forest, questions, rate, alignment="start"):
    """The cost of a forest from its queries alone, by the papers' formulas."""
    by_name = dict(questions)
    every = edge_rate(composite(by_name.values(), alignment), budget=10**7).per_second
    total = rate if forest.levels == 3 else 0.0
    for tree in forest.trees:
        its = [by_name[name] for name in tree.queries]
        edges = edge_rate(composite(its, alignment), budget=10**7).per_second
        ranges = sorted({window.range for window in its})
        technique = TechniqueCode.named(tree.technique)
        plain = sum(one.overlap for one in its)
        if technique is TechniqueCode.BULK:
            plain = len({frozenset(one.edges(alignment)) for one in its})
        per_edge = overlap(technique, plain, ranges, edges / MICROSECONDS)
        total += (every if forest.levels == 3 else rate) + edges * per_edge
    return total


@pytest.mark.parametrize(
    ("optimizer", "cost"),
    [("no-share", 5.5), ("weave-share", 4.3), ("shared", 4.4), ("weft", 4.3), ("exhaustive", 4.3)],
)
def test_example_3_of_weave_share(optimizer, cost):
    forest = optimize(seconds(EXAMPLE_3), rate=1.2, optimizer=optimizer, model="two-level")
    assert forest.cost == pytest.approx(cost, abs=1e-12)


def test_weave_share_weaves_a_with_c_and_leaves_b_alone():
    forest = optimize(seconds(EXAMPLE_3), rate=1.2, optimizer="weave-share", model="two-level")
    assert sorted(tree.queries for tree in forest.trees) == [("a", "c"), ("b",)]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(windows, min_size=1, max_size=8),
    st.sampled_from(NAMES),
    st.sampled_from([0.01, 1.0, 30.0, 1000.0]),
    st.sampled_from(["two-level", "three-level"]),
    st.sampled_from(list(TechniqueCode)),
    st.sampled_from([1, 3]),
    st.sampled_from(["start", "end"]),
)
def test_every_query_is_in_one_tree_and_costs_are_what_the_formulas_give(
    windows, optimizer, rate, model, technique, nodes, alignment
):
    questions = [(f"q{number}", window) for number, window in enumerate(windows)]
    forest = optimize(
        questions, rate, optimizer, model=model, technique=technique.label, nodes=nodes, alignment=alignment
    )
    assert Counter(name for tree in forest.trees for name in tree.queries) == Counter(name for name, _ in questions)
    assert forest.cost == pytest.approx(recomputed(forest, questions, rate, alignment), rel=1e-9)
    assert forest.cost == pytest.approx(forest.shared_cost + sum(tree.cost for tree in forest.trees))
    assert forest.max_cost <= forest.cost * (1 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(windows, min_size=1, max_size=9),
    st.sampled_from([0.05, 1.0, 30.0, 1000.0]),
    st.sampled_from(["two-level", "three-level"]),
    st.sampled_from([TechniqueCode.PANES, TechniqueCode.FLATFAT, TechniqueCode.SLICKDEQUE_NONINV]),
)
def test_no_optimizer_beats_the_exhaustive_one(windows, rate, model, technique):
    questions = [(f"q{number}", window) for number, window in enumerate(windows)]

    def cost(optimizer):
        return optimize(questions, rate, optimizer, model=model, technique=technique.label).cost

    optimum = cost("exhaustive")
    for optimizer in (*SINGLE, *NODE_OPTIMIZERS):
        assert cost(optimizer) >= optimum * (1 - 1e-9), optimizer


def test_ours_is_within_one_percent_of_the_optimum_and_never_worse_than_weave_share():
    excess = []
    for seed in range(60):
        questions = Workload(9, 60, 8, zipf=0.5, real_overlap=bool(seed % 2), seed=seed).questions()
        rate = (0.5, 5.0, 50.0)[seed % 3]
        costs = {
            name: optimize(questions, rate, name, model="two-level").cost
            for name in ("exhaustive", "weave-share", "weft")
        }
        assert costs["weft"] <= costs["weave-share"] * (1 + 1e-12)
        excess.append(costs["weft"] / costs["exhaustive"] - 1)
    assert mean(excess) < 0.01


@pytest.mark.parametrize(("real", "rate"), [(False, 300.0), (True, 1.0), (True, 50.0)])
def test_ours_is_never_worse_than_weave_share_on_many_queries(real, rate):
    items = items_of(Workload(250, 400, 20, zipf=0.6, real_overlap=real, seed=5).questions())
    woven = optimize(items, rate, "weave-share", model="two-level")
    assert optimize(items, rate, "weft", model="two-level").cost <= woven.cost
    assert woven.cost <= optimize(items, rate, "shared", model="two-level").cost
    assert woven.cost <= optimize(items, rate, "no-share", model="two-level").cost


def test_equal_edges_are_one_item_however_many_queries_have_them():
    questions = Workload(5_000, 30, 10, seed=2).questions()
    items = items_of(questions)
    assert len(items) == len({window.slide for _, window in questions})
    forest = optimize(questions, 1.0, "weave-share", model="two-level")
    assert sum(len(tree.queries) for tree in forest.trees) == 5_000


def test_more_items_than_the_horizon_holds_are_planned_with_guaranteed_rates():
    questions = Workload(400, 1000, 10, real_overlap=True, seed=3).questions()
    forest = optimize(questions, 200.0, "weave-share", model="two-level")
    assert not forest.exact
    for tree in forest.trees:
        assert tree.edge_rate.low <= tree.edge_rate.value <= tree.edge_rate.high


@pytest.mark.parametrize(("rate", "more"), [(0.002, 1e-3), (1.0, 2e-3)])
def test_bounds_and_glances_cost_hardly_more_than_plain_weave_share(monkeypatch, rate, more):
    items = items_of(Workload(1000, 1000, 10, zipf=0.5, real_overlap=True, seed=1).questions())
    plain = optimize(items, rate, "weave-share", model="two-level").cost
    monkeypatch.setattr(loom, "_bits", lambda _: loom._FEWEST_BITS)  # as with twenty thousand items
    monkeypatch.setattr(loom, "_GLANCE_FROM", 0)
    assert optimize(items, rate, "weave-share", model="two-level").cost == pytest.approx(plain, rel=more)


def test_slides_that_are_no_whole_seconds_are_planned_on_their_own_sparse_horizon():
    questions = [(f"q{step}", TimeWindow(3 * step, step)) for step in range(999_983, 1_000_083, 5)]
    forest = optimize(questions, 5.0, "weave-share", model="two-level")
    assert forest.exact
    assert forest.cost <= optimize(questions, 5.0, "no-share", model="two-level").cost


def test_equal_seeds_give_equal_forests():
    items = items_of(Workload(60, 100, 10, seed=1).questions())
    assert optimize(items, 3.0, "random", seed=4) == optimize(items, 3.0, "random", seed=4)
    assert optimize(items, 3.0, "random", seed=4) != optimize(items, 3.0, "random", seed=5)


def test_bad_requests_say_what_would_be_right():
    query = seconds(EXAMPLE_3)
    with pytest.raises(WeftError, match="did you mean weave-share"):
        optimize(query, 1.0, "weaveshare")
    with pytest.raises(WeftError, match="rate must be positive"):
        optimize(query, 0.0)
    with pytest.raises(WeftError, match="no queries"):
        optimize([], 1.0)
    with pytest.raises(WeftError, match="at most 12 items"):
        optimize(Workload(60, 100, 10).questions(), 1.0, "exhaustive")
    with pytest.raises(WeftError, match="at least one node"):
        optimize(query, 1.0, nodes=0)
    with pytest.raises(ValueError, match="no technique"):
        optimize(query, 1.0, technique="magic")
