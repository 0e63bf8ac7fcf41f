"""A user's Python functions become a monoid: compiled where numba can, objects otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

from weft.algebra.aggregate import Aggregate, AggregateError, Resolved
from weft.algebra.monoid import Kernel, Monoid
from weft.algebra.numbers import Columns
from weft.evaluate.columns import empty_columns, frozen, load, store
from weft.evaluate.compile import bind, unbound

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def user_defined(
    name: str,
    *,
    merge: Kernel,
    identity: Any,
    lift: Kernel | None = None,
    lower: Kernel | None = None,
    invert: Kernel | None = None,
    commutative: bool = False,
    selective: bool = False,
) -> Aggregate:
    """An aggregate of your own; compiled if numba can, run as Python otherwise.

    Compiled integers have 64 bits and wrap; give the window ``dtype=object`` for Python's unbounded ones.

    Parameters
    ----------
    name
        What messages call it.
    merge
        ``merge(older, newer)``; must be associative and change neither. A partial is a number, a tuple of numbers, or
        any object.
    identity
        The partial of no items.
    lift, lower
        Item to partial and partial to answer; left out where they would change nothing.
    invert
        ``invert(total, oldest)``; give it only if it is exact, and techniques that subtract are allowed.
    commutative, selective
        Whether the order does not matter; whether ``merge`` always returns one of its operands.

    Examples
    --------
    >>> from weft.evaluate import SlidingWindow
    >>> longest = user_defined("longest", merge=lambda a, b: a if len(a) >= len(b) else b, identity="", selective=True)
    >>> SlidingWindow(longest, [2]).push_many(["pear", "fig", "kiwi"])[:, 0].tolist()
    ['pear', 'pear', 'kiwi']
    """
    definition = _Definition(name, merge, identity, lift, lower, invert, commutative, selective)
    return Aggregate(name, items=definition.resolve)


@dataclass(frozen=True, slots=True)
class _Definition:
    """What :func:`user_defined` was given."""

    name: str
    merge: Kernel
    identity: Any
    lift: Kernel | None
    lower: Kernel | None
    invert: Kernel | None
    commutative: bool
    selective: bool

    def resolve(self, kind: str, item: Any) -> Resolved:
        """The compiled form if the partial is numbers and numba takes its functions, else the object form."""
        dtypes = None if kind == "O" else self._column_types(item)
        if dtypes is not None:
            ones = _partial_of(dtypes)
            merge, invert = (_compiled(function, dtypes, ones, ones) for function in (self.merge, self.invert))
            if merge is not None and (invert is not None or self.invert is None):
                identity = self.identity if isinstance(self.identity, tuple) else (self.identity,)
                return self._numbers(self._monoid(dtypes, identity, merge, invert), item)
        monoid = self._monoid(("object",), (self.identity,), _python(self.merge), _python(self.invert))
        return Resolved(monoid, partial(self._lift, monoid), self._lower)

    def _numbers(self, monoid: Monoid, item: Any) -> Resolved:
        """With ``lift`` and ``lower`` as compiled loops where numba takes these too."""
        lift = _compiled(self.lift, monoid.dtypes, item)
        lower = _compiled(self.lower, None, _partial_of(monoid.dtypes))
        lift_items: Kernel = partial(self._lift, monoid)
        if lift is not None:
            lift_items = partial(_lift_all, monoid, bind(_lift_template, monoid, lift=lift))
        lower_partials: Kernel = self._lower
        if lower is not None:
            lower_partials = partial(_lower_all, bind(_lower_template, monoid, lower=lower), lower)
        return Resolved(monoid, lift_items, lower_partials)

    def _column_types(self, item: Any) -> tuple[str, ...] | None:
        """The partial's columns, or None where it is not made of numbers."""
        lifted = self.lift(item) if self.lift else item
        merged = self.merge(lifted, lifted)
        kinds: list[str] = []
        shapes = [value if isinstance(value, tuple) else (value,) for value in (self.identity, lifted, merged)]
        if len({len(shape) for shape in shapes}) > 1:
            return None
        for values in zip(*shapes, strict=True):
            if not all(isinstance(value, _NUMBERS) for value in values):
                return None
            kinds.append("float64" if any(isinstance(value, float | np.floating) for value in values) else "int64")
        return tuple(kinds)

    def _monoid(
        self, dtypes: tuple[str, ...], identity: tuple[Any, ...], merge: Kernel, invert: Kernel | None
    ) -> Monoid:
        return Monoid(self.name, dtypes, identity, merge, invert, self.commutative, self.selective)

    def _lift(self, monoid: Monoid, items: np.ndarray) -> Columns:
        if self.lift is None:
            return (items.astype(monoid.dtypes[0]),)
        columns = empty_columns(monoid, len(items))
        for index, item in enumerate(items):
            lifted = self.lift(item)
            if monoid.dtypes != ("object",):
                self._check(lifted, monoid)
            store(columns, index, lifted)
        return columns

    def _check(self, lifted: Any, monoid: Monoid) -> None:
        """Refuse what a column of integers would silently cut off."""
        values = lifted if isinstance(lifted, tuple) else (lifted,)
        for value, dtype in zip(values, monoid.dtypes, strict=True):
            if dtype == "int64" and isinstance(value, float | np.floating):
                raise AggregateError(
                    f"{self.name}: lift gave {value!r} where the first item gave an integer; "
                    "let lift, or the identity, give floats from the start"
                )

    def _lower(self, columns: Columns) -> np.ndarray:
        if self.lower is None and len(columns) == 1:
            return columns[0]
        partials = [load(columns, index) for index in range(len(columns[0]))]
        answers = partials if self.lower is None else [self.lower(kept) for kept in partials]
        if all(isinstance(answer, _NUMBERS) for answer in answers):
            return np.array(answers)
        return objects_array(answers)


def objects_array(items: Any) -> np.ndarray:
    """A one-dimensional array of Python objects; numpy alone would unpack equally long tuples."""
    array = np.empty(len(items), object)
    for index, item in enumerate(items):
        array[index] = item
    return array


def _partial_of(dtypes: tuple[str, ...]) -> Any:
    """A partial of ones, to try a function on."""
    values = tuple(np.dtype(dtype).type(1) for dtype in dtypes)
    return values[0] if len(values) == 1 else values


def _compiled(function: Kernel | None, dtypes: tuple[str, ...] | None, *arguments: Any) -> Kernel | None:
    """``function`` compiled, if numba takes it and it returns numbers, of the given types if any are given."""
    if function is None:
        return None
    compiled = function if isinstance(function, Dispatcher) else njit(nogil=True)(function)
    try:
        result = compiled(*arguments)
    except (NumbaError, ArithmeticError):
        return None
    results = result if isinstance(result, tuple) else (result,)
    found = tuple(str(np.asarray(value).dtype) for value in results)
    fits = found == dtypes if dtypes is not None else len(found) == 1 and isinstance(result, _NUMBERS)
    return cast(Kernel, compiled) if fits else None


def _lift_all(monoid: Monoid, loop: Kernel, items: np.ndarray) -> Columns:
    columns = empty_columns(monoid, len(items))
    loop(frozen((items,)), columns)
    return columns


def _lower_all(loop: Kernel, lower: Kernel, columns: Columns) -> np.ndarray:
    answers = np.empty(len(columns[0]), np.asarray(lower(load(columns, 0))).dtype)
    loop(columns, (answers,))
    return answers


lift: Kernel = unbound
lower: Kernel = unbound


def _lift_template(items: Columns, columns: Columns) -> None:
    for index in range(len(items[0])):
        store(columns, index, lift(load(items, index)))


def _lower_template(columns: Columns, answers: Columns) -> None:
    for index in range(len(columns[0])):
        store(answers, index, lower(load(columns, index)))


def _python(function: Kernel | None) -> Any:
    return function.py_func if isinstance(function, Dispatcher) else function
