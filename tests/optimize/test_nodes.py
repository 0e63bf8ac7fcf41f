"""Many nodes: the thirteen optimizers, unequal capacities, replanning."""

import pytest

from weft.optimize import optimize, replan
from weft.optimize.items import items_of
from weft.optimize.registry import NODE_OPTIMIZERS
from weft.optimize.workload import Workload

ITEMS = items_of(Workload(250, 25, 100, zipf=1.0, seed=1).questions())
MORE = items_of(Workload(120, 200, 20, real_overlap=True, seed=4).questions())


def test_there_are_thirteen_by_the_names_of_the_paper():
    strategies = {"rand": "g w wg", "rr": "g w wg", "tl": "g w wg", "tn": "w wg", "i": "w wg"}
    expected = {f"{category}-{name}" for name, categories in strategies.items() for category in categories.split()}
    assert set(NODE_OPTIMIZERS) == expected
    assert len(expected) == 13


@pytest.mark.parametrize("optimizer", NODE_OPTIMIZERS)
def test_categories_keep_their_promise(optimizer):
    forest = optimize(ITEMS, 100.0, optimizer, model="two-level", nodes=4)
    trees_by_node = [sum(tree.node == node for tree in forest.trees) for node in range(4)]
    if optimizer.startswith("w-"):
        assert max(trees_by_node) <= 1
    if optimizer.startswith("g-"):
        assert len(forest.trees) == len(ITEMS)
    assert sum(len(tree.queries) for tree in forest.trees) == 250
    assert forest.max_cost == pytest.approx(max(forest.node_costs))


def test_weave_and_group_to_nodes_has_the_lowest_total_cost():
    costs = {name: optimize(ITEMS, 100.0, name, model="two-level", nodes=4).cost for name in NODE_OPTIMIZERS}
    assert costs["wg-tn"] == min(costs.values())


@pytest.mark.parametrize("optimizer", ["g-tl", "wg-tl", "wg-tn", "wg-i", "weft"])
def test_a_node_twice_as_fast_gets_about_twice_as_much(optimizer):
    forest = optimize(MORE, 0.05, optimizer, model="two-level", nodes=[2.0, 1.0, 1.0])
    fast, *slow = forest.node_costs
    assert fast / (sum(slow) / 2) == pytest.approx(2.0, rel=0.25)
    assert forest.max_load == pytest.approx(max(fast / 2, *slow))


def test_a_node_that_leaves_takes_only_its_own_trees_along():
    forest = optimize(MORE, 0.05, "weft", model="two-level", nodes=4)
    smaller = replan(forest, [1.0] * 3, kept=[0, None, 1, 2])
    number = {0: 0, 2: 1, 3: 2}
    moved = [
        old
        for old, new in zip(forest.trees, smaller.trees, strict=True)
        if old.node != 1 and number[old.node] != new.node
    ]
    assert {tree.node for tree in smaller.trees} == {0, 1, 2}
    assert len(moved) <= len(forest.trees) // 20
    fresh = optimize(MORE, 0.05, "weft", model="two-level", nodes=3)
    assert smaller.max_load <= 1.1 * fresh.max_load


def test_a_node_that_joins_gets_its_share_and_no_tree_moves_between_the_others():
    forest = optimize(MORE, 0.05, "weft", model="two-level", nodes=3)
    larger = replan(forest, [1.0] * 4)
    moved = [(old, new) for old, new in zip(forest.trees, larger.trees, strict=True) if old.node != new.node]
    assert {new.node for _, new in moved} == {3}
    assert 0 < len(moved) <= len(forest.trees) // 2
    assert larger.cost == pytest.approx(forest.cost)
    assert larger.max_load < 0.9 * forest.max_load


def test_nothing_moves_when_nothing_changes():
    forest = optimize(MORE, 0.05, "weft", model="two-level", nodes=3)
    assert replan(forest, [1.0] * 3) == forest
