"""Connections to a catalog's database that many processes may use at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from weft.catalog.urls import HIDDEN, secrets_of, shown
from weft.errors import WeftError
from weft.store.postgres import answering_within
from weft.store.private import close_file

PATIENCE = 30.0
"""How many seconds a process waits for another one's change."""

SILENCE = 10.0
"""Seconds after which a server that does not answer is taken for away."""
_UNWANTED = ("authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry")
"""What a server says at its door to those whom it does not let in."""
_SCHEMA_LOCK = 0x77656674  # "weft"


class CatalogError(WeftError):
    """The catalog's database does not do what it should: not there, locked for too long, not readable."""


class CatalogAwayError(CatalogError):
    """The catalog's database cannot be reached now: it may be back later."""


class Database:
    """One database, reading and writing."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self._lite = url.get_backend_name() == "sqlite"
        with self._explained():
            self._engine = _sqlite(url) if self._lite else _postgresql(url)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of the database."""
        with self._explained(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: all of it or, after an error, none; SQLite takes one at a time, others wait."""
        writing = self._engine.execution_options(weft_writes=True)
        with self._explained(), writing.begin() as connection:
            yield connection

    @contextmanager
    def write_schema(self) -> Iterator[Connection]:
        """A transaction in which tables are made: one at a time in PostgreSQL as well."""
        with self.write() as connection:
            if not self._lite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _SCHEMA_LOCK})
            yield connection

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            kind = CatalogAwayError if not self._lite and _is_away(error) else CatalogError
            raise kind(f"the catalog {shown(self.url)}: {self._message(error)}") from None

    def _message(self, error: Exception) -> str:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        message = " ".join(str(cause).split())
        for secret in secrets_of(self.url):
            message = message.replace(secret, HIDDEN)
        if "unable to open database file" in message:
            return f"{message}: is there such a folder, and may you write to it?"
        return message


def _is_away(error: Exception) -> bool:
    """Whether the server cannot be reached, rather than does not want us: it was stopped, starts, or is far away."""
    if not isinstance(error, OperationalError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    return not any(word in str(error.orig) for word in _UNWANTED) if state is None else state[:2] in ("08", "53", "57")


def _postgresql(url: URL) -> Engine:
    # a connection that the server closed meanwhile is replaced, not reported
    return answering_within(create_engine(url, pool_pre_ping=True), SILENCE)


def _sqlite(url: URL) -> Engine:
    if url.database and url.database != ":memory:":
        with suppress(OSError):  # what SQLite says of it is clearer
            close_file(Path(url.database))  # its journals are as it is
    engine = create_engine(url, connect_args={"timeout": PATIENCE})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _record: object) -> None:
    # SQLAlchemy, not the sqlite3 module, says when a transaction begins
    connection.isolation_level = None
    _use_wal(connection)
    connection.execute("PRAGMA synchronous=NORMAL")


def _use_wal(connection: Any) -> None:
    """Readers and the writer do not wait for each other; the switch itself ignores the timeout, so try again."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _begin(connection: Connection) -> None:
    # a transaction that reads first and writes later could not wait for another writer: it asks for the lock at once
    writes = connection.get_execution_options().get("weft_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
