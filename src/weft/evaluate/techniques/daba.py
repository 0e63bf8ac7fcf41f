"""DABA: the de-amortized bankers' aggregator; TwoStacks whose flip is done a little with every push and evict.

Six positions part the queue, ``front <= left <= right <= accumulated <= back <= end``; aggregates cover front..left:
up to the back; left..right: up to right; right..accumulated: from right; accumulated..back: up to the back;
back..end: from the back.

Several ranges take a structure each: the nested flips of TwoStacks rely on a flip being done at once, and we found no
sharing of aggregates between ranges that keeps every push at a constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.evaluate.columns import empty_columns, load, store
from weft.evaluate.compile import identity
from weft.evaluate.operations import combine
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, any associative operation",
    amortized="5",
    worst="8",
    multi_query="one structure a range",
    space="2n",
    origin="Tangwongsan, Hirzel, Schneider: Low-latency sliding-window aggregation. DEBS 2017",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """Values and aggregates; state is front, end, left, right, accumulated and back."""
    slots = slots_for(max(ranges))
    return (empty_columns(monoid, slots), empty_columns(monoid, slots)), (START,) * 6


def fix(memory: Memory, state: State, tally: np.ndarray) -> State:
    """One step of the flip in progress, or the beginning of the next."""
    values, aggregates = memory
    mask = len(values[0]) - 1
    front, end, left, right, accumulated, back = state
    if front == back:  # at most one item, and it is its own suffix
        return front, end, end, end, end, end
    if left == back:
        left, accumulated, back = front, end, end
    if left == right:
        return front, end, left + 1, right + 1, accumulated + 1, back
    # lengthen the suffix at left from right to back, and grow the suffixes before the back by one
    suffix = load(aggregates, left & mask)
    if accumulated > right:
        suffix = combine(tally, suffix, load(aggregates, (accumulated - 1) & mask))
    grown = load(values, (accumulated - 1) & mask)
    if accumulated < back:
        rest = load(aggregates, accumulated & mask)
        suffix = combine(tally, suffix, rest)
        grown = combine(tally, grown, rest)
    store(aggregates, left & mask, suffix)
    store(aggregates, (accumulated - 1) & mask, grown)
    return front, end, left + 1, right, accumulated - 1, back


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Append behind the back, then one step."""
    values, aggregates = memory
    mask = len(values[0]) - 1
    front, end, left, right, accumulated, back = state
    below = load(aggregates, (end - 1) & mask)
    store(values, end & mask, partial)
    store(aggregates, end & mask, combine(tally, below, partial) if end > back else partial)
    return fix(memory, (front, end + 1, left, right, accumulated, back), tally)


def evict(memory: Memory, state: State, tally: np.ndarray) -> State:
    """Drop the front, then one step."""
    front, end, left, right, accumulated, back = state
    return fix(memory, (front + 1, end, left, right, accumulated, back), tally)


def query(memory: Memory, state: State, tally: np.ndarray) -> Any:
    """The front's suffix merged with the back's total."""
    aggregates = memory[1]
    mask = len(aggregates[0]) - 1
    front, end, back = state[0], state[1], state[5]
    if front == back:
        return identity
    suffix = load(aggregates, front & mask)
    return combine(tally, suffix, load(aggregates, (end - 1) & mask)) if end > back else suffix


DABA = Technique(
    name="daba",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=evict,
    query=query,
    parts=(fix,),
)
