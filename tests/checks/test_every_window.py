"""Every kind of window passes the generic checks, in every shape that it knows."""

from __future__ import annotations

import pytest

from weft.checks import Check, checks_of_windows
from weft.slicing.time_window import TimeWindow

WINDOWS = [
    *(TimeWindow(range, slide, start) for range, slide in ((1, 1), (5, 5), (30, 10), (35, 10)) for start in (0, 3)),
    *(TimeWindow(range, slide, start) for range, slide in ((3, 10), (7, 5), (12, 9), (1, 7)) for start in (0, 4)),
]
"""Tumbling, sliding, with fragments and with gaps."""


@pytest.mark.parametrize("check", checks_of_windows(WINDOWS), ids=str)
def test_every_window(check: Check[[]]) -> None:
    check()
