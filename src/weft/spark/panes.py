"""Slices of one bucket, put together into ever coarser panes, key by key in time order.

Three kinds of the same thing: all slices of a grouping, those of them that a predicate lets through, and the panes of
one query's slicing, each made from the coarsest that is fine enough. What several queries need is made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from weft.algebra.lower import DataError
from weft.algebra.measures import Array, Decoded, flatten
from weft.algebra.monoids import max_int
from weft.evaluate.bulk import prefix, reduce_segments
from weft.evaluate.columns import Columns
from weft.plan.model import Grouping, Partial, Predicate, key_column
from weft.query.limits import DEFAULT, Limits
from weft.query.model import Expression, Window
from weft.slicing.progression import Progression
from weft.spark.emission import LEAST, MOST


class LimitError(DataError):
    """A query would cause more than any may."""


class Stretch(Protocol):
    """Stretches of time with their keys: slices or panes."""

    @property
    def keys(self) -> Array:
        """The number of the key of each stretch; never falls."""

    @property
    def starts(self) -> Array:
        """Where each begins, in microseconds; rises within a key."""

    def measure(self, partial: Partial, predicate: Predicate) -> Decoded:
        """One partial over every stretch, as far as the predicate lets rows through."""


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
class Slices:
    """All slices of a grouping in one bucket, sorted by key and time."""

    grouping: Grouping
    table: pa.Table
    key_values: dict[Expression, pa.Array]
    """The distinct keys of the bucket, an array a key."""
    keys: Array
    starts: Array
    order: Array
    """Where in the table each slice stands."""
    _decoded: dict[tuple[str, ...], Decoded] = field(default_factory=dict)
    _signatures: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, grouping: Grouping, table: pa.Table, by: Sequence[Expression], rows: Array | None = None) -> Slices:
        """Number the keys ``by``, which may be some or all of the grouping's, and sort the slices by key and time.

        All rows of the table are slices of the grouping, or those that ``rows`` names.
        """
        rows = np.arange(len(table)) if rows is None else rows
        columns = [taken(table, key_column(key), rows) for key in by]
        numbers, distinct = number_rows(columns, len(rows))
        starts = np.asarray(taken(table, grouping.slice_column, rows))
        # shards of a slice in a fixed order too, so that every run merges doubles and breaks ties alike
        shards = [np.asarray(taken(table, name, rows)) for name, _ in grouping.signatures]
        order = np.lexsort((*shards, starts, numbers))
        values = {key: column.take(pa.array(distinct)) for key, column in zip(by, columns, strict=True)}
        return cls(grouping, table, values, numbers[order], starts[order], rows[order])

    def measure(self, partial: Partial, predicate: Predicate) -> Decoded:
        """The partial's columns in the order of keys and time; identities where the predicate's bit is not set."""
        decoded = self.decoded(partial, predicate)
        if predicate.everything or self.grouping.conditional:
            return decoded
        return only_where(decoded, self.passes(predicate))

    def decoded(self, partial: Partial, predicate: Predicate) -> Decoded:
        """The partial's columns as numbers, whether or not the predicate's bit is set."""
        names = self._names(partial, predicate)
        if names not in self._decoded:
            self._decoded[names] = partial.measure.decode(self.columns(partial, predicate))
        return self._decoded[names]

    def columns(self, partial: Partial, predicate: Predicate) -> list[pa.Array]:
        """The partial's columns as Spark made them, in the order of keys and time."""
        return [taken(self.table, name, self.order) for name in self._names(partial, predicate)]

    def _names(self, partial: Partial, predicate: Predicate) -> tuple[str, ...]:
        return partial.columns(predicate if self.grouping.conditional and not predicate.everything else None)

    def passes(self, predicate: Predicate) -> Array:
        """Which slices hold rows that satisfy ``predicate``."""
        if self.grouping.conditional:
            counts: Array = np.asarray(taken(self.table, predicate.name, self.order))
            return counts > 0
        column, bit = self.grouping.bit(predicate)
        if column not in self._signatures:
            self._signatures[column] = np.asarray(taken(self.table, column, self.order))
        passing: Array = self._signatures[column] & np.int64(1 << bit) != 0
        return passing


def taken(table: pa.Table, column: str, rows: Array) -> pa.Array:
    """Some rows of a column, in the order of ``rows``."""
    return pc.take(flatten(table.column(column)), pa.array(rows), boundscheck=False)


@dataclass
class Passing:
    """The slices that a query's WHERE lets through."""

    slices: Slices
    predicate: Predicate
    chosen: Array
    keys: Array
    starts: Array

    @classmethod
    def of(cls, slices: Slices, predicate: Predicate) -> Passing:
        """Those of ``slices`` that hold rows which satisfy ``predicate``."""
        chosen = np.flatnonzero(slices.passes(predicate))
        return cls(slices, predicate, chosen, slices.keys[chosen], slices.starts[chosen])

    def measure(self, partial: Partial, predicate: Predicate) -> Decoded:
        """One partial over every slice that passes."""
        passing = take(self.slices.decoded(partial, predicate), self.chosen)
        if predicate == self.predicate or self.slices.grouping.conditional:
            return passing
        return only_where(passing, self.slices.passes(predicate)[self.chosen])


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
        numbers = pane_numbers(finer.starts, window.slide, window.start, window.fragment)
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


def take(decoded: Decoded, rows: Array) -> Decoded:
    """The same measure for some of the rows."""
    valid = None if decoded.valid is None else decoded.valid[rows]
    return decoded.having(tuple([column[rows] for column in decoded.values]), valid)


def only_where(decoded: Decoded, passes: Array) -> Decoded:
    """Identities where ``passes`` is false."""
    if passes.all():
        return decoded
    values = tuple(
        np.where(passes, column, np.asarray(identity, dtype=column.dtype))
        for column, identity in zip(decoded.values, decoded.monoid.identity, strict=True)
    )
    valid = passes.astype(np.int64) if decoded.valid is None else decoded.valid * passes
    return decoded.having(values, valid)


def number_rows(columns: Sequence[pa.Array], length: int) -> tuple[Array, Array]:
    """Number the distinct rows of ``columns`` from 0, NULL equal to NULL: the rows' numbers, and a row of each number.

    Examples
    --------
    >>> numbers, rows = number_rows([pa.array(["b", None, "b"])], 3)
    >>> numbers.tolist(), rows.tolist()
    ([0, 1, 0], [0, 1])
    """
    if not columns:
        return np.zeros(length, np.int64), np.zeros(min(length, 1), np.int64)
    codes = np.zeros(length, np.int64)
    for position, column in enumerate(columns):
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * max(len(encoded.dictionary), 1) + np.asarray(encoded.indices).astype(np.int64)
        if position:
            # dense again, so that the product of many columns cannot overflow
            codes = np.unique(codes, return_inverse=True)[1]
    _, rows, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return numbers.astype(np.int64), rows.astype(np.int64)


@njit(cache=True, nogil=True)
def pane_numbers(starts: Array, slide: int, offset: int, fragment: int) -> Array:
    """The pane that each instant lies in: slide k is pane k, or panes 2k and 2k + 1 if windows end inside a slide.

    Examples
    --------
    >>> pane_numbers(np.array([-1, 0, 3, 9]), 9, 0, 0).tolist()
    [-1, 0, 0, 1]
    >>> pane_numbers(np.array([-1, 0, 3, 9]), 9, 0, 3).tolist()
    [-1, 0, 1, 2]
    """
    numbers = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        since = starts[i] - offset
        turn = since // slide
        if fragment == 0:
            numbers[i] = turn
        else:
            numbers[i] = 2 * turn + (1 if since - turn * slide >= fragment else 0)
    return numbers


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
class Answers:
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
) -> Answers:
    """Every window that holds at least one pane, for every key, if its number lies between the bounds."""
    step, width = extent(window)
    least, most = bounds
    count = count_windows(panes.keys, panes.numbers, step, width, least, most)
    beyond = limits.beyond("answers", count, f"it would give {count:,} answers")
    if beyond is not None:
        raise LimitError(beyond)
    keys, numbers = np.empty(count, np.int32), np.empty(count, np.int64)
    lo, hi = np.empty(count, np.int64), np.empty(count, np.int64)
    fill_windows(panes.keys, panes.numbers, step, width, least, most, keys, numbers, lo, hi)
    return Answers(keys, numbers, lo, hi)


def extent(window: Window) -> tuple[int, int]:
    """How many panes lie between the starts of two windows, and how many a window covers.

    Examples
    --------
    >>> extent(Window(range=30, slide=10)), extent(Window(range=35, slide=10)), extent(Window(range=3, slide=10))
    ((1, 3), (2, 7), (2, 1))
    """
    whole = window.range // window.slide
    return (2, 2 * whole + 1) if window.fragment else (1, whole)


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
