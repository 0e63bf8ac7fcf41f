"""How a file of queries compares with the queries of a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft.query.model import Query
from weft.query.statements import read_statement
from weft.query.tokens import pieces


@dataclass(frozen=True, slots=True)
class Differences:
    """What a file has that the catalog has not, and the other way round."""

    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.missing or self.changed)

    def __str__(self) -> str:
        parts = (
            ("added to the file", self.added),
            ("missing in the file", self.missing),
            ("changed in the file", self.changed),
        )
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)


def named_sql(query: Query) -> str:
    """The query's statement so that reading it again gives the same name.

    Examples
    --------
    >>> from weft.query.sparksql import parse_file
    >>> query, = parse_file("SELECT count(*) AS n FROM t GROUP BY window(ts, '1 hour')")
    >>> print(named_sql(query))
    -- name: q1
    SELECT count(*) AS n FROM t GROUP BY window(ts, '1 hour')
    """
    (piece,) = pieces(query.text)
    statement = read_statement(query.text, piece)
    return query.text if statement.name else f"-- name: {query.name}\n{query.text}"


def own_sql(sql: str) -> str:
    """A statement as its user wrote it, without the name that :func:`named_sql` put before it.

    Examples
    --------
    >>> own_sql("-- name: q1\\nSELECT 1")
    'SELECT 1'
    """
    first, _, rest = sql.partition("\n")
    return rest if first.startswith("-- name: ") else sql


def differences(file: Mapping[str, str], catalog: Mapping[str, str]) -> Differences:
    """Compare statements by name, whatever the letter case of names, white space and comments.

    Examples
    --------
    >>> print(differences({"a": "SELECT 1", "b": "SELECT 2"}, {"A": "SELECT  1 -- one", "c": "SELECT 3"}))
    added to the file: b; missing in the file: c
    """
    ours = {name.lower(): (name, sql) for name, sql in catalog.items()}
    theirs = {name.lower(): (name, sql) for name, sql in file.items()}
    return Differences(
        added=_names(theirs[key] for key in theirs if key not in ours),
        missing=_names(ours[key] for key in ours if key not in theirs),
        changed=_names(
            theirs[key] for key in theirs if key in ours and not _same_statement(theirs[key][1], ours[key][1])
        ),
    )


def _names(statements: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(name for name, _ in statements)


def _same_statement(one: str, other: str) -> bool:
    return one == other or _words(one) == _words(other)


def _words(sql: str) -> list[tuple[object, str]]:
    """What the statement asks, without its name and without how it came into the catalog (CREATE OR REPLACE).

    Letter case counts, as it shows in the names of columns.
    """
    (piece,) = pieces(sql)
    return [(token.token_type, token.text) for token in read_statement(sql, piece).body]
