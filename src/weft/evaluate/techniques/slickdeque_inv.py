"""SlickDeque (Inv): one running total a range over one ring of partials: merge what arrives, take out what expires."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns
from weft.evaluate.columns import identity_columns, identity_of, load, store
from weft.evaluate.operations import combine, remove
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques import panes_inv
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, operations with an exact inverse",
    amortized="2",
    worst="2",
    multi_query="2 a range, 2n for all ranges 1..n",
    space="n, and one partial a range",
    origin="Shein, Chrysanthis, Labrinidis: SlickDeque. EDBT 2018; 004 chapter 4",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """A ring of partials and a total a range; state as in panes-inv, for the case of one range."""
    ring = identity_columns(monoid, slots_for(max(ranges)))
    return (ring, identity_columns(monoid, len(ranges))), (START, START, identity_of(monoid))


def advance(
    memory: Memory, state: State, partial: Any, ranges: np.ndarray, out: Columns, at: int, tally: np.ndarray
) -> State:
    """Update every total; before a range is full, what it takes out is an identity."""
    ring, totals = memory
    position = state[1]
    mask = len(ring[0]) - 1
    for k in range(len(ranges)):
        expired = load(ring, (position - ranges[k]) & mask)
        total = remove(tally, combine(tally, load(totals, k), partial), expired)
        store(totals, k, total)
        store(out, at + k, total)
    store(ring, position & mask, partial)
    return state[0], position + 1, state[2]


SLICKDEQUE_INV = Technique(
    name="slickdeque-inv",
    card=CARD,
    allocate=allocate,
    push=panes_inv.push,
    evict=panes_inv.evict,
    query=panes_inv.query,
    advance=advance,
    requires=("invertible",),
)
