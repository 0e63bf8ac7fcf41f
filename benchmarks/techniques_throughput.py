"""Throughput by window (004 ch. 3 Exp 1 and 2, ch. 4 Exp 1 and 2): one range, and all ranges at once."""

from __future__ import annotations

from functools import partial

import numpy as np

from techniques_counts import fill_for_all_ranges
from techniques_timing import Runner, Turns, race, sensor_readings
from weft.algebra.monoids import add_int, max_int
from weft.evaluate import TECHNIQUES

CHUNK = 1 << 16
MONOIDS = {"sum": add_int, "max": max_int}
BARRED = {"sum": "selective", "max": "invertible"}
LOGARITHMIC = ("flatfat", "b-int")
LARGEST_WITH_ALL_RANGES = {"panes": 1 << 12, "flatfat": 1 << 18, "b-int": 1 << 18}
Timed = dict[tuple[str, int], tuple[Turns, int]]
"""Seconds, and slides a turn, by technique and window."""


def contenders(aggregate: str) -> list[str]:
    return [name for name, technique in TECHNIQUES.items() if BARRED[aggregate] not in technique.requires]


def single(aggregate: str, windows: list[int], turns: int) -> Timed:
    readings = sensor_readings(CHUNK)[0]
    timed: Timed = {}
    for size in windows:
        works, slides = {}, {}
        for name in contenders(aggregate):
            runner = Runner(TECHNIQUES[name], MONOIDS[aggregate], (size,), CHUNK)
            slides[name] = _slides(name, size)
            if not runner.together:
                _push(runner, readings, 2 * size)
            works[name] = partial(_push, runner, readings, slides[name])
        for name, times in race(works, turns).items():
            timed[name, size] = times, slides[name]
    return timed


def _slides(name: str, size: int) -> int:
    """Enough for a whole cycle of the techniques that work in cycles."""
    if name == "panes":
        return max(1, min(CHUNK, (1 << 23) // size))
    return CHUNK if name in LOGARITHMIC else max(CHUNK, size + 1)


def _push(runner: Runner, readings: np.ndarray, items: int) -> None:
    for start in range(0, items, CHUNK):
        runner.run(readings[: min(CHUNK, items - start)])


def all_ranges(aggregate: str, windows: list[int], turns: int) -> Timed:
    readings = sensor_readings(CHUNK)[0]
    timed: Timed = {}
    for size in windows:
        slides = max(1, min(1024, (1 << 19) // size))
        works = {}
        for name in contenders(aggregate):
            if TECHNIQUES[name].advance is None or size > LARGEST_WITH_ALL_RANGES.get(name, size):
                continue
            ranges = tuple(range(size, 0, -1))
            runner = Runner(TECHNIQUES[name], MONOIDS[aggregate], ranges, max(slides, 1))
            fill_for_all_ranges(name, runner, size)
            works[name] = partial(runner.run, readings[:slides])
        for name, times in race(works, turns).items():
            timed[name, size] = times, slides
    return timed


def rows_of(timed: Timed) -> list[dict[str, object]]:
    """For tables and figures: slides a second at the median."""
    return [
        {"technique": name, "window": size, "slides/s": slides / times.median, "ns": times.median / slides * 1e9}
        for (name, size), (times, slides) in timed.items()
    ]
