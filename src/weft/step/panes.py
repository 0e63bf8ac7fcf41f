"""Slices put together into ever coarser panes, key by key in time order, and the windows over them.

The panes of one query's slicing are made from the coarsest that are fine enough; what several queries need, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numba import njit

from weft.algebra.measure import Decoded
from weft.algebra.monoids import max_int
from weft.algebra.numbers import Array, Columns, DataError
from weft.evaluate.bulk import prefix, reduce_segments
from weft.plan.model import Partial, Predicate
from weft.query.limits import DEFAULT, Limits
from weft.slicing.progression import Progression
from weft.slicing.window import LEAST, MOST, Window
from weft.step.slices import Stretch


class Measured(Protocol):
    """Panes of one slicing, wherever they are kept."""

    @property
    def keys(self) -> Array:
        """The number of the key of each pane; never falls."""

    @property
    def numbers(self) -> Array:
        """The number of each pane; rises within a key."""

    def measure(self, partial: Partial, predicate: Predicate) -> Decoded:
        """One partial over every pane."""

    def prefix(self, partial: Partial, predicate: Predicate) -> Columns:
        """One invertible partial over everything up to each pane."""


@dataclass
class Panes:
    """The panes of one slicing: pane k covers a slide, or, where windows end inside a slide, one of its two parts."""

    finer: Stretch
    numbers: Array
    """The number of each pane."""
    pointers: Array
    """Where in ``finer`` each pane begins, and the end of the last."""
    keys: Array
    starts: Array
    _measured: dict[tuple[Partial, Predicate], Decoded] = field(default_factory=dict)
    _prefixes: dict[tuple[Partial, Predicate], Columns] = field(default_factory=dict)

    @classmethod
    def of(cls, finer: Stretch, window: Window) -> Panes:
        """Put stretches together that lie in the same pane of ``window``."""
        numbers = window.pane_numbers(finer.starts)
        firsts = group_starts(finer.keys, numbers)
        pointers = np.append(firsts, len(numbers))
        return cls(finer, numbers[firsts], pointers, finer.keys[firsts], finer.starts[firsts])

    @classmethod
    def cut(cls, finer: Stretch, progressions: Sequence[Progression]) -> Panes:
        """Put stretches together that no edge of ``progressions`` parts: the slices of a tree."""
        numbers = last_edges(finer.starts, progressions)
        firsts = group_starts(finer.keys, numbers)
        return cls(finer, numbers[firsts], np.append(firsts, len(numbers)), finer.keys[firsts], finer.starts[firsts])

    @classmethod
    def whole(cls, finer: Stretch) -> Panes:
        """Put the shards of each slice together."""
        firsts = group_starts(finer.keys, finer.starts)
        starts = finer.starts[firsts]
        return cls(finer, starts, np.append(firsts, len(finer.keys)), finer.keys[firsts], starts)

    def measure(self, partial: Partial, predicate: Predicate) -> Decoded:
        """One partial over every pane."""
        wanted = (partial, predicate)
        if wanted not in self._measured:
            fine = self.finer.measure(partial, predicate)
            self._measured[wanted] = self._merge(fine)
        return self._measured[wanted]

    def prefix(self, partial: Partial, predicate: Predicate) -> Columns:
        """One invertible partial over everything up to each pane: shared by all ranges."""
        wanted = (partial, predicate)
        if wanted not in self._prefixes:
            measured = self.measure(partial, predicate)
            self._prefixes[wanted] = prefix(measured.monoid, measured.values)
        return self._prefixes[wanted]

    def _merge(self, fine: Decoded) -> Decoded:
        if len(self.numbers) == len(self.finer.keys):
            return fine
        valid = fine.valid
        if valid is not None:
            (valid,) = reduce_segments(max_int, (valid,), self.pointers)
        return fine.having(reduce_segments(fine.monoid, fine.values, self.pointers), valid)


def last_edges(starts: Array, progressions: Sequence[Progression]) -> Array:
    """The last edge at or before each start.

    Looked up among all edges there are in that time; where they are more than the starts, computed for each.

    Examples
    --------
    >>> last_edges(np.array([4, 9, 15]), [Progression(7, 2), Progression(12)]).tolist()
    [2, 9, 12]
    """
    first, last = int(starts.min()), int(starts.max())
    if sum((last - first) // edge.step + 1 for edge in progressions) <= len(starts):
        turns = [np.arange(first - (first - edge.offset) % edge.step, last + 1, edge.step) for edge in progressions]
        edges = np.unique(np.concatenate(turns))
        return edges[np.searchsorted(edges, starts, side="right") - 1]
    found = np.full(len(starts), np.iinfo(np.int64).min)
    for edge in progressions:
        raise_to_edge(starts, edge.step, edge.offset, found)
    return found


@njit(cache=True, nogil=True)
def raise_to_edge(starts: Array, step: int, offset: int, last: Array) -> None:
    """Raise each of ``last`` to the last edge of a progression at or before its start.

    Examples
    --------
    >>> last = np.zeros(3, np.int64)
    >>> raise_to_edge(np.array([4, 9, 15]), 7, 2, last)
    >>> last.tolist()
    [2, 9, 9]
    """
    for i in range(len(starts)):
        last[i] = max(last[i], starts[i] - (starts[i] - offset) % step)


@njit(cache=True, nogil=True)
def group_starts(keys: Array, numbers: Array) -> Array:
    """Where a new key or a new pane begins."""
    firsts = np.empty(len(keys), np.int64)
    found = 0
    for i in range(len(keys)):
        if i == 0 or keys[i] != keys[i - 1] or numbers[i] != numbers[i - 1]:
            firsts[found] = i
            found += 1
    return firsts[:found].copy()


@dataclass(frozen=True)
class WindowRows:
    """Which windows appear: an entry an answer, key by key, windows rising."""

    keys: Array
    windows: Array
    """The number of each window: it starts at ``offset + number * slide``."""
    lo: Array
    hi: Array

    @cached_property
    def distinct(self) -> Array:
        """The numbers of the distinct windows, rising."""
        if not len(self.windows):
            return self.windows
        least, most = int(self.windows.min()), int(self.windows.max())
        if most - least > 8 * len(self.windows):
            return np.unique(self.windows)
        seen = np.zeros(most - least + 1, np.bool_)
        seen[self.windows - least] = True
        return np.flatnonzero(seen) + least


def windows_of(
    panes: Measured,
    window: Window,
    bounds: tuple[int, int] = (LEAST, MOST),
    limits: Limits = DEFAULT,
) -> WindowRows:
    """Every window that holds at least one pane, for every key, if its number lies between the bounds."""
    step, width = window.extent
    least, most = bounds
    count = count_windows(panes.keys, panes.numbers, step, width, least, most)
    beyond = limits.beyond("answers", count, f"it would give {count:,} answers")
    if beyond is not None:
        raise DataError(beyond)
    keys, numbers = np.empty(count, np.int32), np.empty(count, np.int64)
    lo, hi = np.empty(count, np.int64), np.empty(count, np.int64)
    fill_windows(panes.keys, panes.numbers, step, width, least, most, keys, numbers, lo, hi)
    lo.flags.writeable = hi.flags.writeable = False
    return WindowRows(keys, numbers, lo, hi)


@njit(cache=True, nogil=True)
def count_windows(keys: Array, numbers: Array, step: int, width: int, least: int, most: int) -> Any:
    """How many windows hold at least one pane, of those numbered from ``least`` to ``most``."""
    total = 0
    last = 0
    for i in range(len(keys)):
        first = max(-((width - 1 - numbers[i]) // step), least)
        if i > 0 and keys[i] == keys[i - 1]:
            first = max(first, last + 1)
        newest = min(numbers[i] // step, most)
        if newest >= first:
            total += newest - first + 1
            last = newest
        elif i == 0 or keys[i] != keys[i - 1]:
            last = newest
    return total


@njit(cache=True, nogil=True)
def fill_windows(
    keys: Array,
    numbers: Array,
    step: int,
    width: int,
    least: int,
    most: int,
    out_keys: Array,
    out_windows: Array,
    out_lo: Array,
    out_hi: Array,
) -> None:
    """Write down every window from ``least`` to ``most`` that holds at least one pane, with the panes it covers."""
    n = len(keys)
    answer = 0
    begin = 0
    while begin < n:
        end = begin
        while end < n and keys[end] == keys[begin]:
            end += 1
        lo = hi = begin
        window = max(-((width - 1 - numbers[begin]) // step), least)
        newest = min(numbers[end - 1] // step, most)
        while window <= newest:
            from_pane = window * step
            while lo < end and numbers[lo] < from_pane:
                lo += 1
            while hi < end and numbers[hi] < from_pane + width:
                hi += 1
            if lo >= hi:
                # nothing here: on to the first window that reaches the next pane
                window = max(window + 1, -((width - 1 - numbers[hi]) // step))
                continue
            out_keys[answer] = keys[begin]
            out_windows[answer] = window
            out_lo[answer] = lo
            out_hi[answer] = hi
            answer += 1
            window += 1
        begin = end
