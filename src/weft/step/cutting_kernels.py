"""Kernels that make slices of rows: where slices start, which rows belong together, and their values merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from weft.algebra.monoid import Monoid
from weft.algebra.monoids import MONOIDS, argmax_tied, argmin_tied
from weft.algebra.numbers import Array, Columns
from weft.evaluate.columns import frozen, identity_columns, load, store
from weft.evaluate.compile import bind, merge
from weft.slicing.progression import Progression

NONE = np.int32(-1)
"""The group of rows that belong to none."""
FAMILY = np.uint64(0x9E3779B97F4A7C15)
"""Spreads codes over a hash table: 2**64 over the golden ratio."""
TIED = (argmin_tied, argmax_tied)


@dataclass(frozen=True, slots=True)
class Numbered:
    """Values as numbers from 0 below ``room``, equal ones alike."""

    numbers: Array
    room: int


@dataclass(frozen=True, slots=True)
class Edges:
    """Progressions by step, each step's offsets rising: what the kernel takes."""

    steps: Array
    pointers: Array
    offsets: Array

    @classmethod
    def of(cls, progressions: Iterable[Progression]) -> Edges:
        """The edges of a slicing."""
        by_step: dict[int, set[int]] = {}
        for one in progressions:
            by_step.setdefault(one.step, set()).add(one.offset)
        offsets = [sorted(some) for some in by_step.values()]
        return cls(
            np.array(list(by_step), np.int64),
            np.cumsum([0, *map(len, offsets)], dtype=np.int64),
            np.array([offset for some in offsets for offset in some], np.int64),
        )

    def starts(self, times: Array) -> Array:
        """The last edge at or before each instant.

        Examples
        --------
        >>> edges = Edges.of([Progression(step=10), Progression(step=10, offset=3), Progression(step=7)])
        >>> edges.starts(np.array([0, 4, 9, 12, -1, -8])).tolist()
        [0, 3, 7, 10, -7, -10]
        """
        out = np.empty(len(times), np.int64)
        times, steps, pointers, offsets = frozen((times, self.steps, self.pointers, self.offsets))
        last_edges(times, steps, pointers, offsets, out)
        return out


@njit(cache=True, nogil=True)
def last_edges(times: Array, steps: Array, pointers: Array, offsets: Array, out: Array) -> None:
    """Write the last edge at or before each instant; instants of one slice that follow each other are found at once.

    One division a step: how long ago the last edge of a step was tells when the next one comes.
    """
    start, end = np.int64(0), np.int64(0)  # the slice that was found last; empty at first
    for row in range(len(times)):
        time = times[row]
        if time < start or time >= end:
            ago, ahead = np.int64(2**62), np.int64(2**62)
            for at in range(len(steps)):
                step = steps[at]
                since = time % step  # of the divisor's sign, so never negative
                low, high = pointers[at], pointers[at + 1]
                before = offsets[high - 1] - step
                after = offsets[low] + step
                for place in range(low, high):
                    if offsets[place] <= since:
                        before = offsets[place]
                    else:
                        after = offsets[place]
                        break
                ago = min(ago, since - before)
                ahead = min(ahead, after - since)
            start, end = time - ago, time + ahead
        out[row] = start


def numbered(codes: Array, room: int | None = None) -> tuple[Array, Array]:
    """Number distinct codes in the order in which they come: the number of each row, and a row of each number.

    Rows of negative codes are left out, with -1 as their number. Codes below a small ``room`` need no hash table.

    Examples
    --------
    >>> [found.tolist() for found in numbered(np.array([7, 3, -1, 7]))]
    [[0, 1, -1, 0], [0, 1]]
    >>> [found.tolist() for found in numbered(np.array([7, 3, -1, 7]), room=8)]
    [[0, 1, -1, 0], [0, 1]]
    """
    groups, firsts = np.empty(len(codes), np.int32), np.empty(len(codes), np.int64)
    (codes,) = frozen((codes,))
    if room is not None and room <= max(4 * len(codes), 1 << 12):
        count = number_directly(codes, np.full(room, NONE), groups, firsts)
    else:
        count = number_by_hash(codes, groups, firsts)
    return groups, firsts[:count]


@njit(cache=True, nogil=True)
def number_directly(codes: Array, table: Array, groups: Array, firsts: Array) -> int:
    """Number codes by a table with a place for each."""
    count = 0
    for row in range(len(codes)):
        code = codes[row]
        if code < 0:
            groups[row] = NONE
            continue
        group = table[code]
        if group < 0:
            group = np.int32(count)
            table[code] = group
            firsts[count] = row
            count += 1
        groups[row] = group
    return count


@njit(cache=True, nogil=True)
def number_by_hash(codes: Array, groups: Array, firsts: Array) -> int:
    """Number codes by an open table that grows with what is in it."""
    bits, count = 12, 0
    table = np.full(1 << bits, NONE)
    for row in range(len(codes)):
        code = codes[row]
        if code < 0:
            groups[row] = NONE
            continue
        if row and code == codes[row - 1]:
            groups[row] = groups[row - 1]
            continue
        place = place_of(code, codes, table, bits, firsts)
        if table[place] < 0:
            if 2 * count >= len(table):
                bits += 2
                table = np.full(1 << bits, NONE)
                for group in range(count):
                    table[place_of(codes[firsts[group]], codes, table, bits, firsts)] = group
                place = place_of(code, codes, table, bits, firsts)
            table[place] = count
            firsts[count] = row
            count += 1
        groups[row] = table[place]
    return count


@njit(cache=True, nogil=True)
def place_of(code: int, codes: Array, table: Array, bits: int, firsts: Array) -> Any:
    """Where a code stands in a table, or the free place for it."""
    place = np.int64((np.uint64(code) * FAMILY) >> np.uint64(64 - bits))
    while table[place] >= 0 and codes[firsts[table[place]]] != code:
        place = (place + 1) & (len(table) - 1)
    return place


def combined(parts: Iterable[Numbered], length: int) -> Numbered:
    """Several numbers as one, made small again wherever there would be too many.

    Examples
    --------
    >>> combined([Numbered(np.array([0, 1, 0]), 2), Numbered(np.array([2, 2, 1]), 3)], 3).numbers.tolist()
    [2, 5, 1]
    """
    codes, room = np.zeros(length, np.int64), 1
    for part in parts:
        if part.room <= 1:
            continue
        if room * part.room >= 2**62:
            groups, firsts = numbered(codes)
            codes, room = groups.astype(np.int64), max(len(firsts), 1)
        combine(codes, part.room, frozen((part.numbers,))[0])
        room *= part.room
    return Numbered(codes, room)


@njit(cache=True, nogil=True)
def combine(codes: Array, room: int, others: Array) -> None:
    """Put numbers below ``room`` behind others."""
    for row in range(len(codes)):
        codes[row] = codes[row] * room + others[row]


def accumulated(monoid: Monoid, values: Columns, groups: Array, count: int) -> Columns:
    """Merge the values of each group, in the order of rows.

    Examples
    --------
    >>> accumulated(MONOIDS["add_int"], (np.array([3, 1, 4]),), np.array([0, -1, 0], np.int32), 2)
    (array([7, 0]),)
    """
    out = identity_columns(monoid, count)
    bind(_accumulate, monoid)(frozen(values), *frozen((groups,)), out)
    return out


def _accumulate(values: Columns, groups: Array, out: Columns) -> None:
    for row in range(len(groups)):
        group = groups[row]
        if group >= 0:
            store(out, group, merge(load(out, group), load(values, row)))


def marked(groups: Array, count: int, where: Array | None = None) -> Array:
    """Which groups have a row, or one ``where`` that is 1.

    Examples
    --------
    >>> marked(np.array([0, 1, -1], np.int32), 2, np.array([0, 1, 1])).tolist()
    [False, True]
    """
    out = np.zeros(count, np.bool_)
    (groups,) = frozen((groups,))
    if where is None:
        mark(groups, out)
    else:
        mark_where(groups, frozen((where,))[0], out)
    return out


@njit(cache=True, nogil=True)
def mark(groups: Array, out: Array) -> None:
    """Mark the groups that have a row."""
    for row in range(len(groups)):
        if groups[row] >= 0:
            out[groups[row]] = True


@njit(cache=True, nogil=True)
def mark_where(groups: Array, where: Array, out: Array) -> None:
    """Mark the groups that have a row where 1 stands."""
    for row in range(len(groups)):
        if groups[row] >= 0:
            out[groups[row]] |= where[row] == 1


STEPS = len(MONOIDS) + len(TIED)
"""Groups of kernels that are compiled one after another."""


def warm(report: Callable[[int], Any] = lambda done: None) -> None:
    """Compile every kernel into numba's cache on disk, so that no Spark task compiles one; tells how many are."""
    one = np.zeros(1, np.int64)
    Edges.of([Progression(step=1)]).starts(one)
    groups, _ = numbered(one, room=1)
    numbered(one)
    combined([Numbered(one, 2)], 1)
    marked(groups, 1)
    marked(groups, 1, one)
    for number, monoid in enumerate((*MONOIDS.values(), *TIED), start=1):
        accumulated(monoid, identity_columns(monoid, 1), groups, 1)
        report(number)
