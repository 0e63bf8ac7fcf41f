"""Groupings woven into forests, spread over nodes, and what a run of them comes to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from weft.optimize.constants import Constants
from weft.optimize.nodes.spread import spread
from weft.optimize.weaving import Seen, Weaving, home_of, nested, one_tree, simply_cut, weave
from weft.optimize.work import Rows, work_of, work_of_run
from weft.plan.build import grouping_of
from weft.plan.model import BoundQuery, Grouping
from weft.query.sparksql import parse_file
from weft.slicing.progression import Progression, contains

SEEN = Seen(rate=1000.0, groups=50.0)


def grouping(*windows: tuple[int, int]) -> Grouping:
    """Queries without aggregates over windows of so many seconds, as (range, slide)."""
    selects = [
        f"SELECT window, count(*) FROM s GROUP BY window(ts, '{length} seconds', '{slide} seconds')"
        for length, slide in windows
    ]
    bound = [BoundQuery(query, (), (), pa.timestamp("us"), ()) for query in parse_file(";".join(selects))]
    return grouping_of(bound)


MIXED = grouping((7, 7), (14, 7), (11, 11), (13, 13), (26, 13), (60, 20), (65, 20))


def names(woven: tuple[Grouping, ...]) -> Counter[str]:
    return Counter(name for one in woven for tree in one.trees for name in tree.queries)


@pytest.mark.parametrize("optimizer", ["weft", "weave-share", "random", "no-share", "shared"])
@pytest.mark.parametrize("model", ["two-level", "three-level", "calibrated"])
def test_every_query_is_in_one_tree_that_cuts_at_its_edges(optimizer: str, model: str) -> None:
    woven = weave(MIXED, SEEN, Weaving(optimizer, model))  # type: ignore[arg-type]
    assert names(woven) == Counter(query.name for query in MIXED.queries)
    for one in woven:
        assert set(names((one,))) == {query.name for query in one.queries}
        for query in one.queries:
            assert contains(one.tree_of[query.name].progressions, query.query.window.edges())


def test_two_levels_make_a_grouping_of_every_tree_and_three_levels_one_of_all() -> None:
    two = weave(MIXED, SEEN, Weaving("no-share", "two-level"))
    three = weave(MIXED, SEEN, Weaving("no-share", "three-level"))
    assert [len(one.trees) for one in two] == [1] * len(MIXED.queries)
    assert [len(one.trees) for one in three] == [len(MIXED.queries)]
    assert three[0].progressions == MIXED.progressions


def test_windows_that_nest_are_one_tree_without_a_search() -> None:
    nesting = grouping((10, 5), (60, 10), (300, 60))
    assert nested(nesting)
    assert not nested(MIXED)
    (woven,) = weave(nesting, SEEN, Weaving())
    assert [len(tree.queries) for tree in woven.trees] == [3]


def test_dear_merges_make_trees_and_dear_rows_make_one_cut() -> None:
    many = grouping(*((slide, slide) for slide in range(31, 61)))
    dear_merges = weave(many, SEEN, Weaving(constants=Constants(pane=1e-4, row=1e-9, slice=1e-9)))
    assert sum(len(one.trees) for one in dear_merges) > 1
    dear_rows = weave(many, SEEN, Weaving(constants=Constants(row=1e-3)))
    assert len(dear_rows) == 1


def test_a_tree_too_large_for_a_node_is_divided_so_that_all_nodes_have_work() -> None:
    whole = replace(MIXED, trees=(one_tree(MIXED),))
    (placed,) = spread([whole], [1.0, 1.0, 1.0])
    assert placed.nodes == (0, 1, 2)
    assert names((placed,)) == Counter(query.name for query in MIXED.queries)
    sizes = Counter(tree.node for tree in placed.trees for _ in tree.queries)
    assert max(sizes.values()) - min(sizes.values()) <= 1


def test_a_faster_node_gets_more() -> None:
    (woven,) = weave(MIXED, SEEN, Weaving("no-share", "three-level"))
    (placed,) = spread([woven], [3.0, 1.0])
    sizes = Counter(tree.node for tree in placed.trees)
    assert sizes[0] > sizes[1]


def test_slices_are_counted_as_far_as_there_are_rows_to_fill_them() -> None:
    tumbling = grouping((10, 10))
    dense, sparse = Rows(1e6, 1000, groups=5), Rows(100, 1000, groups=5)
    assert work_of(tumbling, dense).slice == pytest.approx(500)
    assert work_of(tumbling, sparse).slice == pytest.approx(500 * (1 - 2.718281828 ** -(100 / 500)))
    assert work_of(tumbling, sparse).answer <= 505


def test_rows_are_read_once_and_cut_once_for_each_grouping() -> None:
    trees = weave(MIXED, SEEN, Weaving("no-share", "two-level"))
    rows = Rows(1e5, 1000, groups=5)
    work = work_of_run(trees, [rows] * len(trees))
    assert (work.step, work.read, work.row) == (1, 1e5, 1e5 * len(trees))
    assert work.query == len(MIXED.queries)


def test_a_new_query_is_woven_into_the_tree_that_it_saves_most_with() -> None:
    (new,) = grouping((42, 21)).queries
    trees = [grouping((11, 11), (13, 13)), grouping((7, 7), (21, 7))]
    assert home_of(new, trees, SEEN, Constants()) == 1, "its edges are there"
    assert home_of(new, trees[:1], SEEN, Constants(row=1e-3)) == 0, "rows are not cut once more"
    assert home_of(new, [], SEEN, Constants()) is None


def test_a_new_query_that_would_cost_the_others_more_than_it_saves_is_a_tree_of_its_own() -> None:
    (new,) = grouping((1, 1)).queries
    many = grouping(*((slide, slide) for slide in range(31, 61)))
    assert home_of(new, [many], SEEN, Constants(pane=1e-4, row=1e-9, slice=1e-9)) is None


def test_rows_are_cut_at_every_second_where_nearly_every_second_is_an_edge_and_edges_are_dear() -> None:
    dense = grouping(*((slide, slide) for slide in range(2, 40)))
    tree = replace(dense, trees=(one_tree(dense),))
    dear_edges = Constants(edge=1e-6)
    simple = simply_cut(tree, SEEN, dear_edges)
    assert simple.progressions == simple.trees[0].progressions == (Progression(1_000_000),)
    sparse = grouping(*((slide, slide) for slide in range(1001, 1040)))
    whole = replace(sparse, trees=(one_tree(sparse),))
    assert simply_cut(whole, SEEN, Constants(slice=1e-3)) == whole
