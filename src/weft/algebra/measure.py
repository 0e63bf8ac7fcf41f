"""Measures: what Spark computes over a slice, how those columns become the numbers that a monoid merges, and back.

A measure is the mergeable state behind one or more aggregates. Its columns are Spark aggregate expressions over the
argument columns ``{0}``, ``{1}``; ``decode`` turns their Arrow arrays into the monoid's arrays and ``encode`` turns
merged ones into such columns again, so that slices can be merged and kept. Equal measures of different queries are
computed once. ``lift`` of the textbook is the JVM's part (over a slice) and ``decode``, or ``lift`` here, which takes
rows as slices of one row each; ``lower`` makes answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Array, decimals, typed, widened


@dataclass(frozen=True, slots=True)
class Decoded:
    """The columns of one measure for some rows, as numbers."""

    monoid: Monoid
    values: tuple[Array, ...]
    valid: Array | None = None
    """1 where the slice held a value, 0 where it held only NULLs; None if all do."""
    dictionary: pa.Array | None = None
    """What ranks or row numbers in ``values`` stand for."""
    scale: int = 0
    """Digits behind the point, where ``values`` are unscaled decimals."""

    def having(self, values: tuple[Array, ...], valid: Array | None) -> Decoded:
        """The same measure of other rows."""
        return Decoded(self.monoid, values, valid, self.dictionary, self.scale)


@dataclass(frozen=True, slots=True)
class Answered:
    """One measure merged over every window: an entry an answer."""

    values: tuple[Array, ...]
    valid: Array | None = None
    """Booleans; None where every answer has a value."""
    dictionary: pa.Array | None = None
    scale: int = 0
    """Digits behind the point, where the values are unscaled decimals."""


@dataclass(frozen=True, slots=True)
class Lifted:
    """Rows as slices of one row each."""

    decoded: Decoded
    columns: Sequence[pa.Array]
    """For ``encode``: what Spark would have computed of each row; mostly it is the types alone that are needed."""


@dataclass(frozen=True, slots=True)
class Lift:
    """How rows become slices of one row each, without Spark's aggregation."""

    inputs: tuple[str, ...]
    """The columns that rows have to have, as Spark SQL over the arguments ``{0}``, ``{1}``."""
    rows: Callable[[Sequence[pa.Array], int], Lifted]
    """Of the inputs and the number of rows."""


Decoder = Callable[[Sequence[pa.Array]], Decoded]
Encoder = Callable[[Decoded, Sequence[pa.Array]], list[pa.Array]]
"""Merged numbers and the columns that were decoded; gives the columns for the merged ones."""
Lowering = Callable[[Sequence[Answered], pa.DataType], pa.Array]
"""The merged measures of every window become the answers' column, in exactly the type that Spark gives."""


def values(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """The merged value itself, back in its own type."""
    (answer,) = measures
    if answer.dictionary is not None:
        ranks = answer.values[0] if answer.valid is None else np.where(answer.valid, answer.values[0], 0)
        return answer.dictionary.take(typed(ranks, pa.int64(), answer.valid)).cast(result)
    if pa.types.is_decimal(result):
        high, low = widened(answer.values)
        return decimals(high, low, result, answer.valid)
    return typed(answer.values[0], result, answer.valid)


def stored_values(merged: Decoded, originals: Sequence[pa.Array]) -> list[pa.Array]:
    """The one column of a measure whose merged number is what Spark would have computed."""
    valid = None if merged.valid is None else merged.valid > 0
    return [values([Answered(merged.values, valid, merged.dictionary, merged.scale)], originals[0].type)]


def stored_doubles(columns: Sequence[Array], missing: Array, originals: Sequence[pa.Array]) -> list[pa.Array]:
    """A count, which is never NULL, and doubles, which are NULL without rows."""
    count, *doubles = columns
    counts = pa.array(count.astype(np.int64), originals[0].type)
    return [counts, *(pa.array(column, pa.float64(), mask=missing) for column in doubles)]


@dataclass(frozen=True, slots=True)
class Measure:
    """The mergeable state of an aggregate: columns that Spark computes, their decoding and the way back."""

    columns: tuple[str, ...]
    decode: Decoder
    monoid: Monoid
    """How it merges; narrower or wider numbers may be chosen when the values are seen, with the same properties."""
    encode: Encoder = stored_values
    """``encode(merge(decode(columns)), columns)`` stands for the union of the rows behind ``columns``."""
    hashed: bool = True
    """Whether Spark aggregates it by hashing. Strings and structs it aggregates by sorting, and all else with them."""
    lift: Callable[[Sequence[pa.DataType]], Lift] | None = field(default=None, compare=False)
    """By the arguments' types: rows to slices where that is cheaper than what follows from ``columns`` (lifting.py)."""

    def __hash__(self) -> int:
        return hash(self.columns)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What has to be kept of a slice for one aggregate call, and how its answers come out of that."""

    measures: tuple[Measure, ...]
    lower: Lowering
