"""TwoStacks: a queue of two stacks, each element with the aggregate of what lies below it.

Positions before ``flipped`` are the front stack: ``aggregates[p]`` covers p up to the flip. Those after it are the
back stack: ``aggregates[p]`` covers the flip up to p. When the front runs out, the back is flipped onto it.

Several ranges in one structure, which 004 leaves open: give every range its own flip, and *whenever a range flips,
let all shorter ranges flip with it*. Their suffixes are part of those just computed, so this is free. A shorter range
that runs out later flips at positions at or after the longer range's flip, so its suffixes never overwrite any that a
longer range still needs: all share one array. Ranges with the same flip share the running back aggregate too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns
from weft.evaluate.columns import empty_columns, identity_columns, load, store
from weft.evaluate.compile import identity
from weft.evaluate.operations import combine
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, any associative operation",
    amortized="3",
    worst="n",
    multi_query="less than 3 a range, n + 2 for all ranges 1..n (nested flips; not in 004)",
    space="2n, and one partial a range",
    origin="adamax 2011; Tangwongsan, Hirzel, Schneider: Low-latency sliding-window aggregation. DEBS 2017",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """Values and aggregates, and with several ranges the flip and the back aggregate of each.

    State is the oldest position, the next, and the flip.
    """
    slots = slots_for(max(ranges))
    values, aggregates = empty_columns(monoid, slots), empty_columns(monoid, slots)
    flips = np.zeros(len(ranges), np.int64)
    return (values, aggregates, flips, identity_columns(monoid, len(ranges))), (START, START, START)


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Onto the back stack."""
    values, aggregates, _, _ = memory
    mask = len(values[0]) - 1
    oldest, position, flipped = state
    below = load(aggregates, (position - 1) & mask)
    store(values, position & mask, partial)
    store(aggregates, position & mask, combine(tally, below, partial) if position > flipped else partial)
    return oldest, position + 1, flipped


def flip(values: Columns, aggregates: Columns, start: int, end: int, tally: np.ndarray) -> None:
    """Aggregate every suffix of the positions ``start`` to ``end - 1``."""
    mask = len(values[0]) - 1
    total = load(values, (end - 1) & mask)
    store(aggregates, (end - 1) & mask, total)
    for position in range(end - 2, start - 1, -1):
        total = combine(tally, load(values, position & mask), total)
        store(aggregates, position & mask, total)


def evict(memory: Memory, state: State, tally: np.ndarray) -> State:
    """From the front stack, flipping first if it is empty."""
    values, aggregates, _, _ = memory
    oldest, position, flipped = state
    if oldest == flipped:
        flip(values, aggregates, oldest, position, tally)
        flipped = position
    return oldest + 1, position, flipped


def query(memory: Memory, state: State, tally: np.ndarray) -> Any:
    """The tops of both stacks, merged."""
    aggregates = memory[1]
    mask = len(aggregates[0]) - 1
    oldest, position, flipped = state
    if oldest == position:
        return identity
    if oldest == flipped:
        return load(aggregates, (position - 1) & mask)
    if position == flipped:
        return load(aggregates, oldest & mask)
    return combine(tally, load(aggregates, oldest & mask), load(aggregates, (position - 1) & mask))


def extend_backs(flips: np.ndarray, backs: Columns, position: int, partial: Any, tally: np.ndarray) -> None:
    """Merge the partial at ``position`` into every range's back aggregate, once for all that share a flip."""
    for k in range(len(flips)):
        if k > 0 and flips[k] == flips[k - 1]:
            store(backs, k, load(backs, k - 1))
        elif flips[k] == position:
            store(backs, k, partial)
        else:
            store(backs, k, combine(tally, load(backs, k), partial))


def advance(
    memory: Memory, state: State, partial: Any, ranges: np.ndarray, out: Columns, at: int, tally: np.ndarray
) -> State:
    """Push and answer every range, flipping nested ranges together."""
    values, aggregates, flips, backs = memory
    mask = len(values[0]) - 1
    end = state[1] + 1
    store(values, state[1] & mask, partial)
    extend_backs(flips, backs, state[1], partial, tally)
    for k in range(len(ranges)):
        start = max(end - ranges[k], 0)
        if start >= flips[k]:
            flip(values, aggregates, start, end, tally)
            flips[k:] = end
        suffix = load(aggregates, start & mask)
        store(out, at + k, suffix if flips[k] == end else combine(tally, suffix, load(backs, k)))
    return state[0], end, state[2]


TWOSTACKS = Technique(
    name="twostacks",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=evict,
    query=query,
    advance=advance,
    parts=(flip, extend_backs),
)
