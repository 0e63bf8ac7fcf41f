"""``python -m weft.spark.warm``: compile every kernel into numba's cache on disk, so that no Spark task has to.

Compiling takes a quarter of a minute on a machine that never did it. A mark beside what was compiled tells that it was,
with this Python, this numba, this processor and these sources.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np
import pyarrow as pa

from weft.algebra import numbers as arrow_numbers
from weft.evaluate import bulk
from weft.slicing.time_window import TimeWindow
from weft.step import cutting_kernels, packing
from weft.step.packing import Block
from weft.step.panes import Panes, windows_of
from weft.step.slices import Passing

ROOMS = ("algebra", "evaluate", "slicing", "step")
"""Where kernels are, and what is compiled into them."""
Report = Callable[[int, int], object]
"""Told how many groups of kernels are compiled, of how many."""


def warm(report: Report = lambda done, of: None) -> None:
    """Compile the kernels that the engine uses."""
    steps = bulk.STEPS + cutting_kernels.STEPS + 1
    bulk.warm(lambda done: report(done, steps))
    cutting_kernels.warm(lambda done: report(bulk.STEPS + done, steps))
    numbers, words = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    arrow_numbers.within(numbers, words, np.int64(1), np.uint64(1))
    arrow_numbers.divided(numbers, words, np.ones(1, np.int64), 4)
    slices = Passing.__new__(Passing)
    slices.keys, slices.starts = numbers, numbers
    panes = Panes.of(slices, TimeWindow(range=1, slide=1))
    windows_of(panes, TimeWindow(range=1, slide=1))
    Block.empty(1, 1).add(pa.array([[None]], pa.list_(pa.int64())))
    report(steps, steps)
    with suppress(OSError):  # whoever looks for the mark then compiles once more, from the cache
        _mark().touch()


def warm_once(report: Report, begin: Callable[[], object]) -> None:
    """Compile the kernels unless that was done before; ``begin`` is called if not."""
    if not _mark().exists():
        begin()
        warm(report)


def _mark() -> Path:
    """The file that is there if kernels were compiled, beside them."""
    told = (platform.python_version(), numba.__version__, llvmlite.binding.get_host_cpu_name(), *_sources())
    digest = blake2b("\n".join(told).encode(), digest_size=8).hexdigest()
    chosen = str(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
    folder = Path(chosen) if chosen else Path(packing.__file__).parent / "__pycache__"
    return folder / f"weft-{digest}.warm"


def _sources() -> Iterator[str]:
    package = Path(packing.__file__).parent.parent
    for room in ROOMS:
        for file in sorted((package / room).rglob("*.py")):
            stamp = file.stat()
            yield f"{file} {stamp.st_mtime_ns} {stamp.st_size}"


if __name__ == "__main__":
    warm()
