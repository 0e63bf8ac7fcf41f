"""Partials as columns: one array a number of the partial, read and written a row at a time.

``load`` and ``store`` are what kernels are written with. The same kernel text runs compiled, where both are unrolled
for the width at hand, and as plain Python over object arrays, for aggregates that numba cannot compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.types import BaseTuple
from numba.extending import overload

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns


def load(columns: Columns, index: int) -> Any:
    """The partial in row ``index``: a plain value where there is one column, a tuple otherwise."""
    if len(columns) == 1:
        return columns[0][index]
    return tuple(column[index] for column in columns)


def store(columns: Columns, index: int, partial: Any) -> None:
    """Write ``partial`` into row ``index``."""
    if len(columns) == 1:
        columns[0][index] = partial
    else:
        for column, value in zip(columns, partial, strict=True):
            column[index] = value


def same(one: Any, other: Any) -> bool:
    """Whether two partials are equal, NaN being equal to itself."""
    return bool(one is other or one == other)


@overload(load, strict=False)
def _compiled_load(columns: Any, index: Any) -> Callable[..., Any]:
    return _unrolled(
        "return " + ", ".join(f"columns[{k}][uintp(index)]" for k in range(len(columns))), "columns, index"
    )


@overload(store, strict=False)
def _compiled_store(columns: Any, index: Any, partial: Any) -> Callable[..., Any]:
    if len(columns) == 1:
        return _unrolled("columns[0][uintp(index)] = partial", "columns, index, partial")
    body = "; ".join(f"columns[{k}][uintp(index)] = partial[{k}]" for k in range(len(columns)))
    return _unrolled(body, "columns, index, partial")


@overload(same, strict=False)
def _compiled_same(one: Any, other: Any) -> Callable[..., Any]:
    if not isinstance(one, BaseTuple):
        return lambda one, other: (one == other) | ((one != one) & (other != other))
    equal = "(one[{0}] == other[{0}]) | ((one[{0}] != one[{0}]) & (other[{0}] != other[{0}]))"
    return _unrolled("return " + " & ".join(f"({equal.format(k)})" for k in range(len(one))), "one, other")


def _unrolled(body: str, parameters: str) -> Callable[..., Any]:
    """A function of the given one-line body: numba has no way to build a tuple of mixed types in a loop.

    Rows are counted from the front only, so indices go unsigned: numba then leaves out the test for negative ones.
    """
    names: dict[str, Any] = {"uintp": np.uintp}
    exec(f"def unrolled({parameters}): {body}", names)
    return names["unrolled"]  # type: ignore[no-any-return]


def identity_of(monoid: Monoid) -> Any:
    """The identity as ``merge`` takes it: a plain value of the column's own type, or a tuple of them.

    Examples
    --------
    >>> from weft.algebra.monoids import add_int, moments2
    >>> identity_of(add_int)
    np.int64(0)
    >>> identity_of(moments2)
    (np.float64(0.0), np.float64(0.0), np.float64(0.0))
    """
    typed = tuple(
        value if dtype == "object" else np.dtype(dtype).type(value)
        for value, dtype in zip(monoid.identity, monoid.dtypes, strict=True)
    )
    return typed[0] if len(typed) == 1 else typed


def empty_columns(monoid: Monoid, rows: int) -> Columns:
    """Uninitialised columns for ``rows`` partials of ``monoid``."""
    return tuple(np.empty(rows, dtype) for dtype in monoid.dtypes)


def identity_columns(monoid: Monoid, rows: int) -> Columns:
    """Columns of ``rows`` identities."""
    columns = empty_columns(monoid, rows)
    for column, value in zip(columns, monoid.identity, strict=True):
        if column.dtype == object:  # numpy would spread a tuple over the slots
            for row in range(rows):
                column[row] = value
        else:
            column[:] = value
    return columns


def frozen(columns: Columns) -> Columns:
    """Read-only views, so that Arrow's read-only buffers and our own arrays meet one compiled signature."""
    return tuple([column if not column.flags.writeable else _frozen(column) for column in columns])


def _frozen(column: np.ndarray) -> np.ndarray:
    view = column.view()
    view.flags.writeable = False
    return view
