"""TwoStacks Lite: TwoStacks with one partial an element; suffixes overwrite the values they cover.

The back stack needs only its total, so a running aggregate replaces its per-element ones. Several ranges take a
structure each: the nested flips of TwoStacks need the values that the suffixes here overwrite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns
from weft.evaluate.columns import empty_columns, identity_of, load, store
from weft.evaluate.compile import identity
from weft.evaluate.operations import combine, end_slide
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, any associative operation",
    amortized="3",
    worst="n",
    multi_query="one structure a range",
    space="n + 1",
    origin="Tangwongsan, Hirzel, Schneider: In-order sliding-window aggregation in worst-case constant time. VLDBJ",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """One ring; state is the oldest position, the next, the flip, and the back aggregate."""
    return (empty_columns(monoid, slots_for(max(ranges))),), (START, START, START, identity_of(monoid))


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Onto the back stack."""
    ring = memory[0]
    oldest, position, flipped, back = state
    store(ring, position & (len(ring[0]) - 1), partial)
    return oldest, position + 1, flipped, combine(tally, back, partial)


def flip(memory: Memory, start: int, end: int, tally: np.ndarray) -> None:
    """Replace the values from ``start`` to ``end - 1`` by their suffixes' aggregates."""
    ring = memory[0]
    mask = len(ring[0]) - 1
    total = load(ring, (end - 1) & mask)
    for position in range(end - 2, start - 1, -1):
        total = combine(tally, load(ring, position & mask), total)
        store(ring, position & mask, total)


def evict(memory: Memory, state: State, tally: np.ndarray) -> State:
    """From the front stack, flipping first if it is empty."""
    oldest, position, flipped, back = state
    if oldest == flipped:
        flip(memory, oldest, position, tally)
        flipped, back = position, identity
    return oldest + 1, position, flipped, back


def query(memory: Memory, state: State, tally: np.ndarray) -> Any:
    """The front's top merged with the back's total."""
    ring = memory[0]
    oldest, _, flipped, back = state
    if oldest == flipped:
        return back
    return combine(tally, load(ring, oldest & (len(ring[0]) - 1)), back)


def slide_range(
    memory: Memory, state: State, values: Columns, size: int, out: Columns, at: int, step: int, tally: np.ndarray
) -> State:
    """The driver's loop for one range, in runs: as long as the front lasts, nothing has to be asked for each item."""
    ring = memory[0]
    mask = len(ring[0]) - 1
    count = len(values[0])
    oldest, position, flipped, back = state
    index = 0
    while index < count:
        run = min(flipped - oldest - 1, count - index) if position - oldest == size else 0
        for _ in range(run):
            partial = load(values, index)
            store(ring, position & mask, partial)
            back = combine(tally, back, partial)
            oldest, position = oldest + 1, position + 1
            store(out, at + index * step, combine(tally, load(ring, oldest & mask), back))
            end_slide(tally)
            index += 1
        if index < count:
            state = (oldest, position, flipped, back)
            if position - oldest == size:
                state = evict(memory, state, tally)
            state = push(memory, state, load(values, index), tally)
            store(out, at + index * step, query(memory, state, tally))
            end_slide(tally)
            oldest, position, flipped, back = state
            index += 1
    return oldest, position, flipped, back


TWOSTACKS_LITE = Technique(
    name="twostacks-lite",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=evict,
    query=query,
    one_range=slide_range,
    parts=(flip,),
)
