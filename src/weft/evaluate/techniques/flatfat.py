"""FlatFAT: a binary tree over the window's partials, flat in an array; a push updates the path from leaf to root.

The leaves are a ring. Where the operation commutes, the root answers the longest range whatever the ring's turn;
where it does not, the stretch before the turn is merged to the left of the stretch after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns
from weft.evaluate.columns import identity_columns, load, store
from weft.evaluate.compile import identity
from weft.evaluate.operations import combine
from weft.evaluate.technique import Card, Memory, State, Technique
from weft.evaluate.techniques import indexed
from weft.evaluate.techniques.interface import commutative
from weft.evaluate.techniques.rings import START, slots_for

CARD = Card(
    order="in order, any associative operation",
    amortized="log2 n (up to 3 log2 n where the operation does not commute)",
    worst="log2 n (up to 3 log2 n where the operation does not commute)",
    multi_query="at most 2 log2 n for every further range",
    space="2n, n rounded up to a power of two",
    origin="Tangwongsan, Hirzel, Schneider, Wu: General incremental sliding-window aggregation. PVLDB 2015",
)


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """The tree, root at 1, and how many leaves are in use; state is the oldest position, the next, and its leaf."""
    size = max(ranges)
    return (identity_columns(monoid, 2 * slots_for(size)), np.int64(size)), (START, START, START)


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Write the leaf and update the path above it."""
    tree, leaves = memory
    node = len(tree[0]) // 2 + state[2]
    store(tree, node, partial)
    node //= 2
    while node >= 1:
        store(tree, node, combine(tally, load(tree, 2 * node), load(tree, 2 * node + 1)))
        node //= 2
    return state[0], state[1] + 1, state[2] + 1 if state[2] + 1 < leaves else 0


def stretch(tree: Columns, first: int, last: int, tally: np.ndarray) -> Any:
    """Merge the leaves ``first`` to ``last - 1``, of which there is at least one, from as few nodes as possible."""
    left = right = identity
    has_left = has_right = False
    low = first + len(tree[0]) // 2
    high = last + len(tree[0]) // 2
    while low < high:
        if low & 1:
            left = combine(tally, left, load(tree, low)) if has_left else load(tree, low)
            has_left = True
            low += 1
        if high & 1:
            high -= 1
            right = combine(tally, load(tree, high), right) if has_right else load(tree, high)
            has_right = True
        low //= 2
        high //= 2
    if has_left and has_right:
        return combine(tally, left, right)
    return left if has_left else right


def lookup(memory: Memory, state: State, size: int, tally: np.ndarray) -> Any:
    """Merge the last ``size`` leaves of the ring."""
    tree, leaves = memory
    end = state[2]
    if size == 0:
        return identity
    if commutative and size == leaves:
        return load(tree, 1)
    start = end - size
    if start >= 0:
        return stretch(tree, start, end, tally)
    before_turn = stretch(tree, start + leaves, leaves, tally)
    if end == 0:
        return before_turn
    return combine(tally, before_turn, stretch(tree, 0, end, tally))


FLATFAT = Technique(
    name="flatfat",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=indexed.evict,
    query=indexed.query,
    advance=indexed.advance,
    parts=(stretch, lookup),
    prefilled=True,
)
