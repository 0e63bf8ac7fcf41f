"""What techniques share that look up the last ``size`` items directly: evicting is free, ranges share one structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.numbers import Columns
from weft.evaluate.columns import store
from weft.evaluate.technique import Memory, State
from weft.evaluate.techniques.interface import lookup, push


def evict(memory: Memory, state: State, tally: np.ndarray) -> State:
    """Forget the oldest item; its slot is written over later."""
    return (state[0] + 1, *state[1:])


def query(memory: Memory, state: State, tally: np.ndarray) -> Any:
    """The whole window's answer."""
    return lookup(memory, state, state[1] - state[0], tally)


def advance(
    memory: Memory, state: State, partial: Any, ranges: np.ndarray, out: Columns, at: int, tally: np.ndarray
) -> State:
    """Push, then look every range up; slots that nothing was pushed to hold the identity."""
    state = push(memory, state, partial, tally)
    for k in range(len(ranges)):
        store(out, at + k, lookup(memory, state, ranges[k], tally))
    return state
