"""The plan of a running stream: its record, and the queries as they are bound to the stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from weft.job.query_registry import Bound
from weft.plan.record import PlanRecord
from weft.step.step_plan import StepPlan


@dataclass(frozen=True, kw_only=True)
class LivePlan(StepPlan, Generic[Bound]):
    """What a turn goes by, with where it comes from."""

    record: PlanRecord
    bound: Mapping[str, Bound]

    @property
    def sent(self) -> StepPlan:
        """What workers need of it."""
        return StepPlan(self.plan, self.ids, self.schemas, self.first)
