"""Rows of Spark, brought here as Arrow.

Not by Spark's own ``toArrow``: it runs the job in a thread that serves the rows, and if that one runs out of memory,
whoever reads them waits for ever; it also refuses a NULL struct of fields that are never NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import RDD
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType
from pyspark.util import _load_from_socket

from weft.errors import WeftError

Plan = Any
"""A physical plan in the JVM."""
Outcome = TypeVar("Outcome")
PartitionTask = Callable[[int, Iterable[bytes]], Iterable[Outcome]]
"""What is done with one partition, whose rows come as batches of Arrow."""


MOST = "spark.driver.maxResultSize"


class TooLargeError(WeftError):
    """More than the driver's process may take at once."""


def brought(frame: DataFrame) -> pa.Table:
    """What comes out of a frame."""
    return fetched(frame, frame._jdf.queryExecution().executedPlan(), arrow_schema(frame))


def fetched(frame: DataFrame, plan: Plan, schema: pa.Schema) -> pa.Table:
    """What comes out of a plan over a frame."""
    jvm = frame.sparkSession.sparkContext._jvm
    assert jvm is not None
    try:
        served = jvm.PythonRDD.collectAndServe(frame._jdf.toArrowBatchRdd(plan))
    except (Py4JJavaError, CapturedException) as error:
        if MOST in str(error):
            most = frame.sparkSession.sparkContext.getConf().get(MOST, "1g")
            raise TooLargeError(f"rows that are brought to the driver are larger than {MOST} allows: {most}") from error
        raise
    with _load_from_socket(served, NoOpSerializer()) as stream:
        found = [pa.ipc.read_record_batch(pa.py_buffer(data), schema) for data in stream]
    return pa.Table.from_batches(found, schema)


def worked(frame: DataFrame, plan: Plan, task: PartitionTask[Outcome]) -> list[Outcome]:
    """Run a task on the executors for each partition of what comes out of a plan over a frame."""
    batches = frame._jdf.toArrowBatchRdd(plan).toJavaRDD()
    rdd: RDD[bytes] = RDD(batches, frame.sparkSession.sparkContext, NoOpSerializer())
    return rdd.mapPartitionsWithIndex(task).collect()


def observed_by(frame: DataFrame, name: str) -> dict[str, Any]:
    """What was observed under a name while a frame was :func:`brought`; Spark itself tells of its own actions only."""
    return row_values(frame._jdf.queryExecution().observedMetrics().apply(name))


def row_values(row: Any) -> dict[str, Any]:
    """A row of the JVM by its columns."""
    return {column: row.get(at) for at, column in enumerate(row.schema().fieldNames())}


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a frame in Arrow's types."""
    return pa.schema([pa.field(item.name, arrow_type(item.dataType)) for item in frame.schema])


def arrow_type(kind: DataType) -> pa.DataType:
    """Spark's type in Arrow, but that a struct's fields may be NULL: they are where the struct itself is."""
    return loosened(to_arrow_type(kind, timezone="UTC"))


def loosened(kind: pa.DataType) -> pa.DataType:
    """The type with fields of structs that may be NULL.

    Examples
    --------
    >>> loosened(pa.list_(pa.struct([pa.field("o", pa.int64(), nullable=False)])))
    ListType(list<item: struct<o: int64>>)
    """
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(item.name, loosened(item.type)) for item in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(loosened(kind.value_type)))
    return kind
