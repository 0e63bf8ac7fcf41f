"""004 Table 1: partials per window by panes, pairs and cutty."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from weft.slicing import partials


@given(size=st.integers(1, 10**6), slide=st.integers(1, 10**4))
def test_partials_per_window_follow_table_1(size: int, slide: int) -> None:
    if size % slide == 0:
        assert {cut(size, slide) for cut in (partials.panes, partials.pairs, partials.cutty)} == {size // slide}
    else:
        assert partials.panes(size, slide) == size // math.gcd(size, slide)
        assert partials.pairs(size, slide) == 2 * (size // slide) + 1
        assert partials.cutty(size, slide) == math.ceil(size / slide)


@given(size=st.integers(1, 10**6), slide=st.integers(1, 10**4))
def test_each_newer_way_of_cutting_needs_no_more_partials(size: int, slide: int) -> None:
    assert partials.cutty(size, slide) <= partials.pairs(size, slide)
    if size >= slide:
        assert partials.pairs(size, slide) <= partials.panes(size, slide)
