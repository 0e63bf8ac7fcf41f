"""Whether a job is well, for whoever restarts it (``/healthz``) or sends people to its answers (``/readyz``)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from weft.catalog import Status
from weft.cli.figures import span

SILENT = 60.0
"""A job looks at itself four times a second; if it has not for so many seconds, it is stuck."""


@dataclass(frozen=True)
class Health:
    """What a probe is told: fine if nothing speaks against it."""

    state: str
    reasons: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong."""
        return not self.reasons


def alive(status: Status, stuck_after: float, now: float | None = None) -> Health:
    """Whether the job does something: not whether all is well, as a restart brings back no sink that is away.

    Examples
    --------
    >>> alive({"state": "running", "said_at": 100.0, "batch_since": 90.0}, 60.0, now=101.0).reasons
    ()
    >>> alive({"state": "running", "said_at": 100.0, "batch_since": 30.0}, 60.0, now=101.0).reasons
    ('its batch has been under way for 1 min 11 s',)
    """
    now = time.time() if now is None else now
    state = status.get("state", "starting")
    reasons = []
    if state == "failed":
        reasons.append("it has failed")
    if state == "starting" and now - status.get("started", now) > stuck_after:
        reasons.append(f"it has been starting for {span(now - status['started'])}")
    if now - status.get("said_at", now) > SILENT:
        reasons.append(f"it has not looked at itself for {span(now - status['said_at'])}")
    since = status.get("batch_since")
    if since is not None and now - since > stuck_after:
        reasons.append(f"its batch has been under way for {span(now - since)}")
    return Health(state, tuple(reasons))


def ready(status: Status, stuck_after: float, now: float | None = None) -> Health:
    """Whether the job runs, and everything that it needs is there.

    Examples
    --------
    >>> ready({"state": "running"}, 60.0), ready({"state": "starting"}, 60.0).reasons
    (Health(state='running', reasons=()), ('it is starting',))
    """
    health = alive(status, stuck_after, now)
    away = [f"{outage['what']}: {outage['error']}" for outage in status.get("outages", [])]
    if health.state == "running" or away:
        return Health(health.state, (*health.reasons, *away))
    return Health(health.state, health.reasons or (f"it is {health.state}",))
