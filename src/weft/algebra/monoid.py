"""Monoids: the merge of two partials, compiled, with the algebra that techniques may rely on.

A partial is ``width`` numbers, a column each. ``merge(older, newer)`` takes and gives a plain number where width is 1
and a tuple otherwise; the older operand always stands left, so operations that do not commute come out right.
"""

from __future__ import annotations

import inspect
import types
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numba import njit

Kernel = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative operation with identity over columns of the given dtypes.

    ``invert(total, oldest)`` removes the oldest operand: ``invert(merge(x, rest), x) == rest``. It is declared only
    where that is exact, for integers modulo 2**64 for instance, never for doubles (see semantics 3).
    """

    name: str
    dtypes: tuple[str, ...]
    identity: tuple[Any, ...]
    merge: Kernel = field(compare=False)
    invert: Kernel | None = field(default=None, compare=False)
    commutative: bool = True
    selective: bool = False
    """``merge(x, y)`` is always x or y (max, min, first): what a monotonic deque needs."""

    def __hash__(self) -> int:
        # in the innermost loops: no two of ours have one name
        return hash(self.name)

    @property
    def width(self) -> int:
        """How many columns a partial takes."""
        return len(self.dtypes)

    @property
    def invertible(self) -> bool:
        """Whether an exact inverse is known."""
        return self.invert is not None


def specialise(template: Callable[..., Any], name: str, **names: Any) -> Kernel:
    """Compile ``template`` with some of its globals replaced, so that it is cached on disk.

    numba cannot cache a closure over a compiled function (its cache key holds an id of the process); a function whose
    *globals* hold it can be, if its qualified name tells the specialisations apart. The name carries a digest
    of the sources of what was put in, as numba only looks at the template's own file when it judges a cache stale.
    """
    digest = zlib.crc32("".join(_source(value) for _, value in sorted(names.items())).encode())
    function = types.FunctionType(template.__code__, {**template.__globals__, **names}, f"{template.__name__}_{name}")
    function.__qualname__ = f"{template.__qualname__}_{name}_{digest:08x}"
    function.__module__ = template.__module__
    function.__defaults__ = template.__defaults__
    return njit(cache=True, nogil=True)(function)


def _source(value: Any) -> str:
    function = getattr(value, "py_func", value)
    if not callable(function):
        return repr(value)
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return repr(function)
