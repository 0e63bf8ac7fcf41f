"""Panes that are kept from batch to batch: a cache of what the open windows of one slicing need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numba import njit

from weft.algebra.measure import Decoded
from weft.algebra.monoids import add_int, add_wide, max_int
from weft.algebra.numbers import Array, Columns
from weft.evaluate.bulk import merge_segments, prefix
from weft.evaluate.columns import identity_columns
from weft.plan.model import BoundQuery, Partial, Predicate
from weft.step.panes import Panes, group_starts
from weft.step.slices import Slices, reduce, take

Asked = tuple[Partial, Predicate]
NARROW = 2.0**62
"""Sums that stay below it in total fit 64 bits, whatever window is cut out of them."""


class KeptPanes:
    """The panes of one slicing, key by key in time order, with every partial that its queries ask for."""

    def __init__(self, asked: Iterable[Asked] = ()) -> None:
        self.asked: tuple[Asked, ...] = tuple(dict.fromkeys(asked))
        self.keys: Array = np.empty(0, np.int64)
        self.numbers: Array = np.empty(0, np.int64)
        self.starts = self.numbers
        self._kept: dict[Asked, Decoded] = {}
        self._texts: dict[Asked, list[pa.Array]] = {}
        """Values that are compared by ranks, or carried, as Arrow: ranks mean nothing in the next batch."""
        self._prefixes: dict[Asked, Columns] = {}
        self._errors: dict[Asked, Exception] = {}
        """What went wrong with a partial: only queries that ask for it have no answers any more."""

    @classmethod
    def of(cls, queries: Iterable[BoundQuery]) -> KeptPanes:
        """Panes with all that some queries ask for."""
        return cls(
            (partial, query.predicate_of(call))
            for query in queries
            for call in query.calls
            for partial in call.partials
        )

    def measure(self, partial: Partial, predicate: Predicate) -> Decoded:
        """One partial over every pane."""
        asked = (partial, predicate)
        if asked in self._errors:
            raise self._errors[asked]
        if asked in self._texts:
            return partial.measure.decode(self._texts[asked])
        return self._kept[asked]

    def prefix(self, partial: Partial, predicate: Predicate) -> Columns:
        """One invertible partial over everything up to each pane: shared by all ranges."""
        asked = (partial, predicate)
        if asked not in self._prefixes:
            measured = self.measure(partial, predicate)
            self._prefixes[asked] = prefix(measured.monoid, measured.values)
        return self._prefixes[asked]

    def absorb(self, fresh: Panes, slices: Slices, least: int) -> None:
        """Take new panes in, which were made from ``slices``; forget those numbered below ``least``."""
        order = merge_order(self.keys, self.numbers, fresh.keys, fresh.numbers, least)
        keys = np.concatenate((self.keys, fresh.keys))[order]
        numbers = np.concatenate((self.numbers, fresh.numbers))[order]
        firsts = group_starts(keys, numbers)
        pointers = np.append(firsts, len(order))
        known = len(self.keys)
        for asked in self.asked:
            if asked in self._errors:
                continue
            try:
                measured = fresh.measure(*asked)
                if measured.dictionary is not None:
                    self._absorb_texts(asked, measured, slices, order, pointers)
                else:
                    older = self._kept[asked] if known else measured.having(identity_columns(measured.monoid, 0), None)
                    self._kept[asked] = merged(asked[0], older, measured, order, pointers)
            except Exception as error:
                self._errors[asked] = error
        self.keys, self.numbers = keys[firsts], numbers[firsts]
        self._prefixes = {}

    def _absorb_texts(self, asked: Asked, measured: Decoded, slices: Slices, order: Array, pointers: Array) -> None:
        measure = asked[0].measure
        columns = measure.encode(measured, slices.columns(*asked))
        if asked in self._texts:
            columns = [pa.concat_arrays(pair) for pair in zip(self._texts[asked], columns, strict=True)]
        merged = reduce(take(measure.decode(columns), order), pointers)
        self._texts[asked] = measure.encode(merged, columns)


def merged(partial: Partial, old: Decoded, new: Decoded, order: Array, pointers: Array) -> Decoded:
    """The same measure of two sets of rows, put together in numbers that are wide enough for both."""
    narrow = new.monoid is add_int and partial.measure.monoid is add_wide
    if old.monoid is not new.monoid or (narrow and magnitude(old) + magnitude(new) >= NARROW):
        old, new = widened(old), widened(new)
    valid = None
    if old.valid is not None or new.valid is not None:
        sides = [np.ones(len(one.values[0]), np.int64) if one.valid is None else one.valid for one in (old, new)]
        (valid,) = merge_segments(max_int, (sides[0],), (sides[1],), order, pointers)
    return new.having(merge_segments(new.monoid, old.values, new.values, order, pointers), valid)


def magnitude(decoded: Decoded) -> float:
    """How far from zero all sums of 64 bits together could be."""
    return float(np.abs(decoded.values[0].astype(np.float64)).sum())


def widened(decoded: Decoded) -> Decoded:
    """Sums in 64 bits as sums in 128."""
    if decoded.monoid is not add_int:
        return decoded
    (value,) = decoded.values
    return replace(decoded, monoid=add_wide, values=(value >> 63, value.astype(np.uint64)))


@njit(cache=True, nogil=True)
def merge_order(keys: Array, numbers: Array, new_keys: Array, new_numbers: Array, least: int) -> Array:
    """How rows of two sorted lists follow each other, without those below ``least``; of equals the older first.

    Examples
    --------
    >>> a = np.array([0, 0, 1]), np.array([4, 5, 5])
    >>> merge_order(*a, np.array([0, 2]), np.array([5, 7]), 5).tolist()
    [1, 3, 2, 4]
    """
    n, m = len(keys), len(new_keys)
    order = np.empty(n + m, np.int64)
    i = j = out = 0
    while i < n or j < m:
        older = j >= m or (
            i < n and (keys[i] < new_keys[j] or (keys[i] == new_keys[j] and numbers[i] <= new_numbers[j]))
        )
        if older:
            if numbers[i] >= least:
                order[out] = i
                out += 1
            i += 1
        else:
            if new_numbers[j] >= least:
                order[out] = n + j
                out += 1
            j += 1
    return order[:out].copy()
