"""A text that is read by what is known of another one gives the same query as the parser does, to the last position."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import QueriesError
from weft.query import sparksql
from weft.query.model import Query
from weft.query.sparksql import parse_file
from weft.query.templates import Templates

TEXTS = (
    "CREATE VIEW {name} AS SELECT symbol, window.end, avg(price) AS a FROM trades WHERE volume > {n} AND venue = {s}"
    " GROUP BY symbol, window(ts, {range}, {slide})",
    "-- name: {name}\nSELECT symbol, sum(price * {k}) FILTER (WHERE side = {t}) AS a, count({k}) FROM trades\n"
    "WHERE (t.x IN ({n}, {n}, -{n}) /* one; /* two */ ' */ OR `a'b` LIKE {s} OR s = r'\\') -- it's; {s}\n"
    "GROUP BY {o}, window(ts, {range})",
    "CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT venue v, window(ts, {range}, {slide}).start, max(price) + {k}"
    " FROM trades AS t WHERE t.price BETWEEN {d} AND {n}.5 AND day > DATE {s} GROUP BY ALL"
    " HAVING max(price) > {k} -- x",
    "SELECT window(ts, {range}).start, window.end, bool_or(price > {d}) AS b FROM trades"
    " WHERE struct({n}, Price).Price > {d} GROUP BY window(ts, {range})",
    "CREATE MATERIALIZED VIEW {name} AS SELECT max(price) FROM trades [WINDOW {n} min SLIDE 1 min]"
    " WHERE x = {s} || '' || {s}",
    "create view {name}\nas\nselect first(price, true), count(*) from trades where a[{n}] = 'it''s' and b = 'a\\'b'"
    ' and c = "{n}" and e > 1e{n} and f > {n}L and g > .{n} group by 1 + {k}, window(ts, {range}, {n}, {m})',
)

constants = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "hourly", "Order", "x_1"]),
        "n": st.integers(0, 10**6).map(str),
        "m": st.integers(0, 9).map(str),
        "k": st.sampled_from(["1", "2"]),
        "o": st.sampled_from(["1", "symbol", "2"]),
        "d": st.sampled_from(["0.5", "12.25", "7"]),
        "s": st.sampled_from(["'XNAS'", "''", "'today'", "' Now '", "'a;b'", "'2020-01-01'", "'--'", "'it\\'s'"]),
        "t": st.sampled_from(["'B'", "'S'"]),
        "range": st.sampled_from(["'1 hour'", "'10 minutes'", "'1 minute'", "60000000", "'nonsense'", "'0 seconds'"]),
        "slide": st.sampled_from(["'1 minute'", "'10 minutes'", "'7 seconds'", "-1"]),
    }
)
texts = st.builds(
    lambda text, filled: re.sub(r"\{(\w+)\}", lambda hole: filled[hole[1]], text), st.sampled_from(TEXTS), constants
)
columns = st.sampled_from(
    [None, ["ts", "symbol", "price"], {"trades": ["ts", "symbol", "price", "volume", "venue", "v"]}]
)


def read(text: str, columns: object = None) -> str:
    """All that is known of the queries, also what does not count when they are compared; or what is wrong with them."""
    try:
        return "\n".join(map(repr, parse_file(text, columns, functions=None)))  # type: ignore[arg-type]
    except QueriesError as error:
        return str(error)


def anew(text: str, columns: object = None) -> str:
    """The same, by a parser that remembers nothing."""
    remembered, sparksql._templates = sparksql._templates, Templates()
    try:
        return read(text, columns)
    finally:
        sparksql._templates = remembered


@settings(max_examples=400)
@given(st.lists(st.tuples(texts, columns), min_size=2, max_size=8))
def test_what_was_read_before_changes_nothing(asked: list[tuple[str, object]]) -> None:
    for text, known in asked:
        assert read(text, known) == anew(text, known)


@settings(max_examples=100)
@given(st.lists(texts, min_size=2, max_size=6))
def test_statements_of_one_file_too(several: list[str]) -> None:
    text = ";\n".join(several)
    assert read(text) == anew(text)


def test_the_parser_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def text(volume: int, venue: str, range: str) -> str:
        return (
            f"SELECT avg(price) AS a FROM trades WHERE volume > {volume} AND venue = '{venue}'"
            f" GROUP BY symbol, window(ts, '{range}', '1 minute')"
        )

    parse_file(text(1, "XNAS", "1 hour"))

    def refuse(*_: object) -> Query:
        raise AssertionError("parsed again")

    monkeypatch.setattr(sparksql, "_parse", refuse)
    (query,) = parse_file(text(23, "ARCX", "2 hours"))
    assert query.where is not None
    assert query.where.sql == "volume > 23 AND venue = 'ARCX'"
    assert query.window.overlap == 120
