"""The catalog: the queries of a job, changed from any process, obeyed by the running job at its next batch."""

from __future__ import annotations

import difflib
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nlargest
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, insert, select, update

from weft.catalog.database import CatalogError, Database
from weft.catalog.entries import LIVE, Action, Change, Entry, PlanEntry, State, entry_of, instant
from weft.catalog.seeding import Differences, differences, named_sql
from weft.catalog.status import QueryFigures, Status, read_status
from weft.catalog.tables import CATALOG, CHANGES, FIGURES, FORMAT, METADATA, PLANS, QUERIES, STATUS
from weft.catalog.urls import read_url, shown
from weft.errors import UseError
from weft.query.model import Query
from weft.query.sparksql import parse_file

FIRST_WINDOWS = "first_windows"
"""In a recorded plan: by name, when the first window of a query that came with it starts, in microseconds."""
MOST_FIGURES = 10_000
"""Of so many queries a catalog keeps figures."""
_ONLY = 1
"""The id of the one row that a table holds."""

_LED_TO: Mapping[Action, State] = {"accepted": "active", "paused": "paused"}
"""To which state an action has led; others to pending."""


class Catalog:
    """The queries of one job, with their states, the plans' history and the job's status.

    Every method is one transaction; any number of processes may call them at once.

    Examples
    --------
    >>> catalog = Catalog.open("sqlite:///:memory:")
    >>> before = catalog.version()
    >>> entry, = catalog.add("CREATE VIEW n AS SELECT count(*) AS n FROM t GROUP BY window(ts, '1 hour')")
    >>> entry.name, entry.state, catalog.version() > before
    ('n', 'pending', True)
    >>> catalog.accept("n", batch=7)
    True
    >>> [(entry.name, entry.state, entry.batch) for entry in catalog.entries()]
    [('n', 'active', 7)]
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, url: str) -> Catalog:
        """The catalog at ``sqlite:///FILE`` or ``postgresql://USER@HOST:PORT/DATABASE``, made if it is not there."""
        database = Database(read_url(url))
        with database.write_schema() as connection:
            METADATA.create_all(connection)
            row = connection.execute(select(CATALOG.c.format)).scalar_one_or_none()
            if row is None:
                values = {"id": _ONLY, "uid": str(uuid.uuid4()), "format": FORMAT, "version": 0}
                connection.execute(insert(CATALOG).values(values))
            elif row > FORMAT:
                raise CatalogError(f"the catalog {shown(database.url)} was made by a newer Weft; update this one")
        return cls(database)

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        return shown(self._database.url)

    def uid(self) -> str:
        """Which catalog this is, wherever its database moves."""
        with self._database.read() as connection:
            return str(connection.execute(select(CATALOG.c.uid)).scalar_one())

    def claim(self, checkpoint: str) -> None:
        """Make it the catalog of a new checkpoint, unless it serves another one or one that is gone."""
        with self._database.write() as connection:
            owner = connection.execute(select(CATALOG.c.checkpoint)).scalar_one()
            served = connection.execute(select(STATUS.c.id)).one_or_none() is not None
            if served or owner not in (None, checkpoint):
                raise UseError(
                    f"the catalog {self.url} serves the checkpoint {owner}, and one catalog serves one checkpoint: "
                    "name another database, or a schema of its own with ?options=-csearch_path=NAME"
                )
            connection.execute(update(CATALOG).values(checkpoint=checkpoint))

    def version(self) -> int:
        """Rises with every change of a query; one cheap question, to be asked before every batch."""
        with self._database.read() as connection:
            return int(connection.execute(select(CATALOG.c.version)).scalar_one())

    def entries(self, *states: State) -> list[Entry]:
        """The queries in the given states, or all that there ever were, in the order in which they came."""
        with self._database.read() as connection:
            return _entries(connection, states)

    def is_seeded(self) -> bool:
        """Whether a file has filled it before."""
        with self._database.read() as connection:
            return connection.execute(select(CATALOG.c.seed)).scalar_one() is not None

    def seed(self, queries: Sequence[Query]) -> Differences:
        """Fill the catalog from a file, the first time; later only compare: then the catalog rules.

        A file that is still as it was the first time, or that says what the catalog says, is fine.

        Returns
        -------
        Differences
            Between the file and the queries of the catalog, which were changed while the job ran.

        Raises
        ------
        UseError
            If the file was edited: it names the differences.
        """
        file = {query.name: named_sql(query) for query in queries}
        with self._database.write() as connection:
            seed = connection.execute(select(CATALOG.c.seed)).scalar_one()
            if seed is None:
                self._fill(connection, file)
                return Differences()
            found = differences(file, {entry.name: entry.sql for entry in _entries(connection, LIVE)})
        if found and differences(file, dict(json.loads(seed))):
            raise UseError(
                f"the catalog {self.url} has other queries than the file: {found}\n"
                "  change a job's queries with weft add and weft drop, or start without the file to go on as they are"
            )
        return found

    def _fill(self, connection: Connection, file: Mapping[str, str]) -> None:
        change = _begin(connection)
        taken = {entry.name.lower() for entry in _entries(connection, LIVE)}
        for name in file:
            if name.lower() in taken:
                raise UseError(f"the catalog {self.url} has a query {name} already, and so has the file; drop one")
        change.insert(file, "seeded")
        connection.execute(update(CATALOG).values(seed=json.dumps(list(file.items()))))

    def add(self, text: str) -> list[Entry]:
        """Add the queries of ``text``, all or none; they are pending until the running job says what it thinks.

        A query without a name is numbered around the names that are taken; ``CREATE OR REPLACE VIEW`` drops the query
        of its name first, which comes back if the job refuses the new one.

        Raises
        ------
        QueriesError
            With every bad query, and where in its text; then nothing is written.
        """
        with self._changing() as change:
            live = {entry.name.lower(): entry for entry in _entries(change.connection, LIVE)}
            queries = parse_file(text, taken=[entry.name for entry in live.values()])
            replaced = [live[query.name.lower()] for query in queries if query.name.lower() in live]
            change.move(replaced, "dropped", "dropped", note="replaced")
            return change.insert({query.name: named_sql(query) for query in queries}, "added")

    def drop(self, *names: str) -> list[Entry]:
        """Drop queries, refused ones too, all or none; the running job leaves them out from its next batch on."""
        return self._move(names, (*LIVE, "refused"), "dropped", "dropped")

    def pause(self, *names: str) -> list[Entry]:
        """Have queries not answered until they are resumed."""
        return self._move(names, ("pending", "active"), "paused", "paused")

    def resume(self, *names: str) -> list[Entry]:
        """Have paused queries answered again: as for a new one, the job says from where."""
        return self._move(names, ("paused",), "pending", "resumed")

    def accept(self, name: str, batch: int, *, id: int | None = None) -> bool:
        """Say, as the running job, that a pending query is answered from ``batch`` on.

        Parameters
        ----------
        id
            Which entry was accepted, for the case that the name was given to another one meanwhile.

        Returns
        -------
        bool
            False if the query is not pending any more; then a newer version of the catalog tells why.
        """
        with self._changing() as change:
            entry = _live(change.connection, name, id)
            if entry is None or entry.state != "pending":
                return False
            change.move([entry], "active", "accepted", batch=batch)
            return True

    def accept_all(self, entries: Iterable[Entry], batch: int) -> int:
        """Accept many queries at once, those of them that are pending still; gives the catalog's version after it."""
        ids = {entry.id for entry in entries}
        with self._changing() as change:
            pending = [entry for entry in _entries(change.connection, ("pending",)) if entry.id in ids]
            change.move(pending, "active", "accepted", batch=batch)
            return change.version

    def refuse(self, name: str, reason: str, *, id: int | None = None) -> bool:
        """Say, as the running job, why a pending or active query is not answered; False if it is neither any more.

        A query whose place it was to take before anything was answered goes on as it was.
        """
        with self._changing() as change:
            entry = _live(change.connection, name, id)
            if entry is None or entry.state == "paused":
                return False
            change.move([entry], "refused", "refused", note=reason)
            if entry.batch is None:
                change.restore(entry)
            return True

    def first_windows(self) -> dict[int, int]:
        """By the id of an active query: when its first window starts, in microseconds, if not with the stream."""
        with self._database.read() as connection:
            active = _entries(connection, ("active",))
            batches = {entry.batch for entry in active}
            wanted = select(PLANS.c.batch, PLANS.c.plan).where(PLANS.c.batch.in_(batches)).order_by(PLANS.c.version)
            plans = {row.batch: json.loads(row.plan) for row in connection.execute(wanted)}
        firsts = {batch: plan.get(FIRST_WINDOWS, {}) for batch, plan in plans.items()}
        found = {entry.id: firsts.get(entry.batch, {}).get(entry.name) for entry in active}
        return {id: start for id, start in found.items() if start is not None}

    def record_plan(self, version: int, batch: int, plan: Any) -> None:
        """Keep a plan with the first batch that runs it; the same version again takes its place (a replayed batch)."""
        values = {"batch": batch, "recorded_at": time.time(), "plan": json.dumps(plan)}
        with self._database.write() as connection:
            again = connection.execute(update(PLANS).where(PLANS.c.version == version).values(values))
            if not again.rowcount:
                connection.execute(insert(PLANS).values(version=version, **values))

    def plans(self) -> list[PlanEntry]:
        """The plans' history, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(PLANS).order_by(PLANS.c.version)).all()
        return [PlanEntry(row.version, row.batch, instant(row.recorded_at), json.loads(row.plan)) for row in rows]

    def changes(self) -> list[Change]:
        """Everything that happened to queries, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(CHANGES).order_by(CHANGES.c.id)).all()
        return [Change(row.version, instant(row.at), row.name, row.action, row.batch, row.note) for row in rows]

    def put_status(self, status: Status) -> None:
        """Say, as the running job, how it is; the time is noted as its heartbeat."""
        values = {"heartbeat": time.time(), "status": json.dumps(status)}
        with self._database.write() as connection:
            if not connection.execute(update(STATUS).values(values)).rowcount:
                connection.execute(insert(STATUS).values(id=_ONLY, **values))

    def put_figures(self, figures: Mapping[str, QueryFigures]) -> None:
        """Say, as the running job, how its queries are; only of those that take most time if they are very many."""
        most = nlargest(MOST_FIGURES, figures, key=lambda name: figures[name]["seconds"])
        columns = list(QueryFigures.__annotations__)
        # their names once for all, as they may be thousands
        rows = {name: [dict(figures[name])[column] for column in columns] for name in most}
        told = {"columns": columns, "queries": rows}
        values = {"figures": json.dumps(told, separators=(",", ":"))}
        with self._database.write() as connection:
            if not connection.execute(update(FIGURES).values(values)).rowcount:
                connection.execute(insert(FIGURES).values(id=_ONLY, **values))

    def figures(self) -> dict[str, QueryFigures]:
        """What the last job said of its queries, by their names."""
        with self._database.read() as connection:
            text = connection.execute(select(FIGURES.c.figures)).scalar_one_or_none()
        told = json.loads(text) if text else {"columns": [], "queries": {}}
        found: dict[str, Any] = {
            name: dict(zip(told["columns"], row, strict=True)) for name, row in told["queries"].items()
        }
        return found

    def status(self) -> Status | None:
        """What the running job last said, with its heartbeat; None if no job ever ran."""
        with self._database.read() as connection:
            row = connection.execute(select(STATUS)).one_or_none()
        if row is None:
            return None
        return read_status(row.status, row.heartbeat)

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _move(self, names: Sequence[str], origins: Sequence[State], state: State, action: Action) -> list[Entry]:
        with self._changing() as change:
            entries = sorted(_entries(change.connection, ()), key=lambda entry: entry.live)
            known = {entry.name.lower(): entry for entry in entries}
            found = [_found(name, known) for name in names]
            for entry in found:
                if entry.state not in origins:
                    raise UseError(f"query {entry.name} is {entry.state}, so it cannot be {action}")
            change.move(found, state, action)
            ids = {entry.id for entry in found}
            return [entry for entry in _entries(change.connection, ()) if entry.id in ids]

    @contextmanager
    def _changing(self) -> Iterator[_Change]:
        with self._database.write() as connection:
            yield _begin(connection)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change under way: every query that it touches gets the catalog's next version."""

    connection: Connection
    version: int
    at: float

    def insert(self, queries: Mapping[str, str], action: Action) -> list[Entry]:
        """Pending queries, given by their names and texts."""
        same = {"state": "pending", "version": self.version, "added_at": self.at, "changed_at": self.at}
        rows = [{"name": name, "key": name.lower(), "sql": sql, **same} for name, sql in queries.items()]
        if rows:
            self.connection.execute(insert(QUERIES), rows)
        mine = select(QUERIES).where(QUERIES.c.version == self.version, QUERIES.c.state == "pending")
        entries = [entry_of(row) for row in self.connection.execute(mine.order_by(QUERIES.c.id)).mappings()]
        self._note(entries, action, None, None)
        return entries

    def move(
        self,
        entries: Sequence[Entry],
        state: State,
        action: Action,
        *,
        batch: int | None = None,
        note: str | None = None,
    ) -> None:
        """Have queries in another state."""
        values: dict[str, object] = {"state": state, "version": self.version, "changed_at": self.at}
        if state == "active":
            values["batch"] = batch
        if state == "refused":
            values["reason"] = note
        ids = [entry.id for entry in entries]
        self.connection.execute(update(QUERIES).where(QUERIES.c.id.in_(ids)).values(values))
        self._note(entries, action, batch, note)

    def restore(self, refused: Entry) -> None:
        """Have the query again whose place a refused one was given, in the state that it had."""
        theirs = select(CHANGES.c.version, CHANGES.c.action).order_by(CHANGES.c.id.desc()).limit(1)
        added = theirs.where(CHANGES.c.query == refused.id, CHANGES.c.action == "added")
        since = self.connection.execute(added).scalar_one_or_none()
        replaced = select(QUERIES).where(
            QUERIES.c.key == refused.name.lower(), QUERIES.c.state == "dropped", QUERIES.c.version == since
        )
        row = self.connection.execute(replaced).mappings().one_or_none()
        if row is None:
            return
        entry = entry_of(row)
        told = theirs.where(CHANGES.c.query == entry.id, CHANGES.c.action.not_in(("dropped", "restored")))
        _, last = self.connection.execute(told).one()
        self.move([entry], _LED_TO.get(last, "pending"), "restored", batch=entry.batch, note="its successor is refused")

    def _note(self, entries: Sequence[Entry], action: Action, batch: int | None, note: str | None) -> None:
        same = {"version": self.version, "at": self.at, "action": action, "batch": batch, "note": note}
        if entries:
            self.connection.execute(
                insert(CHANGES), [{"query": entry.id, "name": entry.name, **same} for entry in entries]
            )


def _begin(connection: Connection) -> _Change:
    """Take the next version: in PostgreSQL the lock on its row lets one change through at a time."""
    bumped = update(CATALOG).values(version=CATALOG.c.version + 1).returning(CATALOG.c.version)
    return _Change(connection, int(connection.execute(bumped).scalar_one()), time.time())


def _entries(connection: Connection, states: Sequence[State]) -> list[Entry]:
    wanted = select(QUERIES).order_by(QUERIES.c.id)
    if states:
        wanted = wanted.where(QUERIES.c.state.in_(states))
    return [entry_of(row) for row in connection.execute(wanted).mappings()]


def _live(connection: Connection, name: str, id: int | None) -> Entry | None:
    """The live query of a name, if it is the one that is meant."""
    wanted = select(QUERIES).where(QUERIES.c.key == name.lower(), QUERIES.c.state.in_(LIVE))
    row = connection.execute(wanted).mappings().one_or_none()
    return entry_of(row) if row is not None and id in (None, row["id"]) else None


def _found(name: str, known: Mapping[str, Entry]) -> Entry:
    """The live entry of a name, or the latest one."""
    entry = known.get(name.lower())
    if entry is None:
        live = {key: entry for key, entry in known.items() if entry.live}
        close = difflib.get_close_matches(name.lower(), live, 1)
        raise UseError(f"there is no query {name}" + (f"; did you mean {live[close[0]].name}?" if close else ""))
    return entry
