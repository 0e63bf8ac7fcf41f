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

from weft.optimize.omega import SUMS, tallied, with_range

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


RATE, COST, RATES, OWN_HITS, HITS, WINDOWS_PER_EDGE, ANSWERS, ITEMS, FIRST_ITEM = range(9)
"""Columns of a tree: edge rate and cost; its items' own edge rates and marked bits, summed; its marked bits; sum of
range / slide; answers a second; number of items, and one of them."""

STEP, OFFSET, OTHER_OFFSET, BIT, OTHER_BIT, STEP_INDEX = range(6)
"""Columns of an item: step and offsets in ticks, the first bits of its progressions on the horizon (-1 where there is
no second progression, or bits are not ticks), and the row of its step among the gcds."""


class Slab(NamedTuple):
    """Trees side by side, a row each. Compiled functions take its arrays one by one: an array that is taken out of a
    tuple in the innermost loop is counted there, at several times the price of looking at it.
    """

    trees: Floats
    items: Ints
    marks: Words
    """Edges on the horizon."""
    ranges: Words
    """Which of the distinct ranges its queries have."""
    gcds: Ints
    """Gcds of all distinct steps; empty if these are too many."""
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
    bits: int
    """Bits of the horizon."""
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
def _common_rate_of_items(items: Ints, gcds: Ints, one: int, other: int, needed: float) -> float:
    """Common edges per tick of two items, exactly; an upper bound if that is less than ``needed``."""
    step = items[other, STEP]
    known = gcds.size > 0
    common = gcds[items[one, STEP_INDEX], items[other, STEP_INDEX]] if known else _gcd(items[one, STEP], step)
    together = float(items[one, STEP]) * float(step // common)
    if 4.0 / together < needed:
        return 4.0 / together
    agreeing = 0
    for i in range(OFFSET, OTHER_OFFSET + 1):
        for j in range(OFFSET, OTHER_OFFSET + 1):
            a, b = items[one, i], items[other, j]
            if a >= 0 and b >= 0 and (a == b or (a - b) % common == 0):
                agreeing += 1
    return agreeing / together


@njit(cache=True)
def _common_hits(trees: Floats, items: Ints, marks: Words, bits: int, one: int, other: int, words: int) -> int:
    """Common bits on the first words of the horizon; a lone item probes the other's bits (000 §8.3)."""
    item = int(trees[one, FIRST_ITEM])
    if trees[one, ITEMS] == 1 and items[item, BIT] >= 0:
        return _probe(items, marks, bits, item, other, words)
    item = int(trees[other, FIRST_ITEM])
    if trees[other, ITEMS] == 1 and items[item, BIT] >= 0:
        return _probe(items, marks, bits, item, one, words)
    return common_bits(marks, one, other, words)


@njit(cache=True)
def _probe(items: Ints, marks: Words, bits: int, item: int, tree: int, words: int) -> int:
    total, end, step = 0, min(words * 64, bits), items[item, STEP]
    for column in range(BIT, OTHER_BIT + 1):
        bit = items[item, column]
        while 0 <= bit < end:
            total += (marks[tree, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1)
            bit += step
    return total


@njit(cache=True)
def woven_rate(
    trees: Floats, items: Ints, marks: Words, gcds: Ints, prices: Prices, one: int, other: int, needed: float
) -> float:
    """Edge rate of two trees together; perhaps only a lower bound if they have fewer common edges than ``needed``.

    Before all bits are compared, a glance at the first of them tells, with three standard deviations to spare.
    """
    apart = trees[one, RATES] + trees[other, RATES]
    if trees[one, ITEMS] == 1 and trees[other, ITEMS] == 1:
        left, right = int(trees[one, FIRST_ITEM]), int(trees[other, FIRST_ITEM])
        return float(apart) - prices.ticks * _common_rate_of_items(items, gcds, left, right, needed / prices.ticks)
    words = marks.shape[1]
    if prices.glance and needed > 0.0:
        seen = _common_hits(trees, items, marks, prices.bits, one, other, prices.glance)
        most = prices.per_hit * words / prices.glance * (seen + 3.0 * sqrt(seen) + 3.0)
        if most < needed:
            return float(trees[one, RATE] + trees[other, RATE] - most)
    common = _common_hits(trees, items, marks, prices.bits, one, other, words)
    twice = trees[one, OWN_HITS] + trees[other, OWN_HITS] - trees[one, HITS] - trees[other, HITS] + common
    return float(max(apart - prices.per_hit * twice, trees[one, RATE], trees[other, RATE]))


@njit(cache=True)
def woven_overlap(
    trees: Floats, ranges: Words, all_ranges: Floats, prices: Prices, one: int, other: int, rate: float
) -> float:
    """Ω of two trees together; of one if both are the same."""
    if prices.technique in SUMS:
        overlap: float = trees[one, WINDOWS_PER_EDGE]
        return overlap if one == other else overlap + trees[other, WINDOWS_PER_EDGE]
    tally = (0, 0.0, -1.0, 0.0)
    for at in range(ranges.shape[1]):
        word = ranges[one, at] | ranges[other, at]
        while word:
            lowest = word & (~word + np.uint64(1))
            partials = rate * all_ranges[at * 64 + _bits_set(lowest - np.uint64(1))]
            tally = with_range(prices.technique, tally, partials)
            word ^= lowest
    return tallied(prices.technique, tally)


@njit(cache=True)
def tree_cost(prices: Prices, rate: float, overlap: float, answers: float) -> float:
    """Cost of a tree, as :meth:`weft.optimize.cost.CostModel.tree`."""
    return prices.per_tree + rate * (prices.per_edge + prices.per_operation * overlap) + prices.per_answer * answers


@njit(cache=True)
def woven_rates(slab: Slab, prices: Prices, tree: int, others: Ints, rates: Floats) -> None:
    """:func:`woven_rate` with each of ``others``."""
    trees, items, marks, _, gcds, _ = slab
    for at in range(others.size):
        rates[at] = woven_rate(trees, items, marks, gcds, prices, tree, others[at], 0.0)


@njit(cache=True)
def woven_costs(slab: Slab, prices: Prices, tree: int, others: Ints, rates: Floats, costs: Floats) -> None:
    """Cost of ``tree`` woven with each of ``others`` at the given rates."""
    trees, _, _, ranges, _, all_ranges = slab
    for at in range(others.size):
        other = others[at]
        overlap = woven_overlap(trees, ranges, all_ranges, prices, tree, other, rates[at])
        costs[at] = tree_cost(prices, rates[at], overlap, trees[tree, ANSWERS] + trees[other, ANSWERS])


@njit(cache=True, nogil=True)
def best_partners(
    slab: Slab, prices: Prices, tree: int, others: Ints, floor: float, most: int
) -> tuple[Floats, Ints, int]:
    """The ``most`` of ``others`` that save most when woven with ``tree``, best first: savings, slots, and how many.

    With panes and bulk Ω is a plain sum, so that it is known beforehand how many common edges a pair needs to be among
    the best so far. Most cannot have so many, as the denser tree's rate or the steps' least common multiple shows.
    """
    trees, items, marks, ranges, gcds, all_ranges = slab
    savings, partners, found = np.full(most, floor), np.full(most, -1), 0
    plain_sum = prices.technique in SUMS
    for at in range(others.size):
        other = others[at]
        apart = trees[tree, COST] + trees[other, COST]
        answers = trees[tree, ANSWERS] + trees[other, ANSWERS]
        needed = 0.0
        if plain_sum and savings[-1] > -np.inf:
            overlap = trees[tree, WINDOWS_PER_EDGE] + trees[other, WINDOWS_PER_EDGE]
            per_edge = prices.per_edge + prices.per_operation * overlap
            highest = (apart - savings[-1] - tree_cost(prices, 0.0, 0.0, answers)) / per_edge
            if max(trees[tree, RATE], trees[other, RATE]) >= highest:
                continue
            needed = trees[tree, RATE] + trees[other, RATE] - highest
        rate = woven_rate(trees, items, marks, gcds, prices, tree, other, needed)
        overlap = woven_overlap(trees, ranges, all_ranges, prices, tree, other, rate)
        saving = apart - tree_cost(prices, rate, overlap, answers)
        if saving > savings[-1]:
            place = most - 1
            while place > 0 and savings[place - 1] < saving:
                savings[place], partners[place] = savings[place - 1], partners[place - 1]
                place -= 1
            savings[place], partners[place] = saving, other
            found = min(found + 1, most)
    return savings, partners, found
