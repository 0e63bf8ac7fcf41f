"""Compiled: what weaving two trees would cost, for one tree against many.

The rate of a woven tree is the sum of its items' exact rates, less the edges that they have in common; only those are
counted on the horizon's bits. For two single items they are known in closed form: two items with steps s and t have
c / lcm(s, t) common edges, c being the pairs of their offsets that agree modulo gcd(s, t) (004 Eq. 5.6).
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

from weft.optimize.omega import Technique, count_range, from_tally

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


class Slab(NamedTuple):
    """All trees side by side, a row each, in the form that compiled code takes."""

    items: Ints
    """Items in the tree."""
    rate: Floats
    cost: Floats
    rates: Floats
    """Sum of its items' own edge rates."""
    own_hits: Ints
    """Sum of its items' own marked bits."""
    hits: Ints
    """Marked bits of the tree."""
    windows_per_edge: Floats
    answers: Floats
    first_item: Ints
    marks: Words
    """Edges on the horizon."""
    ranges: Words
    """Which of ``all_ranges`` its queries have."""
    steps: Ints
    """By item: step and offsets in ticks; the second offset is -1 where there is none."""
    offsets: Ints
    first_bits: Ints
    """By item: its first bits on the horizon, one a progression; -1 where there is none or bits are not ticks."""
    step_index: Ints
    gcds: Ints
    """Gcds of all distinct steps, by ``step_index``; empty if these are too many."""
    bits: int
    """Bits of the horizon."""
    all_ranges: Floats
    """Distinct ranges in seconds, ascending."""


class Prices(NamedTuple):
    """The cost model in the form that compiled code takes."""

    technique: int
    per_tree: float
    per_edge: float
    per_operation: float
    per_answer: float
    per_hit: float
    """Edge rate that one bit of the horizon stands for."""
    ticks: float
    """Ticks a second, in which items' steps and offsets are counted."""
    glance: int
    """Words of the horizon to look at first; 0 for all at once."""


def _population_count(_context: Any, _word: Any) -> Any:
    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


_bits_set: Any = intrinsic(_population_count)  # numba has no popcount of its own


@njit(cache=True)
def common_bits(marks: Words, one: int, other: int, words: int) -> int:
    """How many of the first ``words`` words' bits are set in both rows."""
    total = 0
    for at in range(words):
        total += _bits_set(marks[one, at] & marks[other, at])
    return total


@njit(cache=True)
def _gcd(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


@njit(cache=True)
def _gcd_of_items(slab: Slab, one: int, other: int) -> int:
    if slab.gcds.size:
        return int(slab.gcds[slab.step_index[one], slab.step_index[other]])
    return _gcd(slab.steps[one], slab.steps[other])


@njit(cache=True)
def _common_rate_of_items(slab: Slab, one: int, other: int, needed: float) -> float:
    """Common edges per tick of two items, exactly; an upper bound if that is less than ``needed``."""
    common = _gcd_of_items(slab, one, other)
    together = float(slab.steps[one]) * float(slab.steps[other] // common)
    if 4.0 / together < needed:
        return 4.0 / together
    agreeing = 0
    for i in range(2):
        for j in range(2):
            a, b = slab.offsets[one, i], slab.offsets[other, j]
            if a >= 0 and b >= 0 and (a == b or (a - b) % common == 0):
                agreeing += 1
    return agreeing / together


@njit(cache=True)
def _common_hits(slab: Slab, one: int, other: int, words: int) -> int:
    """Common bits on the first words of the horizon; a lone item probes the other's bits (000 §8.3)."""
    if slab.items[one] == 1 and slab.first_bits[slab.first_item[one], 0] >= 0:
        return _probe(slab, slab.first_item[one], other, words)
    if slab.items[other] == 1 and slab.first_bits[slab.first_item[other], 0] >= 0:
        return _probe(slab, slab.first_item[other], one, words)
    return common_bits(slab.marks, one, other, words)


@njit(cache=True)
def _probe(slab: Slab, item: int, tree: int, words: int) -> int:
    total, end = 0, min(words * 64, slab.bits)
    for column in range(2):
        bit = slab.first_bits[item, column]
        while 0 <= bit < end:
            total += (slab.marks[tree, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1)
            bit += slab.steps[item]
    return total


@njit(cache=True)
def woven_rate(slab: Slab, prices: Prices, one: int, other: int, needed: float) -> float:
    """Edge rate of two trees together; perhaps only a lower bound if they have fewer common edges than ``needed``.

    Before all bits are compared, a glance at the first of them tells, with three standard deviations to spare.
    """
    if slab.items[one] == 1 and slab.items[other] == 1:
        left, right = slab.first_item[one], slab.first_item[other]
        common = _common_rate_of_items(slab, left, right, needed / prices.ticks)
        return float(slab.rates[one] + slab.rates[other] - prices.ticks * common)
    words = slab.marks.shape[1]
    if prices.glance and needed > 0.0:
        seen = _common_hits(slab, one, other, prices.glance)
        most = prices.per_hit * words / prices.glance * (seen + 3.0 * sqrt(seen) + 3.0)
        if most < needed:
            return float(slab.rate[one] + slab.rate[other] - most)
    hits = slab.hits[one] + slab.hits[other] - _common_hits(slab, one, other, words)
    rate = slab.rates[one] + slab.rates[other]
    rate -= prices.per_hit * (slab.own_hits[one] + slab.own_hits[other] - hits)
    return float(max(rate, slab.rate[one], slab.rate[other]))


@njit(cache=True)
def woven_overlap(slab: Slab, prices: Prices, one: int, other: int, rate: float) -> float:
    """Ω of two trees together; of one if both are the same."""
    if prices.technique == Technique.PANES:
        overlap: float = slab.windows_per_edge[one]
        return overlap if one == other else overlap + slab.windows_per_edge[other]
    tally = (0, 0.0, -1.0, 0.0)
    for at in range(slab.ranges.shape[1]):
        word = slab.ranges[one, at] | slab.ranges[other, at]
        while word:
            lowest = word & (~word + np.uint64(1))
            partials = rate * slab.all_ranges[at * 64 + _bits_set(lowest - np.uint64(1))]
            tally = count_range(prices.technique, tally, partials)
            word ^= lowest
    return from_tally(prices.technique, tally)


@njit(cache=True)
def tree_cost(prices: Prices, rate: float, overlap: float, answers: float) -> float:
    """Cost of a tree, as :meth:`weft.optimize.cost.CostModel.tree`."""
    return prices.per_tree + rate * (prices.per_edge + prices.per_operation * overlap) + prices.per_answer * answers


@njit(cache=True)
def woven_rates(slab: Slab, prices: Prices, tree: int, others: Ints, rates: Floats) -> None:
    """:func:`woven_rate` with each of ``others``."""
    for at in range(others.size):
        rates[at] = woven_rate(slab, prices, tree, others[at], 0.0)


@njit(cache=True)
def woven_costs(slab: Slab, prices: Prices, tree: int, others: Ints, rates: Floats, costs: Floats) -> None:
    """Cost of ``tree`` woven with each of ``others`` at the given rates."""
    for at in range(others.size):
        other = others[at]
        overlap = woven_overlap(slab, prices, tree, other, rates[at])
        costs[at] = tree_cost(prices, rates[at], overlap, slab.answers[tree] + slab.answers[other])


@njit(cache=True)
def best_partners(
    slab: Slab, prices: Prices, tree: int, others: Ints, floor: float, most: int
) -> tuple[Floats, Ints, int]:
    """The ``most`` of ``others`` that save most when woven with ``tree``, best first: savings, slots, and how many.

    With panes Ω is a plain sum, so that it is known beforehand how many common edges a pair needs to be among the
    best so far. Most pairs cannot have so many, as the denser tree's rate or the steps' least common multiple shows.
    """
    savings, partners, found = np.full(most, floor), np.full(most, -1), 0
    panes = prices.technique == Technique.PANES
    for at in range(others.size):
        other = others[at]
        apart = slab.cost[tree] + slab.cost[other]
        answers = slab.answers[tree] + slab.answers[other]
        needed = 0.0
        if panes and savings[-1] > -np.inf:
            overlap = slab.windows_per_edge[tree] + slab.windows_per_edge[other]
            per_edge = prices.per_edge + prices.per_operation * overlap
            highest = (apart - savings[-1] - tree_cost(prices, 0.0, 0.0, answers)) / per_edge
            if max(slab.rate[tree], slab.rate[other]) >= highest:
                continue
            needed = slab.rate[tree] + slab.rate[other] - highest
        rate = woven_rate(slab, prices, tree, other, needed)
        saving = apart - tree_cost(prices, rate, woven_overlap(slab, prices, tree, other, rate), answers)
        if saving > savings[-1]:
            place = most - 1
            while place > 0 and savings[place - 1] < saving:
                savings[place], partners[place] = savings[place - 1], partners[place - 1]
                place -= 1
            savings[place], partners[place] = saving, other
            found = min(found + 1, most)
    return savings, partners, found
