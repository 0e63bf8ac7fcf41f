"""Edges and panes of many instants at once, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True)
def pane_numbers(starts: Array, slide: int, offset: int, fragment: int) -> Array:
    """The pane that each instant lies in: slide k is pane k, or panes 2k and 2k + 1 if windows end inside a slide.

    Examples
    --------
    >>> pane_numbers(np.array([-1, 0, 3, 9]), 9, 0, 0).tolist()
    [-1, 0, 0, 1]
    >>> pane_numbers(np.array([-1, 0, 3, 9]), 9, 0, 3).tolist()
    [-1, 0, 1, 2]
    """
    numbers = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        since = starts[i] - offset
        turn = since // slide
        if fragment == 0:
            numbers[i] = turn
        else:
            numbers[i] = 2 * turn + (1 if since - turn * slide >= fragment else 0)
    return numbers
