"""B-Int: dyadic intervals of all lengths; a push completes only those that end with it, a look-up merges a few of them.

Against FlatFAT it saves on pushes, one operation on average, and pays at look-ups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.evaluate.columns import identity_columns, load, store
from weft.evaluate.compile import identity
from weft.evaluate.operations import combine
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques import indexed
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, any associative operation",
    amortized="1 + about log2 n",
    worst="3 log2 n",
    multi_query="at most 2 log2 n for every further range",
    space="2n, n rounded up to a power of two",
    origin="Arasu, Widom: Resource sharing in continuous sliding-window aggregates. VLDB 2004",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """Intervals as a heap, the whole circle at 1; state is the oldest position and the next."""
    return (identity_columns(monoid, 2 * slots_for(max(ranges))),), (START, START)


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Write the interval of length one and complete the longer ones that end here."""
    intervals = memory[0]
    circle = len(intervals[0]) // 2
    node = circle + (state[1] & (circle - 1))
    store(intervals, node, partial)
    while node & 1 and node > 1:
        store(intervals, node // 2, combine(tally, load(intervals, node - 1), load(intervals, node)))
        node //= 2
    return state[0], state[1] + 1


def lookup(memory: Memory, state: State, size: int, tally: np.ndarray) -> Any:
    """Cover the last ``size`` items with the longest complete intervals, from the oldest on."""
    intervals = memory[0]
    circle = len(intervals[0]) // 2
    total = identity
    position = state[1] - size
    length, level = 1, 0
    while position < state[1]:
        while position & length == 0 and position + 2 * length <= state[1]:
            length, level = 2 * length, level + 1
        while position + length > state[1]:
            length, level = length // 2, level - 1
        around = circle >> level
        found = load(intervals, around + ((position >> level) & (around - 1)))
        total = found if position == state[1] - size else combine(tally, total, found)
        position += length
    return total


B_INT = Technique(
    name="b-int",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=indexed.evict,
    query=indexed.query,
    advance=indexed.advance,
    parts=(lookup,),
    prefilled=True,
)
