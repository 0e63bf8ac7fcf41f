"""TwoStacks Lite: TwoStacks with one partial an element; suffixes overwrite the values they cover.

The back stack needs only its total, so a running aggregate replaces its per-element ones. Several ranges take a
structure each: the nested flips of TwoStacks need the values that the suffixes here overwrite.
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
    return oldest, position + 1, flipped, combine(tally, back, partial) if position > flipped else partial


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
    oldest, position, flipped, back = state
    if oldest == flipped:
        return back if position > flipped else identity
    front = load(ring, oldest & (len(ring[0]) - 1))
    return combine(tally, front, back) if position > flipped else front


TWOSTACKS_LITE = Technique(
    name="twostacks-lite",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=evict,
    query=query,
    parts=(flip,),
)
