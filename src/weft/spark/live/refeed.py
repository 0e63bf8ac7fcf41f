"""The same Spark plan over and over: only the rows at its bottom change from batch to batch.

Spark parses, analyses, optimises and plans a query afresh for every micro-batch; for the shared aggregation of a
thousand queries that takes longer than the rows do. Its physical plan, once made, can be run again on other rows:
the leaf that scans them is handed the rows of the next batch. That is done through Java's reflection, as Spark
has no other way; a plan that does not look as expected is not used again (docs/decisions/0006).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

SCAN = "RDDScanExec"
RDD = "org.apache.spark.rdd.RDD"


def scanned(rows: DataFrame) -> DataFrame:
    """The same rows from a plan that does nothing but scan them, so that other rows can be put in their place."""
    spark = rows.sparkSession
    made = spark._jsparkSession.internalCreateDataFrame(rows._jdf.queryExecution().toRdd(), rows._jdf.schema(), False)
    return ClassicDataFrame(made, spark)


@dataclass(frozen=True)
class Leaf:
    """The scan at the bottom of a physical plan."""

    node: Any
    fields: tuple[Any, ...]

    @classmethod
    def of(cls, plan: Any) -> Leaf | None:
        """The one leaf of a plan, if it scans rows that are handed to it."""
        leaves = plan.collectLeaves()
        if leaves.size() != 1 or leaves.head().getClass().getSimpleName() != SCAN:
            return None
        node = leaves.head()
        fields = [field for field in node.getClass().getDeclaredFields() if field.getType().getName() == RDD]
        for field in fields:
            field.setAccessible(True)
        return cls(node, tuple(fields)) if fields else None

    def feed(self, rdd: Any) -> None:
        """Have other rows scanned from now on."""
        for field in self.fields:
            field.set(self.node, rdd)


@dataclass(frozen=True)
class Refed:
    """Slices of one batch after another from one plan: map tasks aggregate, and what they have is packed for Arrow."""

    source: Leaf
    """Scans the rows of a batch."""
    map_side: Any
    """Aggregates them in every map task."""
    slices: Leaf
    """Scans what the map tasks made."""
    packed: DataFrame
    planned: DataFrame
    """Knows what was counted on the way."""

    @classmethod
    def of(cls, map_side: Any, packed: DataFrame, planned: DataFrame) -> Refed | None:
        """The plan that has just run, to be run again; None if it does not look as expected."""
        source = Leaf.of(map_side)
        slices = Leaf.of(packed._jdf.queryExecution().executedPlan())
        return None if source is None or slices is None else cls(source, map_side, slices, packed, planned)

    def feed(self, rows: DataFrame) -> None:
        """Put the rows of a batch at the bottom."""
        self.source.feed(rows._jdf.queryExecution().toRdd())
        self.slices.feed(self.map_side.execute())
