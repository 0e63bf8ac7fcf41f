"""Many keys in step: one new slice a key, all ranges of all keys answered by a few passes over columns.

What a stream's micro-batch needs when every key gets its next slice. Rings are laid out slice after slice, so that each
pass reads and writes neighbouring memory and vectorises over the keys. Exact invertible monoids keep a running total a
range (SlickDeque Inv); all others keep nested flips (see :mod:`weft.evaluate.techniques.twostacks`): as the keys move
in step, they flip together.
"""

from __future__ import annotations

from typing import Any

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns
from weft.evaluate.columns import frozen, identity_columns, load, store
from weft.evaluate.compile import bind, invert, merge


class LockstepWindows:
    """The last ``r`` slices of every key, for every r of ``ranges``.

    Parameters
    ----------
    monoid
        The operation.
    keys
        How many keys there are.
    ranges
        How many slices a window holds; one entry a range.

    Examples
    --------
    >>> import numpy as np
    >>> from weft.algebra.monoids import add_int, max_int
    >>> sums = LockstepWindows(add_int, keys=2, ranges=[1, 3])
    >>> for slice_ in ([1, 10], [2, 20], [3, 30], [4, 40]):
    ...     (answers,) = sums.push((np.array(slice_),))
    >>> answers
    array([[ 4, 40],
           [ 9, 90]])
    """

    def __init__(self, monoid: Monoid, keys: int, ranges: list[int]) -> None:
        self.monoid, self.keys, self.ranges = monoid, keys, tuple(ranges)
        self._distinct = sorted(set(ranges), reverse=True)
        self._slots = self._distinct[0]
        self._slices = self._table(self._slots)
        self._answers = self._table(len(ranges))
        self._backs = self._table(0 if monoid.invertible else len(self._distinct))
        self._suffixes = self._table(0 if monoid.invertible else self._slots)
        self._flips = [0] * len(self._distinct)
        self._pushed = 0

    def push(self, slices: Columns) -> Columns:
        """Take the next slice of every key; returns ``[ranges, keys]`` answers a column.

        The arrays are the windows' own, read-only, and change with the next push; copy what is to be kept.
        """
        advance = self._advance_totals if self.monoid.invertible else self._advance_flips
        advance(frozen(slices))
        self._pushed += 1
        return frozen(self._answers)

    def state(self) -> dict[str, Any]:
        """Everything that :meth:`restore` needs, as arrays and numbers."""
        tables = {name: tuple(column.copy() for column in getattr(self, name)) for name in _TABLES}
        return {**tables, "_flips": list(self._flips), "_pushed": self._pushed}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from where windows of the same monoid, keys and ranges were."""
        for name in _TABLES:
            setattr(self, name, tuple(column.copy() for column in state[name]))
        self._flips, self._pushed = list(state["_flips"]), state["_pushed"]

    def _advance_totals(self, new: Columns) -> None:
        """Every range's total takes in the new slice and gives up the one that expires."""
        for k, size in enumerate(self.ranges):
            bind(_replace, self.monoid)(_row(self._answers, k), new, self._slice(self._pushed - size))
        _copy(new, self._slice(self._pushed))

    def _advance_flips(self, new: Columns) -> None:
        """Every range merges the suffix at its start with what came since its flip."""
        _copy(new, self._slice(self._pushed))
        self._extend_backs(new)
        end = self._pushed + 1
        leader = 0  # ranges that share a flip share the back of the longest of them
        for k, size in enumerate(self._distinct):
            start = max(end - size, 0)
            if self._flips[k] != self._flips[leader]:
                leader = k
            if start >= self._flips[k]:
                self._flip(start, end)
                self._flips[k:] = [end] * (len(self._flips) - k)
            back = None if self._flips[k] == end else _row(self._backs, leader)
            self._answer(size, _row(self._suffixes, start % self._slots), back)

    def _answer(self, size: int, suffix: Columns, back: Columns | None) -> None:
        """Write the answers of all places where this range was asked for."""
        for place, asked in enumerate(self.ranges):
            if asked == size and back is None:
                _copy(suffix, _row(self._answers, place))
            elif asked == size:
                bind(_merge_rows, self.monoid)(suffix, back, _row(self._answers, place))

    def _extend_backs(self, new: Columns) -> None:
        for k, flip in enumerate(self._flips):
            if k == 0 or flip != self._flips[k - 1]:
                back = _row(self._backs, k)
                if flip == self._pushed:
                    _copy(new, back)
                else:
                    bind(_merge_rows, self.monoid)(back, new, back)

    def _flip(self, start: int, end: int) -> None:
        """Aggregate every suffix of the slices ``start`` to ``end - 1``."""
        suffix = _row(self._suffixes, (end - 1) % self._slots)
        _copy(self._slice(end - 1), suffix)
        for position in range(end - 2, start - 1, -1):
            longer = _row(self._suffixes, position % self._slots)
            bind(_merge_rows, self.monoid)(self._slice(position), suffix, longer)
            suffix = longer

    def _slice(self, position: int) -> Columns:
        return _row(self._slices, position % self._slots)

    def _table(self, rows: int) -> Columns:
        return tuple(column.reshape(rows, self.keys) for column in identity_columns(self.monoid, rows * self.keys))


_TABLES = ("_slices", "_answers", "_backs", "_suffixes")


def _row(table: Columns, index: int) -> Columns:
    return tuple(column[index] for column in table)


def _copy(source: Columns, target: Columns) -> None:
    for old, new in zip(source, target, strict=True):
        new[:] = old


def _merge_rows(older: Columns, newer: Columns, out: Columns) -> None:
    for key in range(len(out[0])):
        store(out, key, merge(load(older, key), load(newer, key)))


def _replace(totals: Columns, new: Columns, expired: Columns) -> None:
    for key in range(len(totals[0])):
        store(totals, key, invert(merge(load(totals, key), load(new, key)), load(expired, key)))
