"""The speed bars: against C++, bulk against item by item, doubles against integers, keys in step against a copy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from techniques_timing import Runner, Turns, race, ratio, reference
from weft.algebra.monoid import Monoid
from weft.algebra.monoids import add_float, add_int, max_float, max_int
from weft.evaluate import TECHNIQUES, SlidingWindow, bulk, slide
from weft.evaluate.lockstep import LockstepWindows

WINDOW = 65_536


@dataclass(frozen=True, slots=True)
class Bar:
    """A claim, what was measured, and the limit."""

    claim: str
    nanoseconds: float
    against: float
    ratio: Turns
    limit: float

    @property
    def verdict(self) -> str:
        return "holds" if self.ratio.median <= self.limit else "MISSED"

    def row(self) -> tuple[object, ...]:
        return self.claim, f"{self.nanoseconds:.2f}", f"{self.against:.2f}", str(self.ratio), self.limit, self.verdict


def speed_bars(items: int, turns: int) -> list[Bar]:
    random = np.random.default_rng(3)
    integers, doubles = random.integers(0, 1 << 40, items), random.random(items)
    hi = np.arange(1, items + 1)
    lo = np.maximum(hi - WINDOW, 0)
    works: dict[str, Callable[[], object]] = {
        "c++ sum": _reference("sum_of_integers", integers),
        "c++ max": _reference("max_by_deque", integers),
        "sum": _item_by_item("slickdeque-inv", add_int, integers),
        "window, integers": partial(SlidingWindow("sum", WINDOW).push_many, integers),
        "window, doubles": partial(SlidingWindow("sum", WINDOW).push_many, doubles),
        "max": _item_by_item("slickdeque-noninv", max_int, integers),
    }
    for name, monoid, values in (
        ("sum", add_int, integers),
        ("sum of doubles", add_float, doubles),
        ("max", max_int, integers),
        ("max of doubles", max_float, doubles),
    ):
        works[f"bulk {name}"] = partial(bulk.slide, monoid, (values,), lo, hi)
        stands_for = "slickdeque-inv" if monoid.invertible else "twostacks-lite"
        works[f"{stands_for} {name}"] = partial(slide, monoid, (values,), lo, hi, stands_for)
    works["slickdeque-noninv max"] = partial(slide, max_int, (integers,), lo, hi, "slickdeque-noninv")
    times = race(works, turns)
    return [
        _bar("exact integer sum, against the same loop in C++ -O3", times, "sum", "c++ sum", 1.5, items),
        _bar("slickdeque-noninv max, against the same loop in C++ -O3", times, "max", "c++ max", 1.5, items),
        _bar("bulk sum, against slickdeque-inv", times, "bulk sum", "slickdeque-inv sum", 1, items),
        _bar(
            "bulk sum of doubles, against twostacks-lite",
            times,
            "bulk sum of doubles",
            "twostacks-lite sum of doubles",
            1,
            items,
        ),
        _bar("bulk max, against twostacks-lite", times, "bulk max", "twostacks-lite max", 1, items),
        _bar(
            "bulk max of doubles, against twostacks-lite",
            times,
            "bulk max of doubles",
            "twostacks-lite max of doubles",
            1,
            items,
        ),
        _bar("bulk max, against slickdeque-noninv", times, "bulk max", "slickdeque-noninv max", 0.5, items),
        _bar("SlidingWindow sum of doubles, against integers", times, "window, doubles", "window, integers", 2, items),
        _bar("bulk sum of doubles, against integers", times, "bulk sum of doubles", "bulk sum", 2, items),
    ]


def _bar(claim: str, times: dict[str, Turns], one: str, other: str, limit: float, items: int) -> Bar:
    mine, theirs = times[one], times[other]
    return Bar(claim, mine.median / items * 1e9, theirs.median / items * 1e9, ratio(mine, theirs), limit)


def _reference(name: str, values: np.ndarray) -> Callable[[], object]:
    function = getattr(reference(), name)
    integers = np.ctypeslib.ndpointer(np.int64)
    function.argtypes = [integers, ctypes.c_int64, ctypes.c_int64, integers]
    return partial(function, values, len(values), WINDOW, np.empty_like(values))


def _item_by_item(name: str, monoid: Monoid, values: np.ndarray) -> Callable[[], object]:
    runner = Runner(TECHNIQUES[name], monoid, (WINDOW,), len(values))
    return lambda: runner.run(values)


def keys_in_step(turns: int, keys: int = 100_000) -> list[tuple[object, ...]]:
    """Milliseconds a step for 100,000 keys and 10 ranges, against copying the bytes that a step must touch."""
    ranges = [2, 3, 5, 8, 10, 12, 15, 20, 30, 60]
    source = np.random.default_rng(4).integers(0, 1 << 30, (1 + 2 * len(ranges), keys))
    target = np.empty_like(source)
    steps = 60  # a whole cycle of flips
    works: dict[str, Callable[[], object]] = {"copy": lambda: [np.copyto(target, source) for _ in range(steps)]}
    for monoid in (add_int, max_int, add_float):
        windows = LockstepWindows(monoid, keys, ranges)
        slices = (source[0].astype(monoid.dtypes[0]),)
        works[monoid.name] = partial(_steps, windows, slices, steps)
    times = race(works, turns)
    rows: list[tuple[object, ...]] = []
    for name, taken in times.items():
        against = ratio(taken, times["copy"])
        verdict = "holds" if against.median <= 3 else "MISSED"
        rows.append((name, f"{taken.median / steps * 1e3:.2f}", str(against), verdict))
    return rows


def _steps(windows: LockstepWindows, slices: tuple[np.ndarray, ...], steps: int) -> None:
    for _ in range(steps):
        windows.push(slices)
