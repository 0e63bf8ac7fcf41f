"""Slices packed for their way to Python: numbers in two arrays."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DoubleType, LongType

from weft.step.packing import Packing


def packing_of(frame: DataFrame) -> Packing:
    """All BIGINT and all DOUBLE columns of a frame."""

    def named(kind: type[DataType]) -> tuple[str, ...]:
        return tuple(item.name for item in frame.schema.fields if isinstance(item.dataType, kind))

    return Packing(named(LongType), named(DoubleType))


def packed(frame: DataFrame, packing: Packing) -> DataFrame:
    """The frame with arrays instead of these columns."""
    return frame.selectExpr(*packing.texts(frame.columns))
