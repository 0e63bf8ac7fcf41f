"""Bulk kernels: the oracle's answers for every monoid, over several keys, from read-only arrays, in several threads."""

from __future__ import annotations

import numpy as np
import pytest

from weft.algebra.monoid import Monoid
from weft.algebra.monoids import MONOIDS
from weft.algebra.numbers import Columns
from weft.evaluate import bulk
from weft.evaluate.columns import identity_of, load
from weft.evaluate.lockstep import LockstepWindows

RANDOM = np.random.default_rng(11)


def random_partials(monoid: Monoid, count: int) -> Columns:
    if monoid.name.startswith(("moments", "covariance", "correlation")):
        n = RANDOM.integers(0, 3, count).astype(float)
        rest = [np.where(n > 0, RANDOM.normal(size=count) ** 2, 0.0) for _ in monoid.dtypes[1:]]
        return (n, *rest)
    if monoid.name in ("first", "last") or monoid.name.startswith("arg"):
        rows = np.where(RANDOM.random(count) < 0.8, np.arange(count), -1)
        orders = np.where(rows < 0, 0, RANDOM.integers(0, 6, count)).astype(monoid.dtypes[0])
        return (rows,) if monoid.width == 1 else (orders, rows)
    return tuple(RANDOM.integers(0, 1000, count).astype(dtype) for dtype in monoid.dtypes)


def windows_of_three_keys(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Sliding windows that never span the keys' borders; some empty, some skipping ahead."""
    lo: list[int] = []
    hi: list[int] = []
    for start, end in ((0, count // 3), (count // 3, count // 2), (count // 2, count)):
        for at in range(start, end + 5, int(RANDOM.integers(1, 4))):
            hi.append(min(at, end))
            lo.append(min(max(at - 7, start), end))
    return np.array(lo), np.array(hi)


def merged(monoid: Monoid, values: Columns, start: int, end: int) -> tuple[float, ...]:
    total = identity_of(monoid)
    for index in range(start, end):
        total = monoid.merge(total, load(values, index))
    return tuple(np.atleast_1d(np.array(total, dtype=object)))


@pytest.mark.parametrize("monoid", MONOIDS.values(), ids=MONOIDS)
def test_bulk_answers_are_the_oracles(monoid: Monoid) -> None:
    values = random_partials(monoid, 120)
    lo, hi = windows_of_three_keys(120)
    answers = bulk.slide(monoid, values, lo, hi)
    for index, (start, end) in enumerate(zip(lo, hi, strict=True)):
        got = [column[index] for column in answers]
        assert got == pytest.approx(list(merged(monoid, values, start, end)), nan_ok=True)


@pytest.mark.parametrize("monoid", MONOIDS.values(), ids=MONOIDS)
def test_segments_are_merged_in_order(monoid: Monoid) -> None:
    values = random_partials(monoid, 50)
    pointers = np.array([0, 1, 4, 17, 50])
    answers = bulk.reduce_segments(monoid, values, pointers)
    for index in range(4):
        got = [column[index] for column in answers]
        assert got == pytest.approx(list(merged(monoid, values, pointers[index], pointers[index + 1])))


@pytest.mark.parametrize("name", ["add_int", "max_float"])
def test_threads_give_the_same_answers(name: str) -> None:
    monoid = MONOIDS[name]
    values = random_partials(monoid, 1000)
    lo, hi = windows_of_three_keys(1000)
    (alone,), (together,) = bulk.slide(monoid, values, lo, hi), bulk.slide(monoid, values, lo, hi, threads=3)
    np.testing.assert_array_equal(alone, together)


def test_read_only_arrays_meet_the_same_kernel() -> None:
    values = np.arange(10.0)
    values.flags.writeable = False
    (answers,) = bulk.slide(MONOIDS["max_float"], (values,), np.array([0, 3]), np.array([3, 9]))
    assert answers.tolist() == [2.0, 8.0]


def test_prefixes_serve_several_sets_of_windows() -> None:
    values = (np.array([5, 1, 2]), np.array([0, 2**64 - 1, 3], np.uint64))
    prefixes = bulk.prefix(MONOIDS["add_wide"], values)
    high, low = bulk.slide_prefix(MONOIDS["add_wide"], prefixes, np.array([0, 1]), np.array([2, 3]))
    assert [int(h) * 2**64 + int(o) for h, o in zip(high, low, strict=True)] == [6 * 2**64 + 2**64 - 1, 4 * 2**64 + 2]


def test_no_answers_and_no_values_are_fine() -> None:
    nothing = np.array([], np.int64)
    for name in ("add_int", "max_int"):
        assert len(bulk.slide(MONOIDS[name], (nothing,), nothing, nothing)[0]) == 0


@pytest.mark.parametrize("name", ["add_int", "max_int", "add_float", "argmax_int"])
def test_keys_in_lockstep_answer_as_one_by_one_and_go_on_from_their_state(name: str) -> None:
    monoid, ranges, keys, steps = MONOIDS[name], [3, 8, 1, 8, 5], 4, 30
    values = random_partials(monoid, steps * keys)
    windows = LockstepWindows(monoid, keys, ranges)
    for step in range(steps):
        if step == 13:
            moved = LockstepWindows(monoid, keys, ranges)
            moved.restore(windows.state())
            windows = moved
        answers = windows.push(tuple(column[step * keys : (step + 1) * keys] for column in values))
        for k, size in enumerate(ranges):
            for key in range(keys):
                mine = tuple(column[key::keys] for column in values)
                expected = merged(monoid, mine, max(0, step + 1 - size), step + 1)
                assert [column[k, key] for column in answers] == pytest.approx(list(expected))


def test_warming_compiles_every_monoid_and_says_so() -> None:
    done: list[int] = []
    bulk.warm(done.append)
    assert done == list(range(1, len(MONOIDS) + 1))
