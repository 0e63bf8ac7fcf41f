"""Values of keys as Spark groups by them: -0.0 is 0.0, and every NaN the same, also inside of structs and lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def as_grouped(column: pa.Array) -> pa.Array:
    """The column with equal values alike.

    Examples
    --------
    >>> as_grouped(pa.array([-0.0, None, 1.5])).to_pylist()
    [0.0, None, 1.5]
    >>> as_grouped(pa.array([[{"a": -0.0}], None, []])).to_pylist()
    [[{'a': 0.0}], None, []]
    """
    kind = column.type
    if pa.types.is_floating(kind):
        values = np.asarray(column.fill_null(0)) + np.array(0, kind.to_pandas_dtype())
        values[np.isnan(values)] = np.nan
        return pa.array(values, kind, mask=np.asarray(pc.is_null(column)))
    if not _holds_floats(kind):
        return column
    absent = pc.is_null(column)
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            [as_grouped(part) for part in column.flatten()], fields=list(kind), mask=absent
        )
    if column.offset:
        column = pa.concat_arrays([column, column.slice(0, 0)])
    return pa.ListArray.from_arrays(column.offsets, as_grouped(column.values), kind, mask=absent)


def _holds_floats(kind: pa.DataType) -> bool:
    """Whether values of a type may hold floating-point numbers."""
    if pa.types.is_struct(kind):
        return any(_holds_floats(item.type) for item in kind)
    if pa.types.is_list(kind):
        return _holds_floats(kind.value_type)
    return bool(pa.types.is_floating(kind))
