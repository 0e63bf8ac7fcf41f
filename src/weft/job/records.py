"""What is written down about plans and batches: the truth that a restart goes by."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self, TypeVar

Record = TypeVar("Record", bound="JsonRecord")

UNKEPT = 0
"""The version of a plan that has yet to be written down."""
EVERYTHING = "*"
"""Stands in ``since`` for the slices themselves."""


class JsonRecord:
    """A record that is kept as JSON; fields of a newer Weft are passed over."""

    def dump(self) -> bytes:
        """The record as bytes."""
        return json.dumps(asdict(self)).encode()  # type: ignore[call-overload]

    @classmethod
    def load(cls, data: bytes) -> Self:
        """The record of these bytes."""
        found: dict[str, Any] = json.loads(data)
        known = {item.name for item in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in found.items() if name in known})


@dataclass(frozen=True)
class Settings(JsonRecord):
    """What stays as it is for the life of a checkpoint."""

    run: str
    """Which checkpoint this is: sinks tell the batches of two apart."""
    stream: str
    event_time: str
    lateness: int
    """In microseconds."""


@dataclass(frozen=True)
class PlanRecord(JsonRecord):
    """A plan: queries by their texts, who shares slices with whom, and from when on late-comers are answered."""

    version: int
    queries: dict[str, str]
    """The statement of each query that is answered, by its name."""
    entries: dict[str, int]
    """The number of each query's entry in the catalog: one that was dropped and added again is another query."""
    groupings: list[dict[str, Any]]
    """``id``, names of ``queries``, whether it is ``conditional``; with buckets, the key columns ``placing`` tells."""
    first: dict[str, int] = field(default_factory=dict)
    """When the first window of a query may start, where it came after the stream had begun."""
    next_id: int = 0
    technique: str = "auto"
    sampled: bool = False
    """Whether it was fitted to a sample of rows."""
    buckets: int = 0
    """In how many parts the executors keep the state and answer from it; 0 if the driver's process does all of it."""


@dataclass(frozen=True)
class BatchStart(JsonRecord):
    """What a batch starts from: whoever runs it again starts from the same."""

    batch: int
    plan: int
    watermark: int | None
    epoch: int
    drain: bool = False


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
