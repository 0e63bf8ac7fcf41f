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


def _population_count(_context: Any, _word: Any) -> Any:
    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


_bits_set: Any = intrinsic(_population_count)  # numba has no popcount of its own


@njit(cache=True)
def common_bits(one: Words, other: Words, words: int) -> int:
    """How many of the first ``words`` words' bits are set in both."""
    total = 0
    for at in range(words):
        total += _bits_set(one[at] & other[at])
    return total


@njit(cache=True)
def _gcd(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


@njit(cache=True)
def _common_rate_of_items(slab: Slab, one: int, other: int) -> float:
    """Common edges per tick of two items, exactly."""
    left, right = slab.steps[one], slab.steps[other]
    common = _gcd(left, right)
    agreeing = 0
    for i in range(2):
        for j in range(2):
            a, b = slab.offsets[one, i], slab.offsets[other, j]
            if a >= 0 and b >= 0 and (a - b) % common == 0:
                agreeing += 1
    return agreeing / (float(left) * float(right // common))


@njit(cache=True)
def woven_rate(slab: Slab, prices: Prices, ticks: float, one: int, other: int) -> float:
    """Edge rate of two trees together."""
    rate: float = slab.rates[one] + slab.rates[other]
    if slab.items[one] == 1 and slab.items[other] == 1:
        return rate - ticks * _common_rate_of_items(slab, slab.first_item[one], slab.first_item[other])
    common = common_bits(slab.marks[one], slab.marks[other], slab.marks.shape[1])
    hits = slab.hits[one] + slab.hits[other] - common
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
def woven_rates(slab: Slab, prices: Prices, ticks: float, tree: int, others: Ints, rates: Floats) -> None:
    """:func:`woven_rate` with each of ``others``."""
    for at in range(others.size):
        rates[at] = woven_rate(slab, prices, ticks, tree, others[at])


@njit(cache=True)
def woven_costs(slab: Slab, prices: Prices, tree: int, others: Ints, rates: Floats, costs: Floats) -> None:
    """Cost of ``tree`` woven with each of ``others`` at the given rates."""
    for at in range(others.size):
        other = others[at]
        overlap = woven_overlap(slab, prices, tree, other, rates[at])
        costs[at] = tree_cost(prices, rates[at], overlap, slab.answers[tree] + slab.answers[other])


@njit(cache=True)
def best_partner(
    slab: Slab, prices: Prices, ticks: float, tree: int, others: Ints, floor: float, glance: int
) -> tuple[float, int]:
    """The one of ``others`` that saves most when woven with ``tree``, and how much; -1 if none saves more than floor.

    With panes Ω is a plain sum, so that a lower bound of the rate bounds the saving: first the denser tree's own rate,
    then a glance at the first words of the bits with three standard deviations to spare. Few pairs pass both.
    """
    best, partner = floor, -1
    panes = prices.technique == Technique.PANES
    share = slab.marks.shape[1] / max(glance, 1)
    for at in range(others.size):
        other = others[at]
        apart = slab.cost[tree] + slab.cost[other]
        answers = slab.answers[tree] + slab.answers[other]
        if panes:
            overlap = slab.windows_per_edge[tree] + slab.windows_per_edge[other]
            least = max(slab.rate[tree], slab.rate[other])
            if apart - tree_cost(prices, least, overlap, answers) <= best:
                continue
            if glance and slab.items[tree] + slab.items[other] > 2:
                seen = common_bits(slab.marks[tree], slab.marks[other], glance)
                common = share * (seen + 3.0 * sqrt(seen) + 3.0)
                rate = slab.rate[tree] + slab.rate[other] - prices.per_hit * common
                if apart - tree_cost(prices, max(rate, least), overlap, answers) <= best:
                    continue
        rate = woven_rate(slab, prices, ticks, tree, other)
        saving = apart - tree_cost(prices, rate, woven_overlap(slab, prices, tree, other, rate), answers)
        if saving > best:
            best, partner = saving, other
    return best, partner
