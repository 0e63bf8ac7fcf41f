"""FlatFIT: a jump table over the window; every look-up shortens the jumps that it took.

``partials[i]`` covers the items from slot i up to the slot that ``pointers[i]`` names. A look-up hops from its start
to the newest item and, on its way back, lets every slot it met point to the end. 004's Algorithm 1 folds from the
newest item to the oldest with the newer operand left and pops an empty stack when one hop covers the range; here the
older operand stands left, and that case is handled.

With one range the whole ring has to be renewed once in n + 1 slides (*wReset*). As 004 §3.2.2 proposes that pass runs
backwards without the stack. It starts from the newest partial, so it takes n - 1 operations, as many as the hops
would. It is right only when every slot holds a single item, which is so at exactly these slides and in the first one.
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
from weft.evaluate.techniques.rings import START

CARD = Card(
    order="in order, any associative operation",
    amortized="3",
    worst="n",
    multi_query="at most 3 a range; n - 1 for all ranges 1..n (004 bounds it by 3n)",
    space="2n, and a stack of at most n/2 with more than one range",
    origin="Shein, Chrysanthis, Labrinidis: FlatFIT. SSDBM 2017; 004 chapter 3",
)
_NEVER = 2**62


def allocate(monoid: Monoid, ranges: tuple[int, ...]) -> tuple[Memory, State]:
    """Partials, pointers, the stack, and the clock; state is the oldest position, the next, and its slot.

    The clock holds the slides to the next reset and the period of resets: with several ranges only the first one runs.
    """
    size = max(ranges)
    pointers = np.roll(np.arange(size), -1)
    clock = np.array([1, size + 1 if len(ranges) == 1 else _NEVER])
    return (identity_columns(monoid, size), pointers, np.empty(size, np.int64), clock), (START,) * 3


def push(memory: Memory, state: State, partial: Any, tally: np.ndarray) -> State:
    """Write the partial; its jump leads to the slot after it."""
    partials, pointers = memory[:2]
    slot = state[2]
    following = slot + 1 if slot + 1 < len(pointers) else 0
    store(partials, slot, partial)
    pointers[slot] = following
    return state[0], state[1] + 1, following


def reset(memory: Memory, state: State, tally: np.ndarray) -> None:
    """Let all slots point to the end at once."""
    partials, pointers = memory[:2]
    end = state[2]
    slot = end - 1 if end > 0 else len(pointers) - 1
    answer = load(partials, slot)
    while slot != end:
        slot = slot - 1 if slot > 0 else len(pointers) - 1
        answer = combine(tally, load(partials, slot), answer)
        store(partials, slot, answer)
        pointers[slot] = end


def lookup(memory: Memory, state: State, size: int, tally: np.ndarray) -> Any:
    """Hop over the last ``size`` items and shorten the jumps on the way back."""
    partials, pointers, stack = memory[:3]
    end = state[2]
    if size == 0:
        return identity
    slot = end - size if end >= size else end - size + len(pointers)
    depth = 0
    stack[0] = slot
    slot = pointers[slot]
    while slot != end:
        depth += 1
        stack[depth] = slot
        slot = pointers[slot]
    answer = load(partials, stack[depth])
    while depth > 1:
        depth -= 1
        slot = stack[depth]
        answer = combine(tally, load(partials, slot), answer)
        store(partials, slot, answer)
        pointers[slot] = end
    # the first slot keeps its jump: with the longest range the next item takes its place anyway
    return combine(tally, load(partials, stack[0]), answer) if depth == 1 else answer


def advance(
    memory: Memory, state: State, partial: Any, ranges: np.ndarray, out: Columns, at: int, tally: np.ndarray
) -> State:
    """Push, renew the ring if that is due, and look every range up."""
    clock = memory[3]
    state = push(memory, state, partial, tally)
    clock[0] -= 1
    if clock[0] == 0:
        reset(memory, state, tally)
        clock[0] = clock[1]
    for k in range(len(ranges)):
        store(out, at + k, lookup(memory, state, ranges[k], tally))
    return state


FLATFIT = Technique(
    name="flatfit",
    card=CARD,
    allocate=allocate,
    push=push,
    evict=indexed.evict,
    query=indexed.query,
    advance=advance,
    parts=(reset, lookup),
    prefilled=True,
)
