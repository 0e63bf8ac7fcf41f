"""Aggregate operations a slide, counted: one range, and all ranges from 1 to n at once."""

from __future__ import annotations

import numpy as np

from techniques_theory import ALL_RANGES, SINGLE, WORST, harmonic
from techniques_timing import Runner, sensor_readings
from weft.algebra.monoids import add_int, max_int
from weft.evaluate import TECHNIQUES
from weft.evaluate.technique import retyped

CHUNK = 1 << 16
RANDOM = np.random.default_rng(1).integers(0, 1 << 40, CHUNK)
Point = dict[str, object]


def count_all(sizes: list[int]) -> list[Point]:
    points: list[Point] = []
    for size in sizes:
        for name, technique in TECHNIQUES.items():
            points.append(
                _point(name, size, "one range", SINGLE[name](size), WORST[name](size), *_one_range(name, size))
            )
            if technique.advance is not None and (name != "panes" or size <= 4096):
                theory = ALL_RANGES[name](size)
                points.append(_point(name, size, "all ranges", theory, theory, *_all_ranges(name, size)))
    return points


def _point(
    name: str, size: int, queries: str, theory: float, theory_worst: float, measured: float, worst: int
) -> Point:
    return {
        "technique": name,
        "window": size,
        "queries": queries,
        "theory": theory,
        "theory worst": theory_worst,
        "measured": measured,
        "worst": worst,
    }


def _monoid(name: str) -> object:
    return add_int if "invertible" in TECHNIQUES[name].requires else max_int


def push(runner: Runner, items: int, ranges: np.ndarray | None = None) -> None:
    """Push that many random items, in chunks that fit the runner's output."""
    chunk = min(CHUNK, len(runner.out[0]) // (len(runner.ranges) if ranges is None else len(ranges)))
    for start in range(0, items, chunk):
        part = min(chunk, items - start)
        at = start % (CHUNK - part + 1)
        runner.run(RANDOM[at : at + part], ranges)


def _one_range(name: str, size: int) -> tuple[float, int]:
    runner = Runner(TECHNIQUES[name], _monoid(name), (size,), CHUNK, counting=True)
    if not runner.together:  # those that start full of identities need no filling
        push(runner, 2 * size)
    cycle = size + 1 if name == "flatfit" else size  # whole cycles, as the heavy slide comes once in each
    cycles = max(4, CHUNK // cycle)
    return _measured(runner, max(4, (1 << 22) // size) if name == "panes" else cycles * cycle)


def _all_ranges(name: str, size: int) -> tuple[float, int]:
    slides = max(1, min(64, (1 << 22) // size))
    runner = Runner(TECHNIQUES[name], _monoid(name), tuple(range(size, 0, -1)), slides, counting=True)
    fill_for_all_ranges(name, runner, size)
    return _measured(runner, slides)


def fill_for_all_ranges(name: str, runner: Runner, size: int) -> None:
    """Bring a structure to its steady state at the price of one range.

    twostacks is set to where it stands half a window after all its ranges flipped: in its cycle of n slides slide j
    flips j items, so this is the mean, and getting there item by item would take n²/2 steps.
    """
    if name == "slickdeque-noninv":
        push(runner, 2 * size, np.array([size]))
    elif name == "twostacks":
        values, _, flips, _ = runner.memory
        values[0][:] = RANDOM[: len(values[0])] if len(values[0]) <= CHUNK else 1
        flips[:] = 1
        runner.state = retyped((0, size // 2, 0), runner.state)
    push(runner, 1)


def _measured(runner: Runner, slides: int) -> tuple[float, int]:
    runner.tally[:] = 0
    push(runner, slides)
    return float(runner.tally[0]) / slides, int(runner.tally[1])


def deque_lengths(sizes: list[int]) -> list[tuple[int, float, float, float]]:
    """Window, H_n, and the mean length of the monotonic deque on random and on sensor data."""
    rows = []
    random = np.random.default_rng(2).integers(0, 1 << 40, 1 << 20)
    sensor = sensor_readings(1 << 20)[0]
    for size in sizes:
        rows.append((size, harmonic(size), _mean_length(size, random), _mean_length(size, sensor)))
    return rows


def _mean_length(size: int, items: np.ndarray) -> float:
    runner = Runner(TECHNIQUES["slickdeque-noninv"], max_int, (size,), CHUNK)
    lengths = []
    step = max(64, (len(items) - 2 * size) // 400)
    for start in range(0, len(items) - step, step):
        runner.run(items[start : start + step])
        if start >= 2 * size:
            _, _, head, tail = runner.state
            lengths.append(int(tail - head))
    return float(np.mean(lengths))
