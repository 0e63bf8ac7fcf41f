"""Slices of one bucket, key by key in time order: all of a grouping, those that a predicate lets through, or merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.measure import Decoded
from weft.algebra.monoids import max_int
from weft.algebra.numbers import Array, flatten
from weft.evaluate.bulk import reduce_segments
from weft.plan.model import Grouping, Partial, Predicate
from weft.step.key_codes import row_codes, value_codes


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


@dataclass
class Slices:
    """All slices of a grouping in one bucket, sorted by key and time."""

    grouping: Grouping
    table: pa.Table
    keys: Array
    starts: Array
    order: Array
    """Where in the table each slice stands."""
    _decoded: dict[tuple[str, ...], Decoded] = field(default_factory=dict)
    _signatures: dict[str, Array] = field(default_factory=dict)
    _decoding: Lock = field(default_factory=Lock)
    """Predicates are worked on side by side, and all decode the same."""

    @classmethod
    def of(cls, grouping: Grouping, table: pa.Table, numbers: Array, rows: Array) -> Slices:
        """Sort slices, the rows ``rows`` of a table, by the numbers of their keys and by time.

        Shards of a slice stand in a fixed order too, so that every run merges doubles and breaks ties alike.
        """
        starts = np.asarray(taken(table, grouping.slice_column, rows))
        order, _ = shard_order([numbers, starts, *signatures_of(grouping, table, rows)])
        return cls(grouping, table, numbers[order], starts[order], rows[order])

    def measure(self, partial: Partial, predicate: Predicate) -> Decoded:
        """The partial's columns in the order of keys and time; identities where the predicate's bit is not set."""
        decoded = self.decoded(partial, predicate)
        if predicate.everything or self.grouping.conditional:
            return decoded
        return only_where(decoded, self.passes(predicate))

    def decoded(self, partial: Partial, predicate: Predicate) -> Decoded:
        """The partial's columns as numbers, whether or not the predicate's bit is set."""
        names = self._names(partial, predicate)
        with self._decoding:
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
class Shards(Slices):
    """Slices merged as far as predicates allow: one a key, start and signature, in this order.

    The slices of a batch have all keys of their grouping; queries by some of the keys need far fewer.
    """

    fine: Slices | None = None
    pointers: Array | None = None

    @classmethod
    def of(cls, grouping: Grouping, table: pa.Table, numbers: Array, rows: Array) -> Shards:
        """Merge slices whose keys are numbered already."""
        starts = np.asarray(taken(table, grouping.slice_column, rows))
        order, firsts = shard_order([numbers, starts, *signatures_of(grouping, table, rows)])
        fine = Slices(grouping, table, numbers[order], starts[order], rows[order])
        pointers = np.append(firsts, len(order))
        return cls(
            grouping, table, fine.keys[firsts], fine.starts[firsts], fine.order[firsts], fine=fine, pointers=pointers
        )

    def decoded(self, partial: Partial, predicate: Predicate) -> Decoded:
        """The partial's columns, whether or not the predicate's bit is set."""
        assert self.fine is not None and self.pointers is not None
        names = self._names(partial, predicate)
        if names not in self._decoded:
            self._decoded[names] = reduce(self.fine.decoded(partial, predicate), self.pointers)
        return self._decoded[names]

    def columns(self, partial: Partial, predicate: Predicate) -> list[pa.Array]:
        """The columns that were merged: numbers of rows are numbers of these."""
        assert self.fine is not None
        return self.fine.columns(partial, predicate)

    def passes(self, predicate: Predicate) -> Array:
        """Which slices hold rows that satisfy ``predicate``."""
        assert self.fine is not None and self.pointers is not None
        if not self.grouping.conditional:
            return super().passes(predicate)
        held: Array = np.logical_or.reduceat(self.fine.passes(predicate), self.pointers[:-1])
        return held


def signatures_of(grouping: Grouping, table: pa.Table, rows: Array) -> list[Array]:
    """Which predicates the rows of each slice satisfy."""
    return [np.asarray(taken(table, name, rows)) for name, _ in grouping.signatures]


def taken(table: pa.Table, column: str, rows: Array) -> pa.Array:
    """Some rows of a column, in the order of ``rows``."""
    return pc.take(flatten(table.column(column)), pa.array(rows), boundscheck=False)


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


def reduce(fine: Decoded, pointers: Array) -> Decoded:
    """Stretches of rows merged."""
    if len(pointers) - 1 == len(fine.values[0]):
        return fine
    valid = fine.valid
    if valid is not None:
        (valid,) = reduce_segments(max_int, (valid,), pointers)
    return fine.having(reduce_segments(fine.monoid, fine.values, pointers), valid)


def shard_order(columns: Sequence[Array]) -> tuple[Array, Array]:
    """The order by some columns, the first counting most, and where in that order something new begins.

    Examples
    --------
    >>> [found.tolist() for found in shard_order([np.array([1, 0, 1]), np.array([5, 9, 5])])]
    [[1, 0, 2], [0, 1]]
    """
    codes = np.zeros(len(columns[0]), np.int64)
    room = 1
    for column in columns:
        numbers, distinct = pd.factorize(column, sort=True)
        room *= len(distinct)
        if room >= 2**62:
            order = np.lexsort(tuple(reversed(columns)))
            break
        codes = codes * len(distinct) + numbers
    else:
        order = np.argsort(codes, kind="stable")
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(new)


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
    codes, _ = value_codes(columns[0]) if len(columns) == 1 else row_codes(map(value_codes, columns), length)
    _, rows, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return numbers.astype(np.int64), rows.astype(np.int64)
