"""Where expressions stand in the text, checked against Spark's own parser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from weft.errors import QueryError
from weft.query.dialect import ExpressionParser, WeftSpark
from weft.query.spans import Span, UnreadableError, span_of

NAMES = ["a", "b", "price", "`back quoted`", "t.volume", "s.x", "café", "`tick``ed`", "t.s.y", "date", "`CASE`"]
LITERALS = [
    *("1", "2L", "1.5", "3.0D", "1e3", "4BD", "NULL", "TRUE"),
    *("'text'", '"double"', r"'it\'s'", r"r'\d+'", "'--no comment'", "'x' 'y'", "X'1F'"),
    *("DATE '2024-01-01'", "TIMESTAMP '2024-01-01 00:00:00'"),
    *("INTERVAL '1' DAY", "INTERVAL 3 HOURS", "INTERVAL '1:30' HOUR TO MINUTE"),
]
BLANKS = [" ", " ", " ", "\n", "  ", " /* é */ ", " -- to the end\n "]
BINARY = [
    *("+", "-", "*", "/", "%", "||", "DIV", "&", "|", "^", "<<", ">>", ">>>"),
    *("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "AND", "OR"),
]

blank = st.sampled_from(BLANKS)
leaf = st.sampled_from(NAMES + LITERALS)


def joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    """The parts with random white space and comments between."""
    pieces: list[st.SearchStrategy[str]] = []
    for part in parts:
        pieces += [st.just(part) if isinstance(part, str) else part, blank]
    return st.tuples(*pieces[:-1]).map("".join)


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        joined(inner, st.sampled_from(BINARY), inner),
        joined(inner, st.sampled_from(BINARY), inner, st.sampled_from(BINARY), inner),
        joined("(", inner, ")"),
        joined(st.sampled_from(["-", "+", "~", "NOT", "!"]), inner),
        joined(st.sampled_from(["upper", "sum", "`quoted fn`", "if", "left", "date", "any"]), "(", inner, ")"),
        joined("coalesce", "(", inner, ",", inner, ")"),
        joined("CAST", "(", inner, "AS", st.sampled_from(["INT", "DECIMAL(10, 2)", "ARRAY<STRING>"]), ")"),
        joined(leaf, "::", st.sampled_from(["int", "string"])),
        joined("CASE", "WHEN", inner, "THEN", inner, "ELSE", inner, "END"),
        joined("CASE", inner, "WHEN", inner, "THEN", inner, "END"),
        joined(inner, st.sampled_from(["BETWEEN", "NOT BETWEEN"]), inner, "AND", inner),
        joined(inner, st.sampled_from(["IN", "NOT IN"]), "(", inner, ",", inner, ")"),
        joined(inner, st.sampled_from(["LIKE", "NOT LIKE", "RLIKE", "ILIKE"]), inner),
        joined(inner, "LIKE", "'a!%b'", "ESCAPE", "'!'"),
        joined("(", inner, "LIKE", "ANY", "(", "'a'", ",", "'b'", ")", ")"),
        joined(inner, st.sampled_from(["IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE"])),
        joined(inner, st.sampled_from(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]), inner),
        joined("a", "[", inner, "]", ".", "field"),
        joined("upper", "(", inner, ")", "[", "0", "]", ".", "x", ".", "y"),
        joined("transform", "(", leaf, ",", "v", "->", "v", "+", "(", inner, ")", ")"),
        joined("aggregate", "(", leaf, ",", inner, ",", "(", "acc", ",", "v", ")", "->", "(", inner, ")", ")"),
        joined("EXTRACT", "(", "YEAR", "FROM", inner, ")"),
        joined("TRIM", "(", "BOTH", inner, "FROM", inner, ")"),
        joined("SUBSTRING", "(", inner, "FROM", inner, "FOR", inner, ")"),
        joined("POSITION", "(", leaf, "IN", leaf, ")"),
        joined("OVERLAY", "(", inner, "PLACING", inner, "FROM", inner, ")"),
        joined("struct", "(", inner, "AS", "f", ",", inner, ")"),
        joined("sum", "(", inner, ")", "FILTER", "(", "WHERE", inner, ")"),
        joined("first", "(", inner, ")", "IGNORE NULLS"),
        joined(leaf, "COLLATE", "UTF8_LCASE"),
    )


expressions = st.recursive(leaf, compound, max_leaves=8)

# They are no expressions of their own.
FRAGMENTS = (exp.Lambda, exp.Alias, exp.DataType, exp.DataTypeParam, exp.Identifier, exp.Star, exp.Tuple, exp.Any)


def parse(text: str) -> exp.Expr:
    dialect = WeftSpark()
    return ExpressionParser(dialect=dialect).read_expression(dialect.tokenize(text), text)


def replaceable(node: exp.Expr) -> list[tuple[exp.Expr, Span]]:
    """The parts that a placeholder could take the place of: those with a place, and with something to compute."""
    return [
        (part, span)
        for part in node.walk()
        if not isinstance(part, FRAGMENTS) and part.find(exp.Column, exp.Anonymous) and (span := span_of(part))
    ]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(expressions)
def test_the_text_of_a_span_parses_to_the_same_expression(text: str) -> None:
    try:
        whole = parse(text)
    except (UnreadableError, QueryError):
        assume(False)
    for part, (start, end) in replaceable(whole):
        if part.find_ancestor(exp.Lambda) is None:  # its variables would be columns outside of it
            assert parse(text[start:end]) == part


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=expressions)
def test_parentheses_around_any_span_change_nothing_for_spark(spark: Any, text: str) -> None:
    """So operators bind as in Spark: what a placeholder replaces is what Spark takes as one sub-expression."""
    parser = spark._jsparkSession.sessionState().sqlParser()

    def seen_by_spark(expression: str) -> str:
        return re.sub(r"#\d+", "", parser.parseExpression(expression).toString())

    try:
        meant = seen_by_spark(text)
    except Exception:
        assume(False)
    assume(" AS " not in meant.upper() or "struct" in text)  # a % NOT b is (a % NOT) AS b to Spark
    for _, (start, end) in replaceable(parse(text)):
        assert seen_by_spark(f"{text[:start]} ( {text[start:end]} ) {text[end:]}") == meant


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a + b + c", ["a + b", "a", "b", "c"]),
        ("a | b & c", ["b & c", "a"]),
        ("t.s.x::int", ["t.s.x"]),
        ("upper(x)[0].y", ["upper(x)[0]", "upper(x)", "x"]),
        ("x LIKE 'a!%' ESCAPE '!'", ["x"]),
        ("+ a <> b", ["+ a", "a", "b"]),
        ("NOT a = b", ["a = b"]),
        ("a = b IS NULL", ["a = b"]),
        ("f(/* é */ `ü b` , 'é')", ["`ü b`"]),
    ],
)
def test_spans_of_the_parts(text: str, parts: list[str]) -> None:
    whole, *inner = replaceable(parse(text))
    assert text[slice(*whole[1])] == text
    assert {text[slice(*span)] for _, span in inner} >= set(parts)


def test_a_pattern_without_its_escape_is_no_expression() -> None:
    text = "x LIKE 'a!%' ESCAPE '!'"
    assert "x LIKE 'a!%'" not in {text[slice(*span)] for _, span in replaceable(parse(text))}
