"""The loom: trees in the making, and what weaving any two of them would cost.

Every optimizer works on a loom and nothing else. Trees live in numbered slots; there are as many slots as items, as no
forest has more trees, and one to try things out in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weft.optimize.cost import CostModel
from weft.optimize.horizon import horizon_of
from weft.optimize.items import Item
from weft.optimize.kernels import (
    Floats,
    Ints,
    Prices,
    Slab,
    best_partners,
    common_bits,
    woven_costs,
    woven_overlap,
    woven_rates,
)
from weft.optimize.omega import Technique, overlap
from weft.slicing.edge_rate import MICROSECONDS, Rate, edge_rate
from weft.slicing.progression import Progression, prune

FEW = 14
"""Up to so many items, every edge rate is computed exactly: it is what tests compare optimizers by."""
_ALL_BITS = 1 << 27
_FEWEST_BITS, _MOST_BITS = 1 << 16, 1 << 20
_GLANCE_FROM = 4_000
_MOST_GCDS = 2_000
_EXACT_BUDGET = 20_000

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

    def __init__(self, items: Sequence[Item], model: CostModel, technique: Technique) -> None:
        self.items = tuple(items)
        self.model = model
        self.technique = technique
        self.comparisons = 0
        """Pairs of trees looked at: the overhead that 000 Fig. 11 reports."""
        self.horizon = horizon_of(self.items, min(_MOST_BITS, max(_FEWEST_BITS, _ALL_BITS // len(self.items))))
        self._slab = self._base = self._lay_out()
        self._exact: dict[frozenset[int], float] = {}
        self._finished: dict[frozenset[int], Finished] = {}
        self.reset()

    # -- the trees ----------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Back to no sharing."""
        self._slab = Slab(
            *(array if name in _BY_ITEM | _FOR_ALL else array.copy() for name, array in self._base._asdict().items())
        )
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
        return self._slab.cost

    @property
    def cost(self) -> float:
        """Cost of all trees, without what they share."""
        return float(self._slab.cost[self.alive].sum())

    def compose(self, slot: int, items: Iterable[int]) -> None:
        """Put a tree of ``items`` into ``slot``."""
        slab, base = self._slab, self._base
        chosen = list(items)
        self.members[slot] = chosen
        if not chosen:
            self.alive[slot] = False
            return
        rows = np.array(chosen)
        slab.items[slot] = len(chosen)
        slab.first_item[slot] = chosen[0]
        for name in ("rates", "own_hits", "windows_per_edge", "answers"):
            getattr(slab, name)[slot] = getattr(base, name)[rows].sum()
        slab.marks[slot] = np.bitwise_or.reduce(base.marks[rows], axis=0)
        slab.ranges[slot] = np.bitwise_or.reduce(base.ranges[rows], axis=0)
        slab.hits[slot] = common_bits(slab.marks, slot, slot, slab.marks.shape[1])
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
        part._base = Slab(*(array if name in _FOR_ALL else array[rows] for name, array in self._base._asdict().items()))
        part._base.first_item[:] = np.arange(rows.size)
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
        savings, partners, found = best_partners(self._slab, self._prices, slot, others, floor, most)
        return list(zip(savings[:found].tolist(), partners[:found].tolist(), strict=True))

    def weave(self, slot: int, other: int) -> None:
        """Merge the tree in ``other`` into the one in ``slot``."""
        slab = self._slab
        rate = float(self._woven_rates(slot, np.array([other]))[0])
        self.members[slot] = self.members[slot] + self.members[other]
        self.members[other] = []
        self.alive[other] = False
        for name in ("items", "rates", "own_hits", "windows_per_edge", "answers"):
            column = getattr(slab, name)
            column[slot] += column[other]
        slab.marks[slot] |= slab.marks[other]
        slab.ranges[slot] |= slab.ranges[other]
        slab.hits[slot] = common_bits(slab.marks, slot, slot, slab.marks.shape[1])
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
                rate = replace(rate, guess=float(self._slab.rate[-1]))
            ranges = sorted({one for item in chosen for one in item.ranges})
            per_edge = overlap(self.technique, sum(item.windows_per_edge for item in chosen), ranges, float(rate.value))
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
        return float(slab.rates[slot] - self.horizon.per_second * (slab.own_hits[slot] - slab.hits[slot]))

    def _price(self, slot: int, rate: float) -> None:
        slab = self._slab
        slab.rate[slot] = rate
        overlap = woven_overlap(slab, self._prices, slot, slot, rate)
        slab.cost[slot] = self.model.tree(rate, overlap, slab.answers[slot])

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
            self.horizon.words // 8 if len(self.items) > _GLANCE_FROM else 0,
        )

    def _lay_out(self) -> Slab:
        """One row an item, and a spare one."""
        rows, items, horizon = len(self.items) + 1, self.items, self.horizon
        steps = np.array([item.progressions[0].step // horizon.unit for item in items] + [1])
        offsets, first_bits = np.full((rows, 2), -1), np.full((rows, 2), -1)
        marks = np.zeros((rows, horizon.words), dtype=np.uint64)
        for row, item in enumerate(items):
            for column, one in enumerate(item.progressions):
                offsets[row, column] = one.offset // horizon.unit
                if horizon.instants is None:
                    first_bits[row, column] = (one.offset - horizon.start) % one.step // horizon.unit
            horizon.mark(item.progressions, marks[row])
        distinct, step_index = np.unique(steps, return_inverse=True)
        gcds = np.gcd.outer(distinct, distinct) if distinct.size <= _MOST_GCDS else np.zeros((0, 0), dtype=np.int64)
        all_ranges, ranges = self._range_bits()
        zero = np.zeros(rows, dtype=np.int64)
        hits = np.array([common_bits(marks, row, row, marks.shape[1]) for row in range(rows)])
        rates = np.array([MICROSECONDS * len(item.progressions) / item.progressions[0].step for item in items] + [0.0])
        slab = Slab(
            items=zero + 1,
            rate=rates.copy(),
            cost=np.zeros(rows),
            rates=rates,
            own_hits=hits,
            hits=hits.copy(),
            windows_per_edge=np.array([item.windows_per_edge for item in items] + [0.0]),
            answers=np.array([item.answers for item in items] + [0.0]),
            first_item=np.arange(rows),
            marks=marks,
            ranges=ranges,
            steps=steps,
            offsets=offsets,
            first_bits=first_bits,
            step_index=step_index,
            gcds=gcds,
            bits=horizon.words * 64 if horizon.instants is not None else horizon.length // horizon.unit,
            all_ranges=all_ranges,
        )
        self._slab = slab
        for row in range(rows - 1):
            self._price(row, float(rates[row]))
        return slab

    def _range_bits(self) -> tuple[Floats, np.ndarray[tuple[int, int], np.dtype[np.uint64]]]:
        rows = len(self.items) + 1
        if self.technique is Technique.PANES:
            return np.zeros(1), np.zeros((rows, 1), dtype=np.uint64)
        every = sorted({one for item in self.items for one in item.ranges})
        place = {one: at for at, one in enumerate(every)}
        bits = np.zeros((rows, -(-len(every) // 64)), dtype=np.uint64)
        for row, item in enumerate(self.items):
            flags = np.zeros(bits.shape[1] * 64, dtype=np.bool_)
            flags[[place[one] for one in item.ranges]] = True
            bits[row] = np.packbits(flags, bitorder="little").view(np.uint64)
        return np.array(every) / MICROSECONDS, bits


_BY_ITEM = frozenset(("steps", "offsets", "first_bits", "step_index"))
_FOR_ALL = frozenset(("gcds", "bits", "all_ranges"))
