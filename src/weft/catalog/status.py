"""What a running job says about itself, and whether it still runs."""

from __future__ import annotations

import json
import time
from typing import Literal, TypedDict

JobState = Literal["starting", "running", "degraded", "stopping", "stopped", "drained", "failed"]
"""A job that runs is ``degraded`` while a sink, the catalog or the source is away: what that costs, ``outages`` tells.
"""
ALIVE: tuple[JobState, ...] = ("starting", "running", "degraded", "stopping")
SinkState = Literal["ok", "away", "full"]
"""``away``: it fails, or does not answer. ``full``: so much waits for it that no further batch is begun."""

STALE_SECONDS = 15.0
"""A job that has not said anything for so long is taken for dead."""


class Trouble(TypedDict):
    """An error that the job lived through."""

    at: float
    message: str


class SinkStatus(TypedDict):
    """How far a sink is."""

    state: SinkState
    batch: int
    """The last batch that it took; -1 if none."""
    waiting: int
    """Committed batches that it has yet to take."""
    since: float | None
    """Since when it is away."""
    error: str | None
    """Why."""


class Outage(TypedDict):
    """Something that is away, which the job waits for."""

    what: str
    """``sink NAME``, ``the catalog`` or ``the source``."""
    since: float
    error: str


class BatchFigures(TypedDict, total=False):
    """What the last committed batch tells: one value, made when the batch was committed. Counts are since the start."""

    batch: int
    """The last committed batch."""
    committed_at: float
    batches: int
    rows: int
    batch_rows: int
    rows_per_second: float
    batch_seconds: float
    watermark: int | None
    """Microseconds since the epoch."""
    lag_seconds: float | None
    """How far the watermark was behind the clock when the batch was committed."""
    late_rows: int
    """Rows that no open window wanted."""
    bad_rows: int
    """Records that could not be read."""
    rows_without_time: int
    answers: int
    answers_per_second: float
    state_bytes: int
    buckets: int
    """In how many parts the executors keep the state; 0 if the driver does."""
    trees: int
    queries: int
    catalog_version: int
    """The version of the catalog that the plan follows."""


class QueryFigures(TypedDict):
    """What the job knows of one query, since this start of the job or since the query came."""

    answers: int
    rows: int
    """Rows that were read in the batches that it took part in; its WHERE may have let fewer through."""
    seconds: float
    """Its share of the time of these batches, an estimate: trees by the state that they keep, queries of a tree by
    their answers."""
    state_bytes: int
    """Its share of the state that its tree keeps."""
    lag_seconds: float | None
    """How long after the end of its last answered window that was answered; None before."""
    answered_at: float | None
    """When it last had an answer."""


BATCH_FIGURES = frozenset(BatchFigures.__annotations__)


class Status(BatchFigures, total=False):
    """The last word of a running job: its last batch, and how it is now; times are seconds since the epoch."""

    state: JobState
    job: str
    """Which start of the job this is."""
    pid: int
    host: str
    started: float
    heartbeat: float
    """When this was said; the catalog sets it."""
    said_at: float
    """When the job looked at itself."""
    batch_since: float | None
    """Since when a batch runs that is not committed; None if none does."""
    paused: int
    sinks: dict[str, SinkStatus]
    outages: list[Outage]
    """What is away now; empty unless the state is ``degraded``."""
    errors: list[Trouble]
    """The last few, oldest first."""


def read_status(text: str, heartbeat: float) -> Status:
    """The status that a job put down as JSON; one of an older Weft tells of sinks only how far they are.

    Examples
    --------
    >>> read_status('{"sinks": {"console": 7}}', 1.0)["sinks"]
    {'console': {'state': 'ok', 'batch': 7, 'waiting': 0, 'since': None, 'error': None}}
    """
    found = json.loads(text)
    sinks = {
        name: SinkStatus(state="ok", batch=sink, waiting=0, since=None, error=None) if isinstance(sink, int) else sink
        for name, sink in found.get("sinks", {}).items()
    }
    status: Status = found
    status["heartbeat"] = heartbeat
    if sinks:
        status["sinks"] = sinks
    return status


def is_running(status: Status | None, now: float | None = None) -> bool:
    """Whether the job that said this still runs, as far as one can tell from outside.

    Examples
    --------
    >>> is_running({"state": "running", "heartbeat": 1000.0}, now=1003.0)
    True
    >>> is_running({"state": "running", "heartbeat": 1000.0}, now=1060.0)
    False
    """
    if status is None or status.get("state") not in ALIVE:
        return False
    return silence(status, now) < STALE_SECONDS


def silence(status: Status, now: float | None = None) -> float:
    """For how many seconds the job has said nothing."""
    return (time.time() if now is None else now) - status.get("heartbeat", 0.0)
