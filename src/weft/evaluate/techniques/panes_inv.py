"""Panes (Inv), or subtract-on-evict: keep a running total, merge what arrives into it and take out what expires.

Only for operations with an exact inverse. On doubles it would drift, and one infinity would poison it for ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.evaluate.columns import empty_columns, identity_of, load, store
from weft.evaluate.operations import combine, remove
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, operations with an exact inverse",
    amortized="2",
    worst="2",
    multi_query="one structure a range",
    space="n",
    origin="Li et al. 2005; R-Int: Arasu, Widom 2004; Subtract-on-Evict: Tangwongsan et al. 2017",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """A ring of partials; state is the oldest position, the next, and the total."""
    return (empty_columns(monoid, slots_for(max(ranges))),), (START, START, identity_of(monoid))


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Merge the partial into the total."""
    ring = memory[0]
    store(ring, state[1] & (len(ring[0]) - 1), partial)
    return state[0], state[1] + 1, combine(tally, state[2], partial)


def evict(memory: Memory, state: State, tally: np.ndarray) -> State:
    """Take the oldest partial out of the total."""
    ring = memory[0]
    oldest = load(ring, state[0] & (len(ring[0]) - 1))
    return state[0] + 1, state[1], remove(tally, state[2], oldest)


def query(memory: Memory, state: State, tally: np.ndarray) -> Any:
    """The total."""
    return state[2]


PANES_INV = Technique(
    name="panes-inv",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=evict,
    query=query,
    requires=("invertible",),
)
