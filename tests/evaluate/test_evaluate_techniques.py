"""Techniques against a naive oracle: compiled, with a user's own merge, by bounds. All aggregates: tests/checks."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.algebra.monoids import MONOIDS
from weft.evaluate import TECHNIQUES, SlidingWindow, slide, string_agg, user_defined
from weft.evaluate.window import Items

Oracle = Callable[[Sequence[Any]], Any]


def largest(window: Sequence[float]) -> float:
    return math.nan if any(value != value for value in window) else max(window)


def smallest(window: Sequence[float]) -> float:
    return min((value for value in window if value == value), default=math.nan)


ORACLES: dict[str, Oracle] = {
    "sum": lambda window: functools.reduce(lambda older, newer: older + newer, window),
    "count": len,
    "avg": statistics.fmean,
    "max": largest,
    "min": smallest,
    "first": lambda window: window[0],
    "last": lambda window: window[-1],
    "concat": "".join,
    "bit_and": lambda window: functools.reduce(lambda older, newer: older & newer, window),
    "bit_or": lambda window: functools.reduce(lambda older, newer: older | newer, window),
    "bit_xor": lambda window: functools.reduce(lambda older, newer: older ^ newer, window),
    "var_pop": statistics.pvariance,
}


def naive(oracle: Oracle, items: Sequence[Any], ranges: Sequence[int]) -> list[list[Any]]:
    """One row an item, one answer a range."""
    return [[oracle(items[max(0, end - size) : end]) for size in ranges] for end in range(1, len(items) + 1)]


few_examples = settings(max_examples=12, deadline=None)
some_ranges = st.lists(st.integers(1, 20), min_size=1, max_size=4)
integers = st.lists(st.integers(-100, 100), max_size=60)
doubles = st.lists(st.sampled_from([-math.inf, -2.5, 0.0, 1.0, 1e16, math.inf, math.nan]), max_size=60)
letters = st.lists(st.sampled_from("abcde"), max_size=60)

longest_word = user_defined("longest", merge=lambda a, b: a if len(a) >= len(b) else b, identity="", selective=True)
counted_mean = user_defined(
    "mean",
    lift=lambda x: (x, 1),
    merge=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    invert=lambda total, oldest: (total[0] - oldest[0], total[1] - oldest[1]),
    identity=(0, 0),
    lower=lambda partial: partial[0] / partial[1],
    commutative=True,
)


def techniques(*, invertible: bool = False, selective: bool = False) -> list[str]:
    """Those that such an aggregate may take."""
    allowed = {"invertible": invertible, "selective": selective}
    return [name for name, technique in TECHNIQUES.items() if all(allowed[need] for need in technique.requires)]


def check(aggregate: Any, oracle: str, technique: str, items: Items, ranges: list[int]) -> None:
    window = SlidingWindow(aggregate, ranges, technique)
    answers = window.push_many(items)
    expected = naive(ORACLES[oracle], items, ranges)
    assert answers.shape == (len(items), len(ranges))
    if len(items):
        assert window.technique == technique
    for row, expected_row in zip(answers.tolist(), expected, strict=True):
        assert row == pytest.approx(expected_row, nan_ok=True) if isinstance(row[0], float) else row == expected_row


# Compiled kernels for one exact sum, one selective operation with NaN and, below, one of two columns that does not
# commute; the rest of the algebra runs through the same templates as Python objects, which costs no compilation.


@pytest.mark.parametrize("technique", techniques(invertible=True))
@given(items=integers, ranges=some_ranges)
@few_examples
def test_compiled_integer_sums(technique: str, items: list[int], ranges: list[int]) -> None:
    check("sum", "sum", technique, items, ranges)


@pytest.mark.parametrize("technique", techniques(selective=True))
@given(items=doubles, ranges=some_ranges)
@few_examples
def test_compiled_maxima_of_doubles_with_nan_largest(technique: str, items: list[float], ranges: list[int]) -> None:
    check("max", "max", technique, items, ranges)


@pytest.mark.parametrize("technique", techniques())
@given(items=letters, ranges=some_ranges)
@few_examples
def test_joined_strings_keep_the_order(technique: str, items: list[str], ranges: list[int]) -> None:
    answers = SlidingWindow(string_agg(","), ranges, technique).push_many(items)
    assert answers.tolist() == naive(",".join, items, ranges)


@pytest.mark.parametrize("technique", techniques(invertible=True))
@given(items=st.lists(st.integers(2**70, 2**70 + 100), max_size=60), ranges=some_ranges)
@few_examples
def test_a_users_exact_inverse_over_python_integers(technique: str, items: list[int], ranges: list[int]) -> None:
    answers = SlidingWindow(counted_mean, ranges, technique).push_many(items)
    assert answers.tolist() == naive(lambda window: sum(window) / len(window), items, ranges)


@pytest.mark.parametrize("technique", techniques(selective=True))
@given(items=st.lists(st.text("xy", max_size=4), max_size=60), ranges=some_ranges)
@few_examples
def test_a_users_selective_merge(technique: str, items: list[str], ranges: list[int]) -> None:
    answers = SlidingWindow(longest_word, ranges, technique).push_many(items)
    assert answers.tolist() == naive(lambda window: max(window, key=len), items, ranges)


@pytest.mark.parametrize("name", ["avg", "count", "min", "last", "bit_and", "bit_or", "bit_xor", "var_pop"])
@given(items=integers, ranges=some_ranges)
@few_examples
def test_auto_answers_every_aggregate(name: str, items: list[int], ranges: list[int]) -> None:
    answers = SlidingWindow(name, ranges).push_many(items)
    for row, expected in zip(answers.tolist(), naive(ORACLES[name], items, ranges), strict=True):
        assert row == pytest.approx(expected)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Items and windows over them, neither bound ever falling: what the Spark engine asks for."""
    items = draw(integers)
    ends = sorted(draw(st.lists(st.integers(0, len(items)), max_size=40)))
    lo, floor = [], 0
    for end in ends:
        floor = draw(st.integers(floor, end))
        lo.append(floor)
    return items, lo, ends


@pytest.mark.parametrize("technique", ["auto", "panes-inv", "slickdeque-inv"])
@given(case=bounds())
@few_examples
def test_sums_of_windows_by_their_bounds(technique: str, case: tuple[list[int], list[int], list[int]]) -> None:
    items, lo, hi = case
    values = (np.array(items, np.int64),)
    (answers,) = slide(MONOIDS["add_int"], values, np.array(lo, np.int64), np.array(hi, np.int64), technique)
    assert answers.tolist() == [sum(items[start:end]) for start, end in zip(lo, hi, strict=True)]


@pytest.mark.parametrize("technique", ["auto", *techniques(selective=True)])
@given(case=bounds())
@few_examples
def test_two_columns_in_order_by_their_bounds(technique: str, case: tuple[list[int], list[int], list[int]]) -> None:
    items, lo, hi = case
    values = (np.array(items, np.int64) // 20, np.arange(len(items)))  # ties abound, and the older row must win them
    _, rows = slide(MONOIDS["argmax_int"], values, np.array(lo, np.int64), np.array(hi, np.int64), technique)
    for row, start, end in zip(rows, lo, hi, strict=True):
        assert row == (max(range(start, end), key=lambda at: items[at] // 20) if start < end else -1)
