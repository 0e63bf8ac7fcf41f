"""The loops that drive a technique: one range, several ranges, or windows given by their bounds.

Templates; :meth:`weft.evaluate.technique.Technique.bind` puts a technique's own functions in the place of those
imported.
"""

from __future__ import annotations

import numpy as np

from weft.algebra.numbers import Columns
from weft.evaluate.columns import load, store
from weft.evaluate.operations import end_slide
from weft.evaluate.technique import Memory, State
from weft.evaluate.techniques.interface import advance, evict, push, query


def slide_range(
    memory: Memory, state: State, values: Columns, size: int, out: Columns, at: int, step: int, tally: np.ndarray
) -> State:
    """Push every value; keep at most ``size`` of them; write answer i to ``out[at + i * step]``.

    The first two entries of ``state`` are the positions of the oldest item and of the next one.
    """
    for index in range(len(values[0])):
        if state[1] - state[0] == size:
            state = evict(memory, state, tally)
        state = push(memory, state, load(values, index), tally)
        store(out, at + index * step, query(memory, state, tally))
        end_slide(tally)
    return state


def slide_ranges(
    memory: Memory, state: State, values: Columns, ranges: np.ndarray, out: Columns, tally: np.ndarray
) -> State:
    """Push every value and write the answers of all ``ranges``, longest first, side by side."""
    for index in range(len(values[0])):
        state = advance(memory, state, load(values, index), ranges, out, index * len(ranges), tally)
        end_slide(tally)
    return state


def slide_bounds(
    memory: Memory, state: State, values: Columns, lo: np.ndarray, hi: np.ndarray, out: Columns, tally: np.ndarray
) -> State:
    """Answer ``values[lo[i]:hi[i]]`` for every i; what no window covers is never pushed."""
    first = last = 0  # values[first:last] are in the window
    for answer in range(len(lo)):
        while first < min(lo[answer], last):
            state = evict(memory, state, tally)
            first += 1
        if first < lo[answer]:
            first = last = lo[answer]
        while last < hi[answer]:
            state = push(memory, state, load(values, last), tally)
            last += 1
        store(out, answer, query(memory, state, tally))
        end_slide(tally)
    return state
