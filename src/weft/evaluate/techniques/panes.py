"""Panes: merge the window's partials again for every answer. Naive, and the yardstick for all others."""

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
    amortized="n - 1",
    worst="n - 1",
    multi_query="n²/2 - n/2 for all ranges 1..n",
    space="n",
    origin="Li, Maier, Tufte, Papadimos, Tucker: No pane, no gain. SIGMOD Record 2005",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """A ring of partials; state is the oldest position and the next."""
    return (identity_columns(monoid, slots_for(max(ranges))),), (START, START)


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Write the partial down."""
    ring = memory[0]
    store(ring, state[1] & (len(ring[0]) - 1), partial)
    return state[0], state[1] + 1


def lookup(memory: Memory, state: State, size: int, tally: np.ndarray) -> Any:
    """Merge the last ``size`` partials, oldest first."""
    ring = memory[0]
    mask = len(ring[0]) - 1
    if size == 0:
        return identity
    total = load(ring, (state[1] - size) & mask)
    for position in range(state[1] - size + 1, state[1]):
        total = combine(tally, total, load(ring, position & mask))
    return total


PANES = Technique(
    name="panes",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=indexed.evict,
    query=indexed.query,
    advance=indexed.advance,
    parts=(lookup,),
    prefilled=True,
)
