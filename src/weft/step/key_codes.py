"""Numbers for the values of key columns of any type, so that keys are compared as numbers from there on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.numbers import Array


def value_codes(column: pa.Array) -> tuple[Array, int]:
    """A number below the second result for each value, the same for equal ones; NULL equals NULL.

    Arrow numbers no values inside others: structs and lists are numbered by the numbers of what they hold.

    Examples
    --------
    >>> codes, count = value_codes(pa.array([[1, 2], None, [1], [1, 2], []]))
    >>> codes.tolist(), count
    ([0, 1, 2, 0, 3], 4)
    >>> value_codes(pa.array([{"a": None}, None, {"a": 1}, {"a": None}]))[0].tolist()
    [0, 1, 2, 0]
    """
    if pa.types.is_struct(column.type):
        valid = np.asarray(pc.is_valid(column)).astype(np.int64)
        return row_codes([(valid, 2), *map(value_codes, column.flatten())], len(column))
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _list_codes(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64), len(encoded.dictionary)


def row_codes(columns: Iterable[tuple[Array, int]], length: int) -> tuple[Array, int]:
    """The same for rows of several columns whose values are numbered, in the order in which rows first appear."""
    codes, count = np.zeros(length, np.int64), 1
    for numbers, room in columns:
        # dense again after each, so that the product of many columns cannot overflow
        codes, distinct = pd.factorize(codes * max(room, 1) + numbers)
        count = len(distinct)
    return codes.astype(np.int64), count


def _list_codes(column: pa.Array) -> tuple[Array, int]:
    inner, _ = value_codes(column.flatten())
    lengths = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
    ends = np.cumsum(lengths)
    lists = np.empty(len(column), object)
    for at, (begin, end) in enumerate(zip(ends - lengths, ends, strict=True)):
        lists[at] = inner[begin:end].tobytes()
    numbers, distinct = pd.factorize(lists)
    valid = np.asarray(pc.is_valid(column)).astype(np.int64)
    return row_codes([(valid, 2), (numbers.astype(np.int64), len(distinct))], len(column))
