"""Edges as progressions: the papers' examples and the algebra of containment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.slicing.progression import (
    Progression,
    composite,
    composite_slide,
    contains,
    edges_between,
    prune,
)
from weft.slicing.time_window import TimeWindow, may_nest

windows = st.builds(TimeWindow, range=st.integers(1, 60), slide=st.integers(1, 30), start=st.integers(0, 30))
progressions = st.lists(st.builds(Progression, st.integers(1, 12), st.integers(0, 20)), min_size=1, max_size=6)


def test_example_2_of_weave_share_has_eight_edges_in_eighteen_seconds():
    edges = composite([TimeWindow(12, 9), TimeWindow(10, 6)])
    assert composite_slide(edges) == 18
    assert edges_between(edges, 0, 18) == [3, 4, 6, 9, 10, 12, 16, 18]


def test_end_alignment_puts_the_fragments_in_the_other_order():
    assert edges_between(TimeWindow(7, 5).edges(), 0, 5) == [2, 5]
    assert edges_between(TimeWindow(7, 5).edges("end"), 0, 5) == [3, 5]


def test_a_range_that_is_a_multiple_of_the_slide_has_one_progression():
    assert TimeWindow(12, 4, start=1).edges() == (Progression(4, 1),)


def test_a_step_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        Progression(0)


@given(windows, st.sampled_from(["start", "end"]))
def test_edges_are_exactly_where_windows_start_and_end(window, alignment):
    starts = {window.start + k * window.slide for k in range(-90, 90)}
    if alignment == "end":
        starts = {start - window.range for start in starts}
    expected = {at for start in starts for at in (start, start + window.range) if 0 < at <= 60}
    assert edges_between(window.edges(alignment), 0, 60) == sorted(expected)


@given(progressions)
def test_pruning_keeps_all_edges_and_is_deterministic(edges):
    pruned = prune(edges)
    assert edges_between(pruned, 0, 500) == edges_between(edges, 0, 500)
    assert pruned == prune(reversed(edges)) == tuple(sorted(pruned))
    assert len(prune(pruned)) == len(pruned)


@given(progressions, st.builds(Progression, st.integers(1, 12), st.integers(0, 20)))
def test_contains_says_whether_every_edge_is_there_already(finer, coarser):
    period = composite_slide([*finer, coarser])
    expected = set(edges_between([coarser], 0, period)) <= set(edges_between(finer, 0, period))
    assert contains(finer, coarser) is expected
    assert contains(finer, finer)


@given(windows, windows)
def test_windows_that_nest_are_never_told_not_to(finer, coarser):
    if contains(finer.edges(), coarser.edges()):
        assert may_nest(finer, coarser)
