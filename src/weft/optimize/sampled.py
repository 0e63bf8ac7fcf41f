"""What a sample of the rows shows of groupings: how many slices, shards and keys they would have.

Rows are looked at through hashes, so that nothing of them has to be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.algebra.numbers import Array
from weft.optimize.weaving import Seen, one_tree
from weft.plan.model import Grouping
from weft.slicing.edge_rate import MICROSECONDS

FEW_FALLS = 0.05
"""Rows with at most so many steps back in time count as ordered by time."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio in 64 bits: multiplying by it spreads low bits over all."""
SECOND_ODD = np.uint64(0xBF58476D1CE4E5B9)
"""Another such number, of Steele and others' SplitMix."""


@dataclass(frozen=True)
class Sampled:
    """One grouping's slices, shards and keys of the sampled rows, as numbers that are equal where those are."""

    grouping: Grouping
    starts: Array
    shards: Array
    keys: Array

    @classmethod
    def unseen(cls, grouping: Grouping) -> Sampled:
        """A grouping of which no row was looked at; all its queries in one tree."""
        nothing = np.empty(0, np.int64)
        return cls(replace(grouping, trees=(one_tree(grouping),)), nothing, nothing, nothing)

    @property
    def seen(self) -> Seen:
        """Rows a second, and how many keys."""
        if not len(self.starts):
            return Seen(1.0, 1.0)
        seconds = (self.starts.max() - self.starts.min()) / MICROSECONDS
        return Seen(len(self.starts) / max(seconds, 1.0), float(len(np.unique(self.keys))))

    @property
    def slices(self) -> int:
        """How many distinct slices and keys the sample holds."""
        return count_rows(self.starts, self.keys)

    @property
    def pieces(self) -> int:
        """The same, split into shards."""
        return count_rows(self.starts, self.keys, self.shards)


def count_rows(*columns: Array) -> int:
    """How many distinct rows some columns of numbers have.

    Examples
    --------
    >>> count_rows(np.array([1, 1, 2]), np.array([5, 5, 5]))
    2
    """
    return len(np.unique(mixed(columns)))


def is_ordered(times: Array) -> bool:
    """Whether times rise, but for a few.

    Examples
    --------
    >>> is_ordered(np.array([1, 1, 2, 5])), is_ordered(np.array([5, 1, 2, 1]))
    (True, False)
    """
    falls = np.count_nonzero(np.diff(times) < 0)
    return bool(falls <= FEW_FALLS * len(times))


def mixed(columns: Sequence[Array]) -> Array:
    """A number for each row of several columns, the same for equal rows and, but for a hash's odds, only for these.

    Examples
    --------
    >>> first, second, third = mixed([np.array([1, 1, 2]), np.array([5, 5, 1])])
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        # small numbers, and 0 before all, would else give sums and differences of the same few products
        found = ((found + ODD) ^ column.astype(np.int64).view(np.uint64)) * ODD
        found = (found ^ (found >> np.uint64(30))) * SECOND_ODD
        found ^= found >> np.uint64(27)
    return found.view(np.int64)
