"""What a catalog holds: queries with their states, what happened to them, and the plans they were part of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import RowMapping

State = Literal["pending", "active", "paused", "refused", "dropped"]
"""Pending until the running job has accepted or refused it; refused and dropped are for ever, but that a query
comes back whose successor is refused."""

Action = Literal["seeded", "added", "accepted", "refused", "dropped", "paused", "resumed", "restored"]

LIVE: tuple[State, ...] = ("pending", "active", "paused")
"""The states of queries that a job answers, will answer, or may be asked to answer again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A query of the catalog."""

    id: int
    """Its own for ever: a query that is dropped and added again is another entry."""
    name: str
    sql: str
    """The statement; a comment ``-- name: x`` before it gives the name where the statement itself does not."""
    state: State
    reason: str | None
    """Why it was refused."""
    batch: int | None
    """The first batch that included it, after it was added or resumed."""
    version: int
    """The catalog's version when it last changed."""
    added_at: datetime
    changed_at: datetime

    @property
    def live(self) -> bool:
        """Whether it is neither refused nor dropped."""
        return self.state in LIVE


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to a query."""

    version: int
    at: datetime
    name: str
    action: Action
    batch: int | None
    note: str | None


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """A plan, and the first batch that ran it."""

    version: int
    batch: int
    recorded_at: datetime
    plan: Any
    """As it was recorded: what JSON can hold."""


def instant(seconds: float) -> datetime:
    """A time of the catalog."""
    return datetime.fromtimestamp(seconds, UTC)


def entry_of(row: RowMapping) -> Entry:
    """A row of the table of queries."""
    return Entry(
        id=row["id"],
        name=row["name"],
        sql=row["sql"],
        state=row["state"],
        reason=row["reason"],
        batch=row["batch"],
        version=row["version"],
        added_at=instant(row["added_at"]),
        changed_at=instant(row["changed_at"]),
    )
