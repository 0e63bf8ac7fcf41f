"""Kernel templates become kernels: a monoid's merge put into a template, compiled if that is possible.

Templates are plain functions that use ``merge``, ``invert`` and ``identity`` as globals. Built-in monoids are compiled
with a disk cache; a user's merge is compiled for the process only, as a closure's source does not tell what it closed
over; what numba cannot compile runs as Python.
"""

from __future__ import annotations

import inspect
import types
import zlib
from collections.abc import Callable
from typing import Any, cast

from numba import njit
from numba.core.dispatcher import Dispatcher

from weft.algebra import monoids
from weft.algebra.monoid import Kernel, Monoid, specialise
from weft.evaluate import columns
from weft.evaluate.columns import identity_of


def unbound(*_: Any) -> Any:
    """Stands for an operation until a template is bound."""
    raise NotImplementedError("a template was called without bind()")


# What templates import, so that they read as ordinary functions; bind() puts a monoid's own in their place.
merge: Kernel = unbound
invert: Kernel = unbound
identity: Any = None

_SOURCES = zlib.crc32((inspect.getsource(monoids) + inspect.getsource(columns) + "_nrt=False").encode())

_kernels: dict[tuple[Any, ...], Kernel] = {}
_of_ours: dict[tuple[Callable[..., Any], int], Kernel] = {}
"""By a template and the id of one of our own monoids, which live as long as the process: asked for most often."""


def bind(template: Callable[..., Any], monoid: Monoid, **names: Any) -> Kernel:
    """``template`` with the monoid's operations, and any further ``names``, as its globals."""
    soonest = (template, id(monoid))
    if not names and soonest in _of_ours:
        return _of_ours[soonest]
    key = (template, monoid.merge, monoid.invert, repr(monoid.identity), *sorted(names.items()))
    kernel = _kernels.get(key)
    if kernel is None:
        operations = {"merge": monoid.merge, "invert": monoid.invert, "identity": identity_of(monoid)}
        kernel = _kernels[key] = _build(template, monoid, operations | names)
    if not names and monoids.MONOIDS.get(monoid.name) is monoid:
        _of_ours[soonest] = kernel
    return kernel


def _is_ours(merge_: Kernel) -> bool:
    """Whether a merge is compiled and stands at the top level of one of our modules, so that its source says all."""
    function = getattr(merge_, "py_func", None)
    return function is not None and function.__module__.startswith("weft.") and "<locals>" not in function.__qualname__


def _build(template: Callable[..., Any], monoid: Monoid, names: dict[str, Any]) -> Kernel:
    if _is_ours(monoid.merge):
        # the digest in a kernel's name covers what is put in directly; a merge that calls another needs this as well
        return _without_counting_references(specialise(template, monoid.name, sources=_SOURCES, **names))
    function = types.FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
    if not isinstance(monoid.merge, Dispatcher):
        return function
    return _without_counting_references(njit(nogil=True)(function))


def _without_counting_references(kernel: Any) -> Kernel:
    """Compile without reference counts on arrays: the caller holds them all, and nothing here allocates.

    numba counts a reference, atomically, whenever an array is taken out of a tuple. Measured for maxima of doubles over
    65,536 items: twostacks-lite 3.2 ns an item without the counts and 11.6 with them, daba-lite 6.3 and 74.
    """
    kernel.targetoptions["_nrt"] = False
    return cast(Kernel, kernel)
