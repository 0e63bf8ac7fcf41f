"""Monoids one step at a time, as plain Python: what checks hold everything faster against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.algebra.monoid import Kernel, Monoid
from weft.evaluate.columns import identity_of


def plain(kernel: Kernel) -> Kernel:
    """A merge or an inversion that is not compiled; integers go round without a warning."""
    function = getattr(kernel, "py_func", kernel)

    def quiet(*operands: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*operands)

    return quiet


def merge(monoid: Monoid, older: Any, newer: Any) -> Any:
    """One merge, its numbers of the monoid's types."""
    return _retyped(monoid, plain(monoid.merge)(older, newer))


def invert(monoid: Monoid, whole: Any, oldest: Any) -> Any:
    """One inversion, likewise."""
    if monoid.invert is None:
        raise AssertionError(f"{monoid.name} has no inverse")
    return _retyped(monoid, plain(monoid.invert)(whole, oldest))


def total(monoid: Monoid, operands: Sequence[Any]) -> Any:
    """Operands merged from the oldest on.

    Examples
    --------
    >>> from weft.algebra.monoids import add_int
    >>> int(total(add_int, [np.int64(1), np.int64(2)]))
    3
    """
    result = identity_of(monoid)
    for operand in operands:
        result = merge(monoid, result, operand)
    return result


def _retyped(monoid: Monoid, partial: Any) -> Any:
    if monoid.dtypes == ("object",):
        return partial
    values = partial if isinstance(partial, tuple) else (partial,)
    typed = tuple(np.dtype(dtype).type(value) for dtype, value in zip(monoid.dtypes, values, strict=True))
    return typed[0] if monoid.width == 1 else typed
