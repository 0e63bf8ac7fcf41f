"""Slices on their way to the workers: numbers travel in two arrays, which costs half of what a column each would.

Spark writes Arrow value by value through a writer a column; an array has one writer for all its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DoubleType, LongType

from weft.algebra.measures import flatten

INTEGERS = "__weft_integers"
DOUBLES = "__weft_doubles"


@dataclass(frozen=True, slots=True)
class Packing:
    """Which columns travel in which array."""

    integers: tuple[str, ...]
    doubles: tuple[str, ...]

    @classmethod
    def of(cls, frame: DataFrame) -> Packing:
        """All BIGINT and all DOUBLE columns of a frame."""

        def named(kind: type[DataType]) -> tuple[str, ...]:
            return tuple(item.name for item in frame.schema.fields if isinstance(item.dataType, kind))

        return cls(named(LongType), named(DoubleType))

    def pack(self, frame: DataFrame) -> DataFrame:
        """The frame with arrays instead of these columns."""
        packed = {*self.integers, *self.doubles}
        others = [name for name in frame.columns if name not in packed]
        arrays = [
            f"array({', '.join(names)}) AS {array}"
            for names, array in ((self.integers, INTEGERS), (self.doubles, DOUBLES))
            if names
        ]
        return frame.selectExpr(*others, *arrays)

    def unpack(self, table: pa.Table) -> pa.Table:
        """The columns again."""
        columns = {name: table.column(name) for name in table.column_names if name not in {INTEGERS, DOUBLES}}
        for names, array in ((self.integers, INTEGERS), (self.doubles, DOUBLES)):
            if names:
                columns |= zip(names, spread(flatten(table.column(array)), len(names)), strict=True)
        return pa.table(columns)


def spread(lists: pa.ListArray, width: int) -> Sequence[pa.Array]:
    """Lists of ``width`` numbers each as ``width`` columns.

    Examples
    --------
    >>> [column.to_pylist() for column in spread(pa.array([[1, None], [3, 4]]), 2)]
    [[1, 3], [None, 4]]
    """
    values = lists.flatten()
    numbers = np.asarray(values.fill_null(0)).reshape(-1, width)
    if values.null_count == 0:
        return [pa.array(np.ascontiguousarray(numbers[:, at])) for at in range(width)]
    missing = np.asarray(pc.is_null(values)).reshape(-1, width)
    return [pa.array(np.ascontiguousarray(numbers[:, at]), mask=missing[:, at].copy()) for at in range(width)]
