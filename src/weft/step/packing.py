"""Slices on their way to the workers: numbers travel in two arrays, which costs half of what a column each would.

Spark writes Arrow value by value through a writer a column; an array has one writer for all its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from weft.algebra.numbers import Array, flatten

INTEGERS = "__weft_integers"
DOUBLES = "__weft_doubles"
NEAR = 128
"""Lists that are spread at a time: they stay in the processor's cache meanwhile."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Which columns travel in which array."""

    integers: tuple[str, ...]
    doubles: tuple[str, ...]

    def texts(self, columns: Sequence[str]) -> list[str]:
        """Some columns as Spark SQL, with arrays instead of those that travel in them.

        Examples
        --------
        >>> Packing(("n", "m"), ()).texts(["k", "n", "m"])
        ['k', 'array(n, m) AS __weft_integers']
        """
        packed = {*self.integers, *self.doubles}
        arrays = [
            f"array({', '.join(names)}) AS {array}"
            for names, array in ((self.integers, INTEGERS), (self.doubles, DOUBLES))
            if names
        ]
        return [*(name for name in columns if name not in packed), *arrays]

    def unpack(self, table: pa.Table) -> pa.Table:
        """The columns again."""
        return self.joined([table])

    def joined(self, tables: list[pa.Table]) -> pa.Table:
        """The columns again, those of all tables in one; ``tables`` is emptied, so that memory holds them once."""
        packed = [(names, array) for names, array in ((self.integers, INTEGERS), (self.doubles, DOUBLES)) if names]
        others = [name for name in tables[0].column_names if name not in {INTEGERS, DOUBLES}]
        columns = {name: _whole([table.column(name) for table in tables]) for name in others}
        blocks = {array: Block.empty(len(names), sum(map(len, tables))) for names, array in packed}
        while tables:
            table = tables.pop(0)
            for array, block in blocks.items():
                for lists in table.column(array).chunks:
                    block.add(lists)
        for names, array in packed:
            kind = np.dtype(np.int64 if array == INTEGERS else np.float64)
            columns |= zip(names, blocks[array].columns(kind), strict=True)
        return pa.table(columns)


def _whole(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """One array of several columns."""
    return flatten(pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type))


@dataclass(slots=True)
class Block:
    """Lists of numbers, all of the same length, as columns.

    Examples
    --------
    >>> block = Block.empty(2, 3)
    >>> block.add(pa.array([[1, None], [3, 4]]))
    >>> block.add(pa.array([[5, 6]]))
    >>> [column.to_pylist() for column in block.columns(np.dtype(np.int64))]
    [[1, 3, 5], [None, 4, 6]]
    """

    values: Array
    """A row a column; doubles by their bits."""
    missing: Array | None = None
    filled: int = 0

    @classmethod
    def empty(cls, width: int, rows: int) -> Block:
        """Room for ``rows`` lists of ``width`` numbers."""
        return cls(np.empty((width, rows), np.int64))

    def add(self, lists: pa.ListArray) -> None:
        """The next lists."""
        numbers = lists.flatten()
        if not len(numbers):
            return
        bitmap, data = numbers.buffers()
        transpose(np.frombuffer(data, np.int64)[numbers.offset :], len(lists), self.values, self.filled)
        if numbers.null_count:
            if self.missing is None:
                self.missing = np.zeros(self.values.shape, np.bool_)
            bits = np.frombuffer(bitmap, np.uint8)
            note_missing(bits, numbers.offset, len(lists), self.values, self.missing, self.filled)
        self.filled += len(lists)

    def columns(self, kind: np.dtype[Any]) -> Iterator[pa.Array]:
        """The columns, as numbers of ``kind``."""
        for at, values in enumerate(self.values):
            missing = None if self.missing is None or not self.missing[at].any() else self.missing[at]
            yield pa.array(values.view(kind), mask=missing)


@njit(cache=True, nogil=True)
def transpose(numbers: Array, rows: int, values: Array, at: int) -> None:
    """Write ``rows`` lists, one behind the other, into the columns from ``at`` on; a few at a time, which stay near."""
    width = len(values)
    for begin in range(0, rows, NEAR):
        end = min(begin + NEAR, rows)
        for column in range(width):
            for row in range(begin, end):
                values[column, at + row] = numbers[row * width + column]


@njit(cache=True, nogil=True)
def note_missing(bits: Array, offset: int, rows: int, values: Array, missing: Array, at: int) -> None:
    """Tell where NULL stands, and write 0 there."""
    width = len(values)
    for row in range(rows):
        for column in range(width):
            bit = offset + row * width + column
            if not (bits[bit >> 3] >> (bit & 7)) & 1:
                missing[column, at + row] = True
                values[column, at + row] = 0
