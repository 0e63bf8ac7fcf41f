"""The loom: trees in the making, and what weaving any two of them would cost.

Every optimizer works on a loom and nothing else. Trees live in numbered slots; there are as many slots as items, as no
forest has more trees, and one to try things out in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from os import cpu_count

import numpy as np

from weft.optimize.cost import CostModel
from weft.optimize.horizon import horizon_of
from weft.optimize.items import Item
from weft.optimize.kernels import (
    ANSWERS,
    BIT,
    COST,
    FIRST_ITEM,
    HITS,
    ITEMS,
    OFFSET,
    OWN_HITS,
    RATE,
    RATES,
    STEP,
    STEP_INDEX,
    WINDOWS_PER_EDGE,
    Floats,
    Ints,
    Prices,
    Slab,
    Words,
    best_partners,
    common_bits,
    woven_costs,
    woven_overlap,
    woven_rates,
)
from weft.optimize.omega import SUMS, TechniqueCode, overlap
from weft.slicing.edge_rate import MICROSECONDS, Rate, edge_rate
from weft.slicing.progression import Progression, prune

FEW = 14
"""Up to so many items, every edge rate is computed exactly: it is what tests compare optimizers by."""
_ALL_BITS = 1 << 28
_FEWEST_BITS, _MOST_BITS = 1 << 15, 1 << 18
_GLANCE_FROM = 4_000
_MOST_GCDS = 2_000
_WORTH_A_THREAD = 3_000
_THREADS = min(4, cpu_count() or 1)
_EXACT_BUDGET = 20_000

_SUMS = [RATES, OWN_HITS, WINDOWS_PER_EDGE, ANSWERS, ITEMS]
"""Columns of a tree that are sums over its items."""

Partition = list[list[int]]
"""Which items share a tree."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a tree comes to."""

    rate: Rate
    overlap: float
    cost: float


class Loom:
    """Items, the cost model, and the trees woven so far; at first every item is a tree of its own."""

    def __init__(self, items: Sequence[Item], model: CostModel, technique: TechniqueCode) -> None:
        self.items = tuple(items)
        self.model = model
        self.technique = technique
        self.comparisons = 0
        """Pairs of trees looked at: the overhead that 000 Fig. 11 reports."""
        self.horizon = horizon_of(self.items, _bits(len(self.items)))
        self._slab = self._base = self._lay_out()
        self._exact: dict[frozenset[int], float] = {}
        self._finished: dict[frozenset[int], Finished] = {}
        self.reset()

    # -- the trees ----------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Back to no sharing."""
        base = self._base
        self._slab = base._replace(trees=base.trees.copy(), marks=base.marks.copy(), ranges=base.ranges.copy())
        self.members: list[list[int]] = [[index] for index in range(len(self.items))] + [[]]
        self.alive = np.ones(len(self.items) + 1, dtype=np.bool_)
        self.alive[-1] = False

    @property
    def trees(self) -> Ints:
        """Slots of the trees."""
        return np.flatnonzero(self.alive)

    @property
    def partition(self) -> Partition:
        """The trees' items."""
        return [sorted(self.members[slot]) for slot in self.trees]

    @property
    def costs(self) -> Floats:
        """Cost by slot."""
        return self._slab.trees[:, COST]

    @property
    def cost(self) -> float:
        """Cost of all trees, without what they share."""
        return float(self.costs[self.alive].sum())

    def compose(self, slot: int, items: Iterable[int]) -> None:
        """Put a tree of ``items`` into ``slot``."""
        slab, base = self._slab, self._base
        chosen = list(items)
        self.members[slot] = chosen
        if not chosen:
            self.alive[slot] = False
            return
        rows = np.array(chosen)
        slab.trees[slot, _SUMS] = base.trees[rows][:, _SUMS].sum(axis=0)
        slab.trees[slot, FIRST_ITEM] = chosen[0]
        slab.marks[slot] = np.bitwise_or.reduce(base.marks[rows], axis=0)
        slab.ranges[slot] = np.bitwise_or.reduce(base.ranges[rows], axis=0)
        slab.trees[slot, HITS] = common_bits(slab.marks, slot, slot, slab.marks.shape[1])
        self._price(slot, self._rate_of(chosen, slot))

    def start_from(self, partition: Iterable[Iterable[int]]) -> None:
        """Trees of the given items, in the first slots."""
        self.alive[:] = False
        for slot, items in enumerate(partition):
            self.alive[slot] = True
            self.compose(slot, items)

    def only(self, items: Sequence[int]) -> Loom:
        """A loom of its own for some of the items, all apart."""
        part = copy(self)
        rows = np.array([*items, len(self.items)])
        part.items = tuple(self.items[item] for item in items)
        base = self._base
        part._base = base._replace(
            trees=base.trees[rows], items=base.items[rows], marks=base.marks[rows], ranges=base.ranges[rows]
        )
        part._base.trees[:, FIRST_ITEM] = np.arange(rows.size)
        part._exact, part._finished = {}, {}
        part.reset()
        return part

    # -- weaving ------------------------------------------------------------------------------------------------

    def woven_costs(self, slot: int, others: Ints) -> Floats:
        """What each of ``others`` would cost with the tree in ``slot`` woven into it."""
        costs = np.empty(others.size)
        woven_costs(self._slab, self._prices, slot, others, self._woven_rates(slot, others), costs)
        return costs

    def best_partners(self, slot: int, others: Ints, floor: float = 0.0, most: int = 1) -> list[tuple[float, int]]:
        """The trees whose weaving with ``slot`` saves most and more than ``floor``, best first: (saving, slot)."""
        if self.exact_rates:
            savings = self.costs[slot] + self.costs[others] - self.woven_costs(slot, others)
            order = np.argsort(-savings, kind="stable")[:most]
            return [(float(savings[at]), int(others[at])) for at in order if savings[at] > floor]
        self.comparisons += others.size
        if others.size < _WORTH_A_THREAD:
            return self._look_through(slot, others, floor, most)
        shares = np.array_split(others, _THREADS)
        found = _pool().map(lambda share: self._look_through(slot, share, floor, most), shares)
        return sorted(chain.from_iterable(found), key=lambda one: -one[0])[:most]

    def _look_through(self, slot: int, others: Ints, floor: float, most: int) -> list[tuple[float, int]]:
        savings, partners, found = best_partners(self._slab, self._prices, slot, others, floor, most)
        return list(zip(savings[:found].tolist(), partners[:found].tolist(), strict=True))

    def weave(self, slot: int, other: int) -> None:
        """Merge the tree in ``other`` into the one in ``slot``."""
        slab = self._slab
        rate = float(self._woven_rates(slot, np.array([other]))[0])
        self.members[slot] = self.members[slot] + self.members[other]
        self.members[other] = []
        self.alive[other] = False
        slab.trees[slot, _SUMS] += slab.trees[other, _SUMS]
        slab.marks[slot] |= slab.marks[other]
        slab.ranges[slot] |= slab.ranges[other]
        slab.trees[slot, HITS] = common_bits(slab.marks, slot, slot, slab.marks.shape[1])
        self._price(slot, rate)

    # -- edge rates ---------------------------------------------------------------------------------------------

    @cached_property
    def exact_rates(self) -> bool:
        """Whether rates come from :func:`weft.slicing.edge_rate.edge_rate` because the horizon is only a sample."""
        return len(self.items) <= FEW and not self.horizon.exact

    def progressions(self, items: Iterable[int]) -> tuple[Progression, ...]:
        """Where a tree of ``items`` cuts."""
        return prune(progression for item in items for progression in self.items[item].progressions)

    def _woven_rates(self, slot: int, others: Ints) -> Floats:
        self.comparisons += others.size
        rates = np.empty(others.size)
        if self.exact_rates:
            for at, other in enumerate(others):
                rates[at] = self._exact_rate(frozenset((*self.members[slot], *self.members[other])))
        else:
            woven_rates(self._slab, self._prices, slot, others, rates)
        return rates

    def _exact_rate(self, items: frozenset[int]) -> float:
        if items not in self._exact:
            self._exact[items] = edge_rate(self.progressions(items), budget=_EXACT_BUDGET).per_second
        return self._exact[items]

    def finished(self, items: Iterable[int]) -> Finished:
        """A tree of ``items`` as it is reported: at its exact edge rate, or at the loom's guess within its bounds."""
        members = frozenset(items)
        if members not in self._finished:
            chosen = [self.items[item] for item in sorted(members)]
            rate = edge_rate(self.progressions(members), budget=self._finishing_budget)
            if not rate.exact:
                self.compose(len(self.items), members)
                rate = replace(rate, guess=float(self._slab.trees[-1, RATE]))
            ranges = sorted({one for item in chosen for one in item.ranges})
            per_edge = overlap(
                self.technique, sum(item.per_edge(self.technique) for item in chosen), ranges, float(rate.value)
            )
            cost = self.model.tree(rate.per_second, per_edge, sum(item.answers for item in chosen))
            self._finished[members] = Finished(rate, per_edge, cost)
        return self._finished[members]

    @property
    def _finishing_budget(self) -> int:
        """Smaller where there will be many trees, so that reporting them takes seconds at the most."""
        return max(200, min(100_000, 2_000_000 // len(self.items)))

    def _rate_of(self, items: list[int], slot: int) -> float:
        slab = self._slab
        if self.exact_rates:
            return self._exact_rate(frozenset(items))
        if len(items) == 2:  # in closed form, as when the two were woven
            rates = np.empty(1)
            woven_rates(self._base, self._prices, items[0], np.array([items[1]]), rates)
            return float(rates[0])
        twice = slab.trees[slot, OWN_HITS] - slab.trees[slot, HITS]
        return float(slab.trees[slot, RATES] - self.horizon.per_second * twice)

    def _price(self, slot: int, rate: float) -> None:
        trees, _, _, ranges, _, all_ranges = self._slab
        overlap = woven_overlap(trees, ranges, all_ranges, self._prices, slot, slot, rate)
        trees[slot, RATE] = rate
        trees[slot, COST] = self.model.tree(rate, overlap, trees[slot, ANSWERS])

    # -- laying out ---------------------------------------------------------------------------------------------

    @cached_property
    def _prices(self) -> Prices:
        model = self.model
        return Prices(
            int(self.technique),
            model.per_tree,
            model.per_edge,
            model.per_operation,
            model.per_answer,
            self.horizon.per_second,
            MICROSECONDS / self.horizon.unit,
            self.horizon.bits,
            self.horizon.words // 8 if len(self.items) > _GLANCE_FROM else 0,
        )

    def _lay_out(self) -> Slab:
        """One row an item, and a spare one."""
        rows, horizon = len(self.items) + 1, self.horizon
        items = np.full((rows, 6), -1)
        marks = np.zeros((rows, horizon.words), dtype=np.uint64)
        for row, item in enumerate(self.items):
            items[row, STEP] = item.progressions[0].step // horizon.unit
            for at, one in enumerate(item.progressions):
                items[row, OFFSET + at] = one.offset // horizon.unit
                if horizon.instants is None:
                    items[row, BIT + at] = (one.offset - horizon.start) % one.step // horizon.unit
            horizon.mark(item.progressions, marks[row])
        steps, items[:, STEP_INDEX] = np.unique(items[:, STEP], return_inverse=True)
        gcds = np.gcd.outer(steps, steps) if steps.size <= _MOST_GCDS else np.zeros((0, 0), dtype=np.int64)
        all_ranges, ranges = self._range_bits()
        trees = np.zeros((rows, 9))
        for row, item in enumerate(self.items):
            rate = MICROSECONDS * len(item.progressions) / item.progressions[0].step
            hits = common_bits(marks, row, row, horizon.words)
            trees[row] = (rate, 0.0, rate, hits, hits, item.per_edge(self.technique), item.answers, 1.0, row)
        self._slab = Slab(trees, items, marks, ranges, gcds, all_ranges)
        for row in range(rows - 1):
            self._price(row, float(trees[row, RATE]))
        return self._slab

    def _range_bits(self) -> tuple[Floats, Words]:
        rows = len(self.items) + 1
        if self.technique in SUMS:
            return np.zeros(1), np.zeros((rows, 1), dtype=np.uint64)
        every = sorted({one for item in self.items for one in item.ranges})
        place = {one: at for at, one in enumerate(every)}
        bits = np.zeros((rows, -(-len(every) // 64)), dtype=np.uint64)
        for row, item in enumerate(self.items):
            flags = np.zeros(bits.shape[1] * 64, dtype=np.bool_)
            flags[[place[one] for one in item.ranges]] = True
            bits[row] = np.packbits(flags, bitorder="little").view(np.uint64)
        return np.array(every) / MICROSECONDS, bits


def _bits(items: int) -> int:
    """Length of the horizon: as long as memory and time allow, and short where all rates are exact anyway."""
    return 1 << 12 if items <= FEW else min(_MOST_BITS, max(_FEWEST_BITS, _ALL_BITS // items))


@cache
def _pool() -> ThreadPoolExecutor:
    """Compiled code that lets go of the interpreter runs on all cores."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="weft-loom")
