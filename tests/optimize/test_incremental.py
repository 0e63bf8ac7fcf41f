"""Incremental Weave Share: the forest follows, and is rebuilt when it drifted."""

import numpy as np
import pytest

from weft.optimize.cost import two_level
from weft.optimize.incremental import IncrementalWeaveShare
from weft.optimize.items import items_of
from weft.optimize.loom import Loom
from weft.optimize.omega import TechniqueCode
from weft.optimize.weave_share import weave_share
from weft.optimize.workload import Workload

ITEMS = items_of(Workload(150, 300, 20, zipf=0.5, seed=6).questions())


def loom(rate=2.0):
    return Loom(ITEMS, two_level(rate), TechniqueCode.PANES)


def grown(tolerance):
    forest = IncrementalWeaveShare(loom(), tolerance)
    for item in range(len(ITEMS)):
        forest.add(item)
        if forest.due:
            forest.reconstruct()
    return forest


def test_items_that_come_and_go_are_in_exactly_one_tree():
    forest = grown(tolerance=np.inf)
    for item in range(0, len(ITEMS), 3):
        forest.remove(item)
    present = sorted(item for tree in forest.partition for item in tree)
    assert present == [item for item in range(len(ITEMS)) if item % 3]


def test_without_reconstruction_none_happens_and_with_tolerance_at_each_doubling():
    assert grown(np.inf).reconstructions == 0
    assert grown(0.0).reconstructions >= 8


def test_less_tolerance_costs_more_comparisons_and_ends_nearer_to_weave_share():
    offline = loom()
    weave_share(offline, None)
    strict, loose = grown(0.05), grown(np.inf)
    assert strict.loom.comparisons > loose.loom.comparisons
    assert strict.loom.cost <= loose.loom.cost * (1 + 1e-9)
    assert strict.loom.cost == pytest.approx(offline.cost, rel=0.1)


def test_the_expected_cost_follows_the_last_slope_of_the_curve():
    forest = grown(np.inf)
    items, cost = len(ITEMS), forest.loom.cost
    forest.curve = [(items // 2, cost / 2), (items, cost)]
    assert forest.deviation == pytest.approx(0.0, abs=1e-9)
    forest.curve = [(items // 2, cost / 4), (items, cost / 2)]
    assert forest.deviation == pytest.approx(1.0)
    assert not forest.due  # no tolerance is exceeded if it is infinite
    forest.tolerance = 0.2
    assert forest.due


def test_a_removed_item_leaves_nothing_behind():
    forest = IncrementalWeaveShare(loom())
    forest.add(3)
    forest.remove(3)
    assert forest.partition == []
    assert not forest.due
