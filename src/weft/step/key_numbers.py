"""Keys as small numbers that stay the same from batch to batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from weft.algebra.numbers import Array
from weft.query.model import Expression


class KeyNumbers:
    """Numbers keys from 0 in the order in which they come, NULL equal to NULL.

    Examples
    --------
    >>> numbers = KeyNumbers([Expression("k", "k")])
    >>> numbers.number([pa.array(["b", None])]).tolist(), numbers.number([pa.array(["c", None])]).tolist()
    ([0, 1], [2, 1])
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
        codes = _codes(joined)[self.count :]
        new = codes >= self.count
        if new.any():
            _, rows = np.unique(codes[new], return_index=True)
            chosen = pa.array(np.flatnonzero(new)[rows])
            self._known = [
                pa.concat_arrays([known, column.take(chosen)])
                for known, column in zip(self._known, columns, strict=True)
            ]
            self.count += len(rows)
        return codes


def _codes(columns: Sequence[pa.Array]) -> Array:
    """Numbers for distinct rows, in the order in which they first appear."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * max(len(encoded.dictionary), 1) + np.asarray(encoded.indices).astype(np.int64)
        # dense again, so that the product of many columns cannot overflow
        codes = pd.factorize(codes)[0].astype(np.int64)
    return codes
