"""``python -m weft.spark.warm``: compile every kernel into numba's cache on disk, so that no Spark task has to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.algebra import numbers as arrow_numbers
from weft.evaluate import bulk
from weft.slicing.time_window import TimeWindow
from weft.step.packing import Block
from weft.step.panes import Panes, windows_of
from weft.step.slices import Passing


def warm() -> None:
    """Compile the kernels that the engine uses."""
    bulk.warm(lambda _: None)
    numbers, words = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    arrow_numbers.within(numbers, words, np.int64(1), np.uint64(1))
    arrow_numbers.divided(numbers, words, np.ones(1, np.int64), 4)
    slices = Passing.__new__(Passing)
    slices.keys, slices.starts = numbers, numbers
    panes = Panes.of(slices, TimeWindow(range=1, slide=1))
    windows_of(panes, TimeWindow(range=1, slide=1))
    Block.empty(1, 1).add(pa.array([[None]], pa.list_(pa.int64())))


if __name__ == "__main__":
    warm()
