"""Operation counts against theory: 004 Table 4, and what this library claims beyond it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft.evaluate import SlidingWindow

SIZE = 32
ITEMS = np.random.default_rng(7).permutation(SIZE * 14).astype(object)  # objects: nothing to compile


def counts(technique: str, ranges: list[int], aggregate: str = "max") -> tuple[float, int]:
    """Amortized and worst operations an item, once the window is full."""
    window = SlidingWindow(aggregate, ranges, technique, counting=True)
    window.push_many(ITEMS[: 2 * SIZE])
    before = window.operations[0]
    window.push_many(ITEMS[2 * SIZE :])
    return (window.operations[0] - before) / (len(ITEMS) - 2 * SIZE), window.operations[1]


@pytest.mark.parametrize(
    ("technique", "amortized", "worst"),
    [
        ("panes", SIZE - 1, SIZE - 1),
        ("flatfat", math.log2(SIZE), math.log2(SIZE)),
        ("b-int", 1 + math.log2(SIZE), 3 * math.log2(SIZE)),
        ("flatfit", 3, SIZE),
        ("twostacks", 3, SIZE + 1),
        ("twostacks-lite", 3, SIZE + 1),
        ("daba", 5, 8),
        ("daba-lite", 4, 6),
        ("slickdeque-noninv", 2, SIZE),
    ],
)
def test_one_range_stays_within_theory(technique: str, amortized: float, worst: float) -> None:
    measured, peak = counts(technique, [SIZE])
    assert measured <= amortized
    assert peak <= worst


@pytest.mark.parametrize(
    ("technique", "amortized"),
    [
        ("panes", SIZE * (SIZE - 1) / 2),
        ("flatfat", SIZE * math.log2(SIZE)),
        ("b-int", SIZE * math.log2(SIZE)),
        ("flatfit", SIZE - 1),
        ("twostacks", SIZE + 2),
        ("slickdeque-noninv", 2),
    ],
)
def test_all_ranges_at_once_stay_within_theory(technique: str, amortized: float) -> None:
    assert counts(technique, list(range(1, SIZE + 1)))[0] <= amortized


def test_inverse_techniques_take_two_operations_a_range() -> None:
    for technique, ranges in (("panes-inv", [SIZE]), ("slickdeque-inv", [SIZE]), ("slickdeque-inv", [3, 5, SIZE])):
        window = SlidingWindow("sum", ranges, technique, counting=True)
        window.push_many(np.arange(SIZE))
        before = window.operations[0]
        window.push_many(np.arange(1000))
        assert window.operations[0] - before == 2 * len(ranges) * 1000


def test_nothing_is_counted_unless_asked() -> None:
    window = SlidingWindow("max", [3], "twostacks")
    window.push_many(ITEMS[:10])
    assert window.operations == (0, 0)
