"""Keys as small numbers that stay the same from batch to batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.algebra.numbers import Array
from weft.query.model import Expression
from weft.step.key_codes import row_codes, value_codes


class KeyNumbers:
    """Numbers keys from 0 in the order in which they come, NULL equal to NULL.

    Examples
    --------
    >>> numbers = KeyNumbers([Expression("k", "k")])
    >>> numbers.number([pa.array(["b", None])]).tolist(), numbers.number([pa.array(["b", None, "c"])]).tolist()
    ([0, 1], [0, 1, 2])
    >>> numbers.count, numbers.values[Expression("k", "k")].to_pylist()
    (3, ['b', None, 'c'])
    """

    def __init__(self, keys: Sequence[Expression]) -> None:
        self._keys = tuple(keys)
        self._known: list[pa.Array] = []
        self.count = 0

    @property
    def values(self) -> dict[Expression, pa.Array]:
        """What the numbers stand for, an array a key."""
        return dict(zip(self._keys, self._known, strict=True)) if self._known else {}

    def number(self, columns: Sequence[pa.Array], length: int | None = None) -> Array:
        """The number of each row's key."""
        if not self._keys:
            self.count = 1
            return np.zeros(length or 0, np.int64)
        if not self._known:
            self._known = [column.slice(0, 0) for column in columns]
        # the first time there is nothing to hold the columns against, and they may be long
        joined = [pa.concat_arrays(pair) for pair in zip(self._known, columns, strict=True)] if self.count else columns
        codes = row_codes(map(value_codes, joined), len(joined[0]))[0][self.count :]
        # numbers rise as new keys appear, from those that are known
        highest = np.maximum(np.maximum.accumulate(codes), self.count - 1)
        firsts = np.flatnonzero(np.diff(highest, prepend=self.count - 1))
        if len(firsts):
            chosen = pa.array(firsts)
            self._known = [
                pa.concat_arrays([known, column.take(chosen)])
                for known, column in zip(self._known, columns, strict=True)
            ]
            self.count += len(firsts)
        return codes
