"""The same Spark plan over and over: only the rows at its bottom change from batch to batch.

Spark parses, analyses, optimises and plans a query afresh for every micro-batch; for the shared aggregation of a
thousand queries that takes longer than the rows do. A physical plan, once made, can be run on other rows: a copy of it
gets the rows of the next batch at its leaf. Spark has no way for that but Java's reflection; a plan that does not look
as expected is not used again (docs/decisions/0006).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from weft.spark.fetching import Plan, arrow_schema, fetched, row_values

SCAN = "RDDScanExec"
WATCH = "CollectMetricsExec"
Found = TypeVar("Found", covariant=True)


def scanned(rows: DataFrame) -> DataFrame:
    """The same rows from a plan that does nothing but scan them, so that other rows can be put in their place."""
    spark = rows.sparkSession
    made = spark._jsparkSession.internalCreateDataFrame(rdd_of(rows), rows._jdf.schema(), False)
    return ClassicDataFrame(made, spark)


def nodes(plan: Plan) -> Iterator[Plan]:
    """The nodes of a plan from the top down, as long as each has one child."""
    yield plan
    children = plan.children()
    if children.size() == 1:
        yield from nodes(children.head())


def is_scan(plan: Plan) -> bool:
    """Whether the one leaf of a plan scans rows that are handed to it."""
    leaves = plan.collectLeaves()
    return bool(leaves.size() == 1 and leaves.head().getClass().getSimpleName() == SCAN)


@dataclass(frozen=True)
class ReusablePlan:
    """A plan that has been made once, to be run on other rows."""

    plan: Plan
    rows_of_scan: Any
    """The field of a scan that holds its rows."""

    @classmethod
    def of(cls, plan: Plan) -> ReusablePlan | None:
        """The plan, if it does nothing but work on the rows of one scan."""
        if not is_scan(plan):
            return None
        field = plan.collectLeaves().head().getClass().getDeclaredField("rdd")
        field.setAccessible(True)
        return cls(plan, field)

    def over(self, rdd: Any) -> Plan:
        """A copy of the plan over other rows; a plan itself keeps what it was executed to."""
        copy = self.plan.clone()
        self.rows_of_scan.set(copy.collectLeaves().head(), rdd)
        return copy


@dataclass(frozen=True)
class ReusableFrame:
    """A frame whose plan is run on other rows, again and again, with what comes out brought here as Arrow."""

    frame: DataFrame
    again: ReusablePlan
    schema: pa.Schema

    @classmethod
    def of(cls, frame: DataFrame) -> ReusableFrame | None:
        """The frame, if its plan can be run again."""
        again = ReusablePlan.of(frame._jdf.queryExecution().executedPlan())
        return None if again is None else cls(frame, again, arrow_schema(frame))

    def collect(self, rdd: Any) -> pa.Table:
        """What comes out for other rows."""
        return fetched(self.frame, self.again.over(rdd), self.schema)


class ReusableAction(Protocol[Found]):
    """What is done with rows by a plan that is not made again."""

    def collect(self, rdd: Any) -> Found:
        """What comes out for other rows."""
        ...


@dataclass(frozen=True)
class ReusableCut(Generic[Found]):
    """Slices of one batch after another from one plan: map tasks aggregate, and what they have is packed for Arrow."""

    map_side: ReusablePlan
    """Aggregates rows in every map task."""
    packed: ReusableAction[Found]
    """Packs what the map tasks made."""
    watch: int
    """How far below the top of ``map_side`` the node stands that counts."""

    @classmethod
    def of(cls, map_side: Plan, packed: ReusableAction[Found] | None) -> ReusableCut[Found] | None:
        """The plan that has just run, to be run again; None if it does not look as expected."""
        aggregating, watch = ReusablePlan.of(map_side), depth_of(WATCH, map_side)
        if aggregating is None or packed is None or watch is None:
            return None
        return cls(aggregating, packed, watch)

    def run(self, rows: DataFrame) -> tuple[Found, dict[str, Any]]:
        """The slices of other rows, and what was observed on the way."""
        map_side = self.map_side.over(rdd_of(rows))
        found = self.packed.collect(map_side.execute())
        return found, observed(map_side, self.watch)


def rdd_of(rows: DataFrame) -> Any:
    """The rows of a frame in the JVM; those that Spark hands to ``foreachBatch`` as they are, without one more copy."""
    execution = rows._jdf.queryExecution()
    plan = execution.analyzed()
    return plan.rdd() if plan.getClass().getSimpleName() == "LogicalRDD" else execution.toRdd()


def observed(plan: Plan, depth: int) -> dict[str, Any]:
    """What was counted by the node so far below the top of a plan that ran."""
    for _ in range(depth):
        plan = plan.children().head()
    return row_values(plan.collectedMetrics())


def depth_of(kind: str, plan: Plan) -> int | None:
    """How far below the top of a plan the first node of a kind stands."""
    return next((depth for depth, node in enumerate(nodes(plan)) if node.getClass().getSimpleName() == kind), None)
