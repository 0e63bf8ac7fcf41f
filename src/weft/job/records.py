"""What is written down about plans and batches: the truth that a restart goes by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from weft.plan.cut_engine import CutEngine
from weft.plan.record import JsonRecord

EVERYTHING = "*"
"""Stands in ``since`` for the slices themselves."""


@dataclass(frozen=True)
class CheckpointSettings(JsonRecord):
    """What stays as it is for the life of a checkpoint."""

    run: str
    """Which checkpoint this is: sinks tell the batches of two apart."""
    stream: str
    event_time: str
    lateness: int
    """In microseconds."""


@dataclass(frozen=True)
class BatchStart(JsonRecord):
    """What a batch starts from: whoever runs it again starts from the same."""

    batch: int
    plan: int
    watermark: int | None
    epoch: int
    drain: bool = False
    cut: CutEngine = "jvm"
    """Who cuts its rows into slices, as far as they can."""


@dataclass(frozen=True)
class Counts(JsonRecord):
    """What a batch did."""

    rows: int = 0
    without_time: int = 0
    late: int = 0
    """Rows that no window wants any more."""
    bad: int = 0
    """Records that could not be read."""
    slices: int = 0
    answers: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Manifest(JsonRecord):
    """The commit of a batch: every file of its state and of its answers."""

    batch: int
    plan: int
    epoch: int
    watermark: int | None
    largest: int | None
    """The largest event time seen."""
    state: list[tuple[str, int]] = field(default_factory=list)
    """Files of retained slices with the levels of their segments, oldest first."""
    since: dict[str, dict[str, int]] = field(default_factory=dict)
    """By grouping and column: from which event time on it is complete; what is not named, is from the beginning."""
    evaluated: bool = False
    """Whether ``since`` tells for which rows keys and arguments were evaluated; that of an older Weft does not."""
    answers: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Queries that stopped it, and why."""
    left: list[str] = field(default_factory=list)
    """Queries of the plan that were dropped, paused or refused after the batch was started: it was run without them."""
    refusals: list[tuple[int, str, str]] = field(default_factory=list)
    """Entries, names and reasons of queries that earlier batches stopped, while the catalog was away."""
    counts: dict[str, Any] = field(default_factory=dict)
    drained: bool = False

    @classmethod
    def load(cls, data: bytes) -> Self:
        """The record of these bytes; nothing that was retained by an older Weft serves new queries."""
        found = super().load(data)
        if found.evaluated or found.largest is None:
            return found
        return replace(found, since={id: {EVERYTHING: found.largest + 1} for id in found.since})
