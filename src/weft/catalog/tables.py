"""The tables of a catalog. Times are seconds since the epoch, as SQLite has no type for them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, String, Table, Text

FORMAT = 1
"""Rises when the tables change, so that an old Weft does not touch what it cannot read."""

METADATA = MetaData()

CATALOG = Table(
    "weft_catalog",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("uid", String(36), nullable=False),
    Column("format", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("checkpoint", Text),
    Column("seed", Text),
)

QUERIES = Table(
    "weft_queries",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("sql", Text, nullable=False),
    Column("state", String(10), nullable=False),
    Column("reason", Text),
    Column("batch", BigInteger),
    Column("version", BigInteger, nullable=False),
    Column("added_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    sqlite_autoincrement=True,
)

_LIVE = QUERIES.c.state.in_(("pending", "active", "paused"))
# the database itself refuses a second live query of a name
Index("weft_queries_live", QUERIES.c.key, unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE)

CHANGES = Table(
    "weft_changes",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    Column("query", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("action", String(10), nullable=False),
    Column("batch", BigInteger),
    Column("note", Text),
    sqlite_autoincrement=True,
)

PLANS = Table(
    "weft_plans",
    METADATA,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, nullable=False),
    Column("recorded_at", Double, nullable=False),
    Column("plan", Text, nullable=False),
)

FIGURES = Table(
    "weft_figures",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("figures", Text, nullable=False),
)

STATUS = Table(
    "weft_status",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("heartbeat", Double, nullable=False),
    Column("status", Text, nullable=False),
)
