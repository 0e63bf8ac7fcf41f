"""Timing that can be trusted on a noisy machine: contenders take turns, ratios are taken within a turn."""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.algebra.monoid import Monoid
from weft.evaluate.columns import empty_columns, frozen
from weft.evaluate.drivers import slide_range, slide_ranges
from weft.evaluate.operations import new_tally
from weft.evaluate.technique import Technique, retyped

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Turns:
    """One number a turn: seconds, or one contender's seconds over another's."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({min(self.values):.2f}..{max(self.values):.2f})"


def race(contenders: dict[str, Work], turns: int = 7) -> dict[str, Turns]:
    """Run all contenders once to warm up, then in turn; CPU seconds, as other programs may share the cores."""
    for work in contenders.values():
        work()
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, work in contenders.items():
            begin = time.process_time()
            work()
            taken[name].append(time.process_time() - begin)
    return {name: Turns(tuple(seconds)) for name, seconds in taken.items()}


def ratio(one: Turns, other: Turns) -> Turns:
    return Turns(tuple(mine / theirs for mine, theirs in zip(one.values, other.values, strict=True)))


class Runner:
    """A technique at work: keeps its state from chunk to chunk, so that a window may be longer than a chunk."""

    def __init__(
        self, technique: Technique, monoid: Monoid, ranges: tuple[int, ...], chunk: int, *, counting: bool = False
    ) -> None:
        self.monoid = monoid
        self.ranges = np.array(ranges)
        self.tally = new_tally()
        self.memory, self.state = technique.allocate(monoid, ranges)
        self.together = technique.advance is not None and (technique.prefilled or len(ranges) > 1)
        driver = slide_ranges if self.together else technique.one_range or slide_range
        self.kernel = technique.bind(monoid, driver, counting=counting)
        self.out = empty_columns(monoid, chunk * len(ranges))

    def run(self, values: np.ndarray, ranges: np.ndarray | None = None) -> None:
        """Push ``values``; a shorter list of ``ranges`` fills the window at less cost."""
        columns = frozen((values,))
        if self.together:
            wanted = self.ranges if ranges is None else ranges
            state = self.kernel(self.memory, self.state, columns, wanted, self.out, self.tally)
        else:
            size = int(self.ranges[0])
            state = self.kernel(self.memory, self.state, columns, size, self.out, 0, 1, self.tally)
        self.state = retyped(state, self.state)

    def bytes(self) -> int:
        """What the structure has allocated."""
        return _bytes(self.memory)


def _bytes(memory: object) -> int:
    if isinstance(memory, tuple):
        return sum(_bytes(part) for part in memory)
    return memory.nbytes if isinstance(memory, np.ndarray) else 0


def reference() -> ctypes.CDLL:
    """The C++ loops of techniques_reference.cpp, built with the system's compiler."""
    library = Path(tempfile.mkdtemp()) / "reference.so"
    source = Path(__file__).with_name("techniques_reference.cpp")
    subprocess.run(["g++", "-O3", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


def sensor_readings(count: int, seed: int = 12) -> np.ndarray:
    """Three energy readings at 100 Hz in the shape of DEBS 2012: a duty cycle, drift, and noise of a few counts."""
    random = np.random.default_rng(seed)
    at = np.arange(count) / 100.0
    readings = []
    for phase, (base, swing, noise) in enumerate(((8000, 2600, 12), (12000, 900, 30), (9500, 4000, 5))):
        duty = (np.sin(2 * np.pi * (at / 63.0 + phase / 3)) > 0.2) * swing
        drift = 150 * np.sin(2 * np.pi * at / 3600.0)
        readings.append((base + duty + drift + random.normal(0, noise, count)).astype(np.int64))
    return np.array(readings)
