"""DABA Lite: DABA with one partial an element and two running aggregates; constant time for every single push.

Slots hold front..left: suffixes up to the back; left..right: suffixes up to right; right..accumulated: values;
accumulated..back: suffixes up to the back; back..end: values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.evaluate.columns import empty_columns, identity_of, load, store
from weft.evaluate.compile import identity
from weft.evaluate.operations import combine
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, any associative operation",
    amortized="4",
    worst="6",
    multi_query="one structure a range",
    space="n + 2",
    origin="Tangwongsan, Hirzel, Schneider: In-order sliding-window aggregation in worst-case constant time. VLDBJ",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """One ring; state is front, end, left, right, accumulated, back, the total right..back, and that of back..end."""
    unit = identity_of(monoid)
    return (empty_columns(monoid, slots_for(max(ranges))),), (*(START,) * 6, unit, unit)


def fix(memory: Memory, state: State, tally: np.ndarray) -> State:
    """One step of the flip in progress, or the beginning of the next."""
    ring = memory[0]
    mask = len(ring[0]) - 1
    front, end, left, right, accumulated, back, middle, newest = state
    if front == back:  # at most one item, and it is its own suffix
        return front, end, end, end, end, end, identity, identity
    if left == back:
        left, accumulated, back = front, end, end
        middle, newest = newest, identity
    if left == right:
        return front, end, left + 1, right + 1, accumulated + 1, back, middle, newest
    # lengthen the suffix at left from right to back, and grow the suffixes before the back by one
    store(ring, left & mask, combine(tally, load(ring, left & mask), middle))
    if accumulated < back:
        grown = combine(tally, load(ring, (accumulated - 1) & mask), load(ring, accumulated & mask))
        store(ring, (accumulated - 1) & mask, grown)
    return front, end, left + 1, right, accumulated - 1, back, middle, newest


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Append behind the back, then one step."""
    ring = memory[0]
    front, end, left, right, accumulated, back, middle, newest = state
    store(ring, end & (len(ring[0]) - 1), partial)
    total = combine(tally, newest, partial) if end > back else partial
    return fix(memory, (front, end + 1, left, right, accumulated, back, middle, total), tally)


def evict(memory: Memory, state: State, tally: np.ndarray) -> State:
    """Drop the front, then one step."""
    return fix(memory, (state[0] + 1, *state[1:]), tally)


def query(memory: Memory, state: State, tally: np.ndarray) -> Any:
    """The front's suffix merged with the back's total."""
    ring = memory[0]
    front, end, back, newest = state[0], state[1], state[5], state[7]
    if front == back:
        return identity
    suffix = load(ring, front & (len(ring[0]) - 1))
    return combine(tally, suffix, newest) if end > back else suffix


DABA_LITE = Technique(
    name="daba-lite",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=evict,
    query=query,
    parts=(fix,),
)
