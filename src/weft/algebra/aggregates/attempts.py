"""``try_sum``, ``try_avg``: NULL where ``sum`` and ``avg`` would fail, as the result type cannot hold the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from weft.algebra.aggregate import Aggregate, Types, UnsupportedAggregateError
from weft.algebra.aggregates.counts import counted
from weft.algebra.aggregates.sums import WIDEST_SAFE_DECIMAL, lower_averages, lower_sums, summed
from weft.algebra.measure import Answered, Lowering, Measure, Recipe
from weft.algebra.numbers import Array, widened, within


def _fits(total: Answered, result: pa.DataType) -> Array | None:
    """Which sums the result type can hold; None if all of them."""
    if pa.types.is_decimal(result):
        limit = 10**result.precision
        return within(*widened(total.values), np.int64(limit >> 64), np.uint64(limit & (2**64 - 1)))
    if len(total.values) == 2:
        high, low = total.values
        return np.asarray(high == (low.astype(np.int64) >> 63))
    return None


def _lower_sums(measures: Sequence[Answered], result: pa.DataType) -> pa.Array:
    """Sums that fit."""
    (total,) = measures
    fits = _fits(total, result)
    if fits is not None:
        total = replace(total, valid=fits if total.valid is None else fits & total.valid)
    return lower_sums([total], result)


def _attempt(name: str, lowering: Lowering, *others: Measure) -> Callable[[Types], Recipe]:
    def build(types: Types) -> Recipe:
        (kind,) = types
        if pa.types.is_decimal(kind) and kind.precision > WIDEST_SAFE_DECIMAL:
            raise UnsupportedAggregateError(
                f"{name} over {kind} is not supported: whether digits run out depends on the order of rows; "
                f"cast to DECIMAL({WIDEST_SAFE_DECIMAL}, {min(kind.scale, WIDEST_SAFE_DECIMAL)}) or DOUBLE"
            )
        return Recipe((summed(kind), *others), lowering)

    return build


AGGREGATES = (
    Aggregate("try_sum", _attempt("try_sum", _lower_sums)),
    # averages of what is left over always fit
    Aggregate("try_avg", _attempt("try_avg", lower_averages, counted("count({0})")), category="algebraic"),
)
