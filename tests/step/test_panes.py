"""Slices of trees: the last edge before each, however it is found."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.slicing.progression import Progression
from weft.step.panes import last_edges

progressions = st.lists(st.builds(Progression, st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=5)
starts = st.lists(st.integers(-500, 500), min_size=1, max_size=200)


@given(starts, progressions)
def test_the_last_edge_is_the_same_whether_it_is_looked_up_or_computed(
    instants: list[int], edges: list[Progression]
) -> None:
    found = last_edges(np.array(instants), edges).tolist()
    assert found == [max(start - (start - edge.offset) % edge.step for edge in edges) for start in instants]
