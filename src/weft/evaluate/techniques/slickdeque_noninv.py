"""SlickDeque (Non-Inv): a monotonic deque of the partials that can still win, with their positions.

A new partial drives out those at the tail that it beats. 004 calls the class of operations that allow this
"non-invertible"; what is needed is that a merge always returns one of its operands (*selective*), which set union or
bit-or do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns
from weft.evaluate.columns import empty_columns, load, same, store
from weft.evaluate.compile import identity
from weft.evaluate.operations import combine
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, operations that return one of their operands",
    amortized="less than 2",
    worst="n, on input that falls for n items and then rises",
    multi_query="as for one range: further ranges walk the deque without operations",
    space="2 to 2n; on random input about ln n elements",
    origin="Shein, Chrysanthis, Labrinidis: SlickDeque. EDBT 2018; 004 chapter 4",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """The deque's partials and positions; state is the oldest position, the next, and the deque's head and tail."""
    slots = slots_for(max(ranges))
    return (empty_columns(monoid, slots), np.empty(slots, np.int64)), (START,) * 4


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Drive out what the partial beats and append it."""
    kept, positions = memory
    mask = len(positions) - 1
    oldest, position, head, tail = state
    while tail > head and same(combine(tally, load(kept, (tail - 1) & mask), partial), partial):
        tail -= 1
    store(kept, tail & mask, partial)
    positions[tail & mask] = position
    return oldest, position + 1, head, tail + 1


def evict(memory: Memory, state: State, tally: np.ndarray) -> State:
    """Drop the head if it is what expires."""
    positions = memory[1]
    oldest, position, head, tail = state
    expired = head < tail and positions[head & (len(positions) - 1)] == oldest
    return oldest + 1, position, head + 1 if expired else head, tail


def query(memory: Memory, state: State, tally: np.ndarray) -> Any:
    """The head wins."""
    kept = memory[0]
    _, _, head, tail = state
    return load(kept, head & (len(kept[0]) - 1)) if head < tail else identity


def advance(
    memory: Memory, state: State, partial: Any, ranges: np.ndarray, out: Columns, at: int, tally: np.ndarray
) -> State:
    """Push, then walk the deque once from its head: the longer a range, the nearer to the head its answer lies."""
    kept, positions = memory
    mask = len(positions) - 1
    if state[1] - state[0] == ranges[0]:
        state = evict(memory, state, tally)
    state = push(memory, state, partial, tally)
    node = state[2]
    for k in range(len(ranges)):
        while positions[node & mask] < state[1] - ranges[k]:
            node += 1
        store(out, at + k, load(kept, node & mask))
    return state


SLICKDEQUE_NONINV = Technique(
    name="slickdeque-noninv",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=evict,
    query=query,
    advance=advance,
    requires=("selective",),
)
