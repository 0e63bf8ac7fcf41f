"""Answers as rows of PostgreSQL tables, one table a query, upserted by key.

**Exactly once.** A batch is one transaction: readers see all of its answers, in all tables, or none. A query that
shows its window and all keys of its groups has a table that is unique by these (NULL = NULL, so PostgreSQL 15 or later
is asked for), and a row that comes again replaces itself: a batch that is delivered again changes nothing, not even
when a lost checkpoint has everything computed again. A query that does not show them has no such key. Its table
has the columns ``weft_run``, ``weft_batch``, ``weft_file`` and ``weft_row`` besides, which name a row for ever.

Tables are made from the schema of the answers: a column that is there already must be of that name. A window that is
shown as a struct becomes the two columns ``window_start`` and ``window_end``; other structs, arrays and maps are JSONB.
Names of more than 63 bytes, of which PostgreSQL would cut off the rest, end in a hash instead. The character NUL, which
no text of PostgreSQL can hold, becomes its picture, U+2400; of groups that are then the same, one row is kept.
The password comes from ``WEFT_POSTGRES_PASSWORD``, or from where PostgreSQL's own programs find it (``PGPASSWORD``,
``~/.pgpass``); one in the address is used and shown nowhere.
"""

from __future__ import annotations

import os
from hashlib import blake2b

import psycopg
from sqlalchemy import URL, Connection, Engine, Table, create_engine, func, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from weft.errors import UseError, WeftError
from weft.job.sink import CommittedBatch, QueryAnswers
from weft.sinks.postgres_tables import Layout, layout, quoted
from weft.store.postgres import answering_within

OLDEST = 15
PATIENCE = 300.0
PASSWORD = "WEFT_POSTGRES_PASSWORD"


class PostgresSink:
    """Upserts answers into tables.

    Parameters
    ----------
    url
        ``postgresql://user@host:port/database``.
    table
        The name of a query's table.
    schema
        The schema of the tables; the first of the search path by default.
    timeout
        Seconds for which the server may say nothing though it owes an answer, before a delivery is given up and tried
        again.
    """

    def __init__(
        self,
        url: str,
        *,
        table: str = "{query}",
        schema: str | None = None,
        timeout: float = PATIENCE,
        name: str | None = None,
    ) -> None:
        self._url = address(url)
        self._timeout = timeout
        self._pattern = table
        self._schema = schema
        into = f"{schema}.{table}" if schema else table
        shown = without_password(self._url)
        self.name = name or (shown if into == "{query}" else f"{shown}#{into}")
        self._engine: Engine | None = None
        self._layouts: dict[tuple[str, str], Layout] = {}

    def open(self) -> None:
        """Reach the database."""
        # a connection a batch: one that broke while no batch came is never met again
        self._engine = answering_within(create_engine(self._url, poolclass=NullPool), self._timeout)
        self._layouts = {}
        try:
            with self._engine.connect() as connection:
                version = int((connection.dialect.server_version_info or (0,))[0])
        except DBAPIError as error:
            raise self._failed("cannot be reached", error) from None
        if version < OLDEST:
            raise UseError(f"sink {self.name}: it is PostgreSQL {version}, but {OLDEST} or later is needed")

    def deliver(self, batch: CommittedBatch) -> None:
        """Upsert the answers of a batch, all or none."""
        assert self._engine is not None, "open() comes first"
        try:
            with self._engine.begin() as connection:
                # one at a time: an old driver that still delivers must not wait for us while we wait for it
                connection.execute(select(func.pg_advisory_xact_lock(_number(self.name))))
                for answers in batch.answers:
                    self._upsert(connection, batch, answers)
        except (DBAPIError, psycopg.Error) as error:
            self._layouts = {}  # tables made in a transaction that failed are not there
            raise self._failed(f"batch {batch.number} was not taken", error) from None

    def close(self) -> None:
        """Let go of the database."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def _upsert(self, connection: Connection, batch: CommittedBatch, answers: QueryAnswers) -> None:
        found = self._layout(connection, answers)
        if not answers.files:
            return
        names = ", ".join(quoted(column) for column in found.columns)
        target = ".".join(quoted(part) for part in (self._schema, found.table.name) if part)
        driver = connection.connection.driver_connection
        assert driver is not None
        selected = found.selected("weft_rows")
        with driver.cursor() as cursor:
            cursor.execute(f"CREATE TEMP TABLE weft_rows ON COMMIT DROP AS {found.selected(target)} LIMIT 0")
            with cursor.copy(f"COPY weft_rows ({names}) FROM STDIN") as copy:
                for file, rows in enumerate(answers.tables()):
                    values = found.values(rows, batch, file)
                    if found.has_pictures(values):
                        selected = found.selected_once("weft_rows")
                    for row in zip(*values, strict=True):
                        copy.write_row(row)
            cursor.execute(f"INSERT INTO {target} ({names}) {selected} {found.on_conflict()}")
            cursor.execute("DROP TABLE weft_rows")

    def _layout(self, connection: Connection, answers: QueryAnswers) -> Layout:
        """The table of a query, which is made if it is not there."""
        known = (answers.query, str(answers.schema))
        if known not in self._layouts:
            made = layout(self._pattern.replace("{query}", answers.query), self._schema, answers)
            if inspect(connection).has_table(made.table.name, schema=self._schema):
                self._check(connection, made.table)
            made.table.create(connection, checkfirst=True)
            self._layouts[known] = made
        return self._layouts[known]

    def _check(self, connection: Connection, table: Table) -> None:
        there = {column["name"] for column in inspect(connection).get_columns(table.name, schema=self._schema)}
        missing = [column.name for column in table.columns if column.name not in there]
        if missing:
            raise WeftError(
                f"sink {self.name}: table {table.name} is there and has no column {', '.join(missing)}: "
                "drop it, or have the sink write under another name (table: ...)"
            )

    def _failed(self, what: str, error: DBAPIError | psycopg.Error) -> WeftError:
        """An error without the statement and its values; drivers name no password, and we name the address alone."""
        said = (
            str(error.orig if isinstance(error, DBAPIError) else error)
            .strip()
            .replace(self._url.password or "\0", "***")
        )
        return WeftError(f"sink {self.name}: {what}: {said}")


def address(url: str) -> URL:
    """The address with our driver, and the password of the environment where it names none."""
    try:
        found = make_url(url)
    except ArgumentError:
        raise WeftError("the address of the database is none: write postgresql://user@host:port/database") from None
    password = found.password or os.environ.get(PASSWORD)
    return found.set(drivername="postgresql+psycopg", password=password)


def without_password(url: URL) -> str:
    """The address as it may be shown.

    Examples
    --------
    >>> without_password(address("postgresql://me:hush@db:5432/answers"))
    'postgresql://me@db:5432/answers'
    """
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database).render_as_string()


def _number(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)
