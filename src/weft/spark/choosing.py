"""Who cuts the rows of a plan: as it is wished, or the cheapest of the engines that can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame

from weft.optimize.constants import Constants
from weft.optimize.cut_choice import MOST_BROUGHT, CutChoice, CutShape, choose_cut
from weft.plan.cut_engine import CutEngine, CutWish
from weft.plan.model import Plan
from weft.spark.kernel_cut import left_to_jvm

COMPRESSED = 4.0
"""So much larger are rows in memory than in the files that they are read from, roughly."""
UNKNOWN = 2.0**60
"""What Spark takes for the size of that of which it knows nothing, or more."""
SHARE_OF_HEAP = 0.25
BYTES_OF_A_VALUE = 8
MANY = 1e6
"""So many rows there are taken to be where nothing tells."""


@dataclass(frozen=True)
class ChosenCut:
    """The engine, and why."""

    engine: CutEngine
    choice: CutChoice | None = None
    """What each engine would take, where there was a choice."""
    left: Mapping[int, str] = field(default_factory=dict)
    """The groupings that kernels cannot cut, by number, and why."""

    @property
    def why(self) -> str:
        """Told to people."""
        return "as asked for" if self.choice is None else str(self.choice)


class CutChooser:
    """Chooses for one plan, as often as it is asked.

    Parameters
    ----------
    here
        Whether slices may be made in this process.
    """

    def __init__(self, plan: Plan, rows: DataFrame, wish: CutWish, constants: Constants, *, here: bool = True) -> None:
        self.plan = plan
        self._rows = rows
        self._wish = wish
        self._constants = constants
        self._engines: tuple[CutEngine, ...] = ("jvm", "workers")
        if here:
            self._engines += ("driver",)

    @cached_property
    def _left(self) -> dict[int, str]:
        return left_to_jvm(self.plan, self._rows)

    @cached_property
    def _room(self) -> float:
        """How many values may be brought: Java's heap holds them all before they are sent on."""
        heap = self._rows.sparkSession._jvm.java.lang.Runtime.getRuntime().maxMemory()  # type: ignore[union-attr]
        return float(min(MOST_BROUGHT, heap * SHARE_OF_HEAP / BYTES_OF_A_VALUE))

    @cached_property
    def _shape(self) -> CutShape:
        return CutShape.of(self.plan)

    def chosen(self, count: float | None = None, slices: float | None = None) -> ChosenCut:
        """The engine that cuts rows; the JVM where kernels cannot cut all that the plan needs.

        Parameters
        ----------
        count, slices
            How many rows there are, and how many slices they make, where that is known.
        """
        if not self.plan.groupings or self._wish == "jvm":
            return ChosenCut("jvm")
        if self._left:
            return ChosenCut("jvm", left=self._left)
        if self._wish != "auto":
            return ChosenCut(self._wish)
        engines = self._engines
        if count is None:
            count = estimated_rows(self._rows)
        if count is None:  # they may be more than this process has room for
            count, engines = MANY, ("jvm", "workers")
        if slices is None and self.plan.sampled:
            slices = sum(self.plan.loads) / self.plan.sampled * count
        choice = choose_cut(self._shape, count, slices, self._constants, engines, self._room)
        return ChosenCut(choice.engine, choice)


def estimated_rows(rows: DataFrame) -> float | None:
    """How many rows there are, as Spark guesses from what it knows of files and tables; None if it knows nothing."""
    planned = rows._jdf.queryExecution().optimizedPlan()
    known = planned.stats().rowCount()
    if known.isDefined():
        return float(known.get())
    size = float(planned.stats().sizeInBytes())
    if size >= UNKNOWN:
        return None
    in_files = planned.collectLeaves().head().getClass().getSimpleName() == "LogicalRelation"
    return size * (COMPRESSED if in_files else 1.0) / max(float(planned.schema().defaultSize()), 1.0)
