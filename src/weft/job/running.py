"""A running job as those see it who tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from weft.job.live_plan import LivePlan
from weft.job.outbox import Outbox
from weft.job.query_registry import QueryRegistry
from weft.job.records import Manifest
from weft.step.state import State


class RunningJob(Protocol):
    """What stands after a commit."""

    @property
    def last(self) -> Manifest:
        """The last commit."""

    @property
    def live(self) -> LivePlan[Any] | None:
        """The plan, if there is one."""

    @property
    def state(self) -> State:
        """The retained slices."""

    @property
    def answered(self) -> Mapping[str, int]:
        """How many answers each query had in the last batch."""

    @property
    def outbox(self) -> Outbox:
        """What waits for sinks."""

    @property
    def registry(self) -> QueryRegistry[Any]:
        """The queries."""
