"""``SlidingWindow``: incremental aggregation over the last items of a stream, for anyone with a numpy array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.algebra.aggregate import Aggregate, AggregateError, Resolved
from weft.algebra.numbers import Columns
from weft.algebra.registry import AGGREGATES
from weft.errors import WeftError
from weft.evaluate.columns import empty_columns, frozen
from weft.evaluate.drivers import slide_range, slide_ranges
from weft.evaluate.operations import new_tally
from weft.evaluate.registry import choose, technique_named
from weft.evaluate.technique import Memory, State, Technique, retyped
from weft.evaluate.userdefined import objects_array

Items = Sequence[Any] | np.ndarray


class SlidingWindow:
    """Answers over the last ``r`` items, for every r of ``ranges``, after every item.

    Before a window is full its answer covers what has arrived.

    Parameters
    ----------
    aggregate
        A name (``sum``, ``count``, ``avg``, ``min``, ``max``, ``var_samp``, ``first``, ``concat``, ...) or an
        :class:`~weft.algebra.aggregate.Aggregate`, see :func:`~weft.evaluate.userdefined.user_defined`.
    ranges
        How many items a window holds; one number or several.
    technique
        A name from :data:`~weft.evaluate.registry.TECHNIQUES`, or ``auto`` to choose by the aggregate's algebra.
    dtype
        The type of the items; otherwise the first push fixes it.
    worst_case
        Let ``auto`` bound the time of every single push rather than that of all together.
    counting
        Count aggregate operations, see :attr:`operations`.

    Examples
    --------
    >>> window = SlidingWindow("sum", [2, 3])
    >>> window.push(1)
    array([1, 1])
    >>> window.push_many([2, 3, 4])
    array([[3, 3],
           [5, 6],
           [7, 9]])
    >>> window.technique
    'slickdeque-inv'

    A technique that the aggregate's algebra does not allow is refused:

    >>> SlidingWindow("max", 5, "slickdeque-inv", dtype=int)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    weft.evaluate.technique.TechniqueError: slickdeque-inv cannot run max_int: it takes expired partials out again, ...
    """

    def __init__(
        self,
        aggregate: str | Aggregate,
        ranges: int | Sequence[int],
        technique: str = "auto",
        *,
        dtype: Any = None,
        worst_case: bool = False,
        counting: bool = False,
    ) -> None:
        self.aggregate = AGGREGATES.named(aggregate) if isinstance(aggregate, str) else aggregate
        self.ranges = _checked_ranges(ranges)
        self.technique = technique
        self.reason = "asked for"
        self._distinct = tuple(sorted(set(self.ranges), reverse=True))
        self._order = [self._distinct.index(size) for size in self.ranges]
        self._worst_case = worst_case
        self._counting = counting
        self._tally = new_tally()
        self._structures: list[tuple[Memory, State]] = []
        self._kind = ""
        if technique != "auto":
            technique_named(technique)
        if dtype is not None:
            kind = _kind_of(np.dtype(dtype))
            self._begin(kind, np.zeros(1, _DTYPES[kind])[0])

    @property
    def operations(self) -> tuple[int, int]:
        """Aggregate operations so far, and the most that one item took; zeros unless ``counting``."""
        return int(self._tally[0]), int(self._tally[1])

    def push(self, item: Any) -> np.ndarray:
        """Take one item; returns one answer a range."""
        row: np.ndarray = self.push_many(objects_array([item]) if _is_object(item) else [item])[0]
        return row

    def push_many(self, items: Items) -> np.ndarray:
        """Take many items; returns ``[len(items), len(ranges)]`` answers, as pushing them one by one would."""
        array = self._typed(items)
        if not len(array):
            return np.empty((0, len(self.ranges)), array.dtype)
        partials = frozen(self._resolved.lift(array))
        out = empty_columns(self._resolved.monoid, len(array) * len(self._distinct))
        self._structures = self._slide(partials, out)
        answers = self._resolved.lower(out).reshape(len(array), len(self._distinct))
        return answers if self._order == list(range(len(self._order))) else answers[:, self._order]

    def state(self) -> dict[str, Any]:
        """All there is to know, as plain numpy and Python values that can be pickled; see :meth:`restore`."""
        if not self._kind:
            return {**self._identity(), "kind": ""}
        return {
            **self._identity(),
            "kind": self._kind,
            "sample": self._sample,
            "structures": [(_copied(memory), state) for memory, state in self._structures],
            "tally": self._tally.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from where a window of the same aggregate, ranges and technique was.

        Examples
        --------
        >>> one, other = SlidingWindow("max", [3]), SlidingWindow("max", [3])
        >>> _ = one.push_many([9, 1])
        >>> other.restore(one.state())
        >>> other.push_many([2, 3])[:, 0].tolist()
        [9, 3]
        """
        if state["kind"] and not self._kind:
            self._begin(state["kind"], state["sample"])
        mine = self._identity()
        differing = [key for key, value in mine.items() if state[key] != value]
        if differing or (self._kind and state["kind"] != self._kind):
            what = ", ".join(f"{key} {state[key]!r}, not {mine[key]!r}" for key in differing) or "other items"
            raise WeftError(f"this state is of another window: {what}")
        if state["kind"]:
            self._structures = [(_copied(memory), kept) for memory, kept in state["structures"]]
            self._tally = state["tally"].copy()

    def _identity(self) -> dict[str, Any]:
        return {"aggregate": self.aggregate.name, "ranges": self.ranges, "technique": self.technique}

    def _begin(self, kind: str, sample: Any) -> None:
        """The items' type is known: resolve the aggregate, settle on a technique, allocate."""
        self._kind, self._sample = kind, sample
        self._resolved: Resolved = self.aggregate.resolve(kind, sample)
        monoid = self._resolved.monoid
        if self.technique == "auto":
            self.technique, self.reason = choose(monoid, self._worst_case, ranges=len(self._distinct))
        chosen: Technique = technique_named(self.technique)
        chosen.check(monoid)
        self._together = chosen.advance is not None and (chosen.prefilled or len(self._distinct) > 1)
        self._run = chosen.bind(
            monoid, slide_ranges if self._together else chosen.one_range or slide_range, counting=self._counting
        )
        groups = [self._distinct] if self._together else [(size,) for size in self._distinct]
        self._structures = [chosen.allocate(monoid, group) for group in groups]

    def _slide(self, partials: Columns, out: Columns) -> list[tuple[Memory, State]]:
        if self._together:
            [(memory, state)] = self._structures
            ranges = np.array(self._distinct)
            return [(memory, retyped(self._run(memory, state, partials, ranges, out, self._tally), state))]
        count = len(self._distinct)
        after = []
        for at, ((memory, state), size) in enumerate(zip(self._structures, self._distinct, strict=True)):
            following = self._run(memory, state, partials, size, out, at, count, self._tally)
            after.append((memory, retyped(following, state)))
        return after

    def _typed(self, items: Items) -> np.ndarray:
        """The items as an array of the window's type, which the first of them fix."""
        array = items if isinstance(items, np.ndarray) else _as_array(items)
        kind = _kind_of(array.dtype)
        if not self._kind and len(array):
            self._begin(kind, array[0])
        if self._kind == "O":
            return array if array.dtype == object else objects_array(items)
        if kind == "O" or (self._kind == "i" and kind == "f"):
            raise AggregateError(
                f"this window takes {'integers' if self._kind == 'i' else 'numbers'}, as first items or dtype= say; "
                f"{array.dtype} needs dtype=float or dtype=object from the start"
            )
        return np.ascontiguousarray(array, _DTYPES[self._kind or kind])


_DTYPES = {"i": np.int64, "f": np.float64, "O": object}


def _checked_ranges(ranges: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (ranges,) if isinstance(ranges, int | np.integer) else tuple(ranges)
    if not sizes or any(size != int(size) or size < 1 for size in sizes):
        raise WeftError(f"a range counts items, so it must be a whole number of at least 1; got {ranges!r}")
    return tuple(int(size) for size in sizes)


def _kind_of(dtype: np.dtype[Any]) -> str:
    """i for what int64 holds exactly, f for what float64 does, O for the rest."""
    if np.can_cast(dtype, np.int64):
        return "i"
    return "f" if np.can_cast(dtype, np.float64) and dtype.kind == "f" else "O"


def _is_object(item: Any) -> bool:
    return not isinstance(item, bool | int | float | np.number | np.bool_)


def _as_array(items: Sequence[Any]) -> np.ndarray:
    if any(_is_object(item) for item in items):
        return objects_array(items)
    array = np.asarray(items)
    return array if _kind_of(array.dtype) != "O" else objects_array(items)


def _copied(memory: Any) -> Any:
    if isinstance(memory, tuple):
        return tuple(_copied(part) for part in memory)
    return memory.copy() if isinstance(memory, np.ndarray) else memory
