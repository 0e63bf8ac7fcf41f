"""Semantics 3: what left a window leaves no trace in sums, averages and moments of doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft.algebra.monoids import MONOIDS
from weft.evaluate import TECHNIQUES, SlidingWindow, bulk, slide
from weft.evaluate.lockstep import LockstepWindows

SIZE = 8
QUIET = np.random.default_rng(3).normal(size=200)


def with_spikes(*spikes: float) -> np.ndarray:
    items = QUIET.copy()
    items[[40 + 3 * k for k in range(len(spikes))]] = spikes
    return items


def assert_no_trace(answers: np.ndarray, items: np.ndarray) -> None:
    for end in range(100, 200):
        window = items[end + 1 - SIZE : end + 1]
        assert abs(answers[end] - math.fsum(window)) <= 1e-9 * np.abs(window).sum()


SPIKES = [(1e16,), (1e16, -1e16), (math.inf,), (math.inf, -math.inf), (math.nan,), (1e308, 1e308)]
GENERAL = [name for name, technique in TECHNIQUES.items() if not technique.requires]


@pytest.mark.parametrize("spikes", SPIKES, ids=str)
@pytest.mark.parametrize("technique", ["auto", *GENERAL])
def test_sums_forget_what_expired(technique: str, spikes: tuple[float, ...]) -> None:
    items = with_spikes(*spikes)
    hi = np.arange(1, 201)
    (answers,) = slide(MONOIDS["add_float"], (items,), np.maximum(hi - SIZE, 0), hi, technique)
    assert_no_trace(answers, items)


@pytest.mark.parametrize("spikes", SPIKES, ids=str)
def test_sliding_and_lockstep_sums_forget_what_expired(spikes: tuple[float, ...]) -> None:
    items = with_spikes(*spikes)
    assert_no_trace(SlidingWindow("sum", [SIZE]).push_many(items)[:, 0], items)
    windows = LockstepWindows(MONOIDS["add_float"], 1, [SIZE, 3])
    answers = np.array([windows.push((items[at : at + 1],))[0][0, 0] for at in range(200)])
    assert_no_trace(answers, items)


@pytest.mark.parametrize("spikes", SPIKES, ids=str)
def test_variances_forget_what_expired(spikes: tuple[float, ...]) -> None:
    items = with_spikes(*spikes)
    answers = SlidingWindow("var_pop", [SIZE]).push_many(items)[:, 0]
    for end in range(100, 200):
        assert answers[end] == pytest.approx(np.var(items[end + 1 - SIZE : end + 1]), rel=1e-9)


@pytest.mark.parametrize("name", ["moments4", "correlation"])
def test_higher_moments_forget_what_expired(name: str) -> None:
    monoid = MONOIDS[name]
    means = [np.where(np.arange(100) == 50, bad, np.arange(100.0) % 7) for bad in (math.nan, math.inf)]
    zeros = [np.zeros(100)] * (monoid.width - 3)
    hi = np.arange(1, 101)
    values = (np.ones(100), means[0], means[1], *zeros)
    for column in bulk.slide(monoid, values, np.maximum(hi - SIZE, 0), hi):
        assert np.isfinite(column[70:]).all()
