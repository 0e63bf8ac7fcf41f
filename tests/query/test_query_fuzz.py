"""No text, however mangled, raises anything but the errors that are meant for its author."""

from __future__ import annotations

import contextlib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.errors import QueriesError
from weft.query.sparksql import parse_file

GOOD = [
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT t.symbol, window.end AS e, max(price) - min(t.price) AS spread, "
    "sum(price * volume) FILTER (WHERE side = 'B') / sum(volume) FROM trades t WHERE volume > 0 AND side IN ('B', 'S') "
    "GROUP BY symbol, window(ts, '10 minutes', '1 minute') HAVING count(*) > 3 AND spread BETWEEN 1 AND 2;",
    "-- name: x\nSELECT upper(symbol) u, first(price IGNORE NULLS), CASE WHEN count(*) > 1 THEN s.x[0].y ELSE 1L END\n"
    "FROM `db`.trades GROUP BY window(ts, '1 hour'), u, s.x /* comment */;",
    "SELECT MAX(a) FROM S [WINDOW 10 min SLIDE 2 min] WHERE b LIKE 'x%' ESCAPE '!' GROUP BY k, ALL",
    "SELECT transform(array(max(a)), x -> x + 1), date_diff(DAY, window.start, max(ts)), INTERVAL '1' DAY, "
    "EXTRACT(YEAR FROM max(ts)), TRIM(BOTH 'x' FROM max(b)), overlay(max(a) PLACING 'x' FROM 1), 1.5e3BD, x::int "
    "FROM t GROUP BY ALL",
]
WORDS = [
    *sorted({word for text in GOOD for word in text.split()}),
    *("(", ")", "[", "]", "{", "}", ",", ".", ";", "'", '"', "`", "--", "/*", "*/", "\\", "::", "->", "=>"),
    *("?", ":p", "$", "*", "1", "é", "\x00", "\n", "GROUPING SETS", "window", "window(", "count(*)", "ROLLUP("),
    *("WITH", "OVER", "LATERAL", "JOIN", "NULL", "NOT", "ANY", "EXISTS", "VALUES", "INTERVAL", "STRUCT"),
    *("UNION", "LIMIT", "CASE", "ELSE", "END", "AS", "TABLE"),
]


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """A good text with some words dropped, doubled, replaced or cut through."""
    text = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(st.sampled_from(["", " ", *WORDS])) + text[end:]
    return text


def only_meant_errors(text: str) -> None:
    with contextlib.suppress(QueriesError):
        parse_file(text)


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mangled())
def test_a_mangled_query_is_refused_or_read(text: str) -> None:
    only_meant_errors(text)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_a_salad_of_words_is_refused_or_read(text: str) -> None:
    only_meant_errors(text)
    only_meant_errors(f"SELECT {text} FROM t GROUP BY window(ts, '1 minute')")


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_or_read(text: str) -> None:
    only_meant_errors(text)
    only_meant_errors(f"SELECT max(a) FROM t WHERE {text} GROUP BY window(ts, '1 minute')")


def test_an_expression_too_deep_to_parse_is_refused() -> None:
    only_meant_errors(f"SELECT {'(' * 5000}1{')' * 5000} FROM t GROUP BY window(ts, '1 minute')")
