"""From text to model: names, placeholders, identities, shapes, files."""

from __future__ import annotations

import time
from typing import Any

import pytest

from weft.errors import QueriesError
from weft.query.model import Part, Query
from weft.query.sparksql import parse_file
from weft.slicing.time_window import TimeWindow

W = "window(ts, '10 minutes')"


def one(text: str, columns: list[str] | None = None) -> Query:
    (query,) = parse_file(text, columns)
    return query


def argument(expression: str, source: str = "trades t") -> str:
    """The identity of an expression as an aggregate's argument."""
    return one(f"SELECT max({expression}) FROM {source} GROUP BY {W}").calls[0].arguments[0].canonical


# -- placeholders -----------------------------------------------------------------------------------------------------


def test_a_query_becomes_keys_calls_and_outputs() -> None:
    query = one(
        f"SELECT t.symbol, window.end AS e, (max(price)), max(t.price) - min(price), {W} AS w, window, 'x' "
        f"FROM trades t WHERE t.volume > 0 GROUP BY symbol, {W} HAVING count(*) > 3"
    )
    assert (query.stream, query.event_time, query.window) == ("trades", "ts", TimeWindow(600_000_000, 600_000_000))
    assert query.where is not None and query.where.sql == "volume > 0"
    assert [key.sql for key in query.keys] == ["symbol"]
    assert [(call.function, [given.sql for given in call.arguments]) for call in query.calls] == [
        ("max", ["price"]),
        ("min", ["price"]),
        ("count", []),
    ]
    assert [(output.sql, output.alias, output.part, output.index) for output in query.outputs] == [
        ("__key_0", "symbol", Part.KEY, 0),
        ("__window.end", "e", Part.WINDOW_END, 0),
        ("__agg_0", None, Part.AGGREGATE, 0),
        ("__agg_0 - __agg_1", None, None, 0),
        ("__window", "w", Part.WINDOW, 0),
        ("__window", None, Part.WINDOW, 0),
        ("'x'", None, None, 0),
    ]
    assert query.having == "__agg_2 > 3"
    assert not query.bare


def test_the_users_own_characters_are_kept() -> None:
    query = one(f"SELECT  round( avg(price),\t2 ) /* é */ +1 , count(*) FROM trades GROUP BY {W}")
    assert query.outputs[0].sql == "round( coalesce(__agg_0),\t2 ) /* é */ +1"


def test_equal_calls_share_a_placeholder_whatever_their_letters_blanks_and_qualifiers() -> None:
    query = one(f"SELECT sum(price), SUM( trades.`Price` ) + 1, sum(price) FILTER (WHERE a) FROM trades GROUP BY {W}")
    assert [output.sql for output in query.outputs] == ["__agg_0", "__agg_0 + 1", "__agg_1"]


def test_fields_of_an_aggregate_and_of_a_key_are_taken_from_the_placeholder() -> None:
    query = one(f"SELECT max(struct(a, b)).b, s.x, max(s)['x'], k[0].y FROM t GROUP BY {W}, s, k[0]")
    assert [output.sql for output in query.outputs] == ["__agg_0.b", "__key_0.x", "__agg_1['x']", "__key_1.y"]


def test_synonyms_are_folded() -> None:
    names = (
        "mean avg, variance var_samp, stddev stddev_samp, std stddev_samp, every bool_and, any bool_or, some bool_or"
    )
    for synonym, name in (pair.split() for pair in names.split(", ")):
        assert one(f"SELECT {synonym}(a) FROM t GROUP BY {W}").calls[0].function == name


def test_a_placeholder_takes_the_place_of_what_spark_sees_as_the_key() -> None:
    query = one(f"SELECT a | b & c, a|b, count(*) FROM t GROUP BY {W}, a | b, b & c, a", ["ts", "a", "b", "c"])
    assert [output.sql for output in query.outputs[:2]] == ["__key_2 | __key_1", "__key_0"]


def test_what_only_looks_like_a_key_is_left_alone() -> None:
    query = one(
        f"SELECT 2 AS two, round(avg(p), 2), transform(array(k), k -> k + 1), 'upper(k)' FROM t GROUP BY {W}, two, k"
    )
    assert [output.sql for output in query.outputs] == [
        "2",
        "round(coalesce(__agg_0), 2)",
        "transform(array(struct(__key_0 AS `k`).`k`), k -> k + 1)",
        "'upper(k)'",
    ]
    assert [key.sql for key in query.keys] == ["k"]


def test_an_alias_is_expanded_in_parentheses() -> None:
    query = one(f"SELECT max(p) - min(p) AS d, d * 2, sum(p) AS s, s * 2 FROM t GROUP BY {W} HAVING d > 1 AND s > 1")
    assert [output.sql for output in query.outputs] == [
        "__agg_0 - __agg_1",
        "(__agg_0 - __agg_1) * 2",
        "__agg_2",
        "__agg_2 * 2",
    ]
    assert query.having == "(__agg_0 - __agg_1) > 1 AND __agg_2 > 1"


def test_columns_come_before_aliases_in_group_by() -> None:
    text = f"SELECT upper(a) AS b, count(*) FROM t GROUP BY {W}, b"
    assert [key.sql for key in one(text).keys] == ["upper(a)"]
    assert [key.sql for key in one(text, ["ts", "a"]).keys] == ["upper(a)"]
    with pytest.raises(QueriesError, match="a is neither in GROUP BY nor inside an aggregate"):
        one(text, ["ts", "a", "b"])


def test_the_columns_may_be_given_for_each_stream() -> None:
    queries = parse_file(
        f"SELECT a, count(*) FROM t GROUP BY {W}, a; SELECT b, count(*) FROM `my db`.u GROUP BY {W}, b",
        {"T": ["ts", "a"], "My DB.u": ["ts", "B"]},
    )
    assert [query.stream for query in queries] == ["t", "my db.u"]


@pytest.mark.parametrize("name", ["price", "trades.price", "db.trades.price", "DB.`Trades`.Price"])
def test_the_streams_name_before_a_column_is_taken_off(name: str) -> None:
    (given,) = one(f"SELECT max({name}) FROM db.trades GROUP BY {W}").calls[0].arguments
    assert (given.sql.lower(), given.canonical) == ("price", "`price`")
    assert given.column is not None and given.column.lower() == "price"


def test_a_field_of_a_column_that_is_called_like_the_stream() -> None:
    query = one(f"SELECT max(t.x), max(t.t.x) FROM t GROUP BY {W}", ["ts", "t"])
    assert [call.arguments[0].sql for call in query.calls] == ["t.x"]


def test_only_a_bare_column_cannot_fail() -> None:
    query = one(f"SELECT max(a), max((a)), max(s.a), max(a + 1), max(`a b`) FROM t GROUP BY {W}")
    assert [call.arguments[0].column for call in query.calls] == ["a", None, None, "a b"]


# -- identity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("price+1", "PRICE  /* c */ + 1"),
        ("t.price", "`price`"),
        ("(price)", "price"),
        ("upper(a)", "UPPER( `A` )"),
        ("CASE WHEN a THEN 1 END", "case when A then 1 end"),
        ("CAST(a AS INT)", "cast(a as int)"),
    ],
)
def test_these_are_the_same_expression(left: str, right: str) -> None:
    assert argument(left) == argument(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("'a'", "'A'"),
        ("1", "1.0"),
        ("1", "1L"),
        ("1.0", "1.0D"),
        ("1", "'1'"),
        ("a - b", "b - a"),
        ("a - (b - c)", "a - b - c"),
        ("'a b'", "'a  b'"),
        ("r'\\n'", "'\\n'"),
        ("struct(a AS x)", "struct(a AS X)"),
        ("struct(a)", "struct(A)"),
        ("CAST(a AS STRUCT<x: INT>)", "CAST(a AS STRUCT<X: INT>)"),
        ("`a.b`", "a.b"),
        ("+ a", "a"),
        ("X'1f'", "X'1F'"),
        ("`a` .b", "`a`` . ``b`"),
    ],
)
def test_these_are_different_expressions(left: str, right: str) -> None:
    assert argument(left) != argument(right)


def test_places_do_not_make_a_difference() -> None:
    left, right = parse_file(f"SELECT max(a) FROM t GROUP BY {W};   SELECT  max( a )  FROM t GROUP BY {W}")
    assert left.calls == right.calls
    assert left.calls[0].at != right.calls[0].at


# -- shapes -----------------------------------------------------------------------------------------------------------


def test_queries_that_differ_in_window_and_where_only_have_one_shape() -> None:
    shapes = {
        one(text).shape
        for text in (
            "SELECT a, window.start, max(b) FROM t WHERE c > 1 GROUP BY a, window(ts, '10 minutes', '1 minute')",
            "SELECT a,  window.start, -- c\n max(b) FROM t GROUP BY a, window(ts, '1 hour', '7 minutes', '1 minute')",
            "CREATE VIEW v AS SELECT a, window.start, max(b) FROM t\nGROUP BY a, window(ts, 6000, 1000)",
        )
    }
    assert shapes == {"SELECT a, window.start, max(b) FROM t GROUP BY a, window(ts, '2 minutes', '1 minute')"}


def test_the_white_space_of_literals_stays_in_the_shape() -> None:
    query = one(f"SELECT max('a  b'),\n\n count(*) FROM t GROUP BY {W} HAVING max('-- x') > 'y'")
    assert query.shape == (
        "SELECT max('a  b'), count(*) FROM t GROUP BY window(ts, '1 minute') HAVING max('-- x') > 'y'"
    )


# -- files ------------------------------------------------------------------------------------------------------------


def test_statements_are_named_by_view_by_comment_or_by_position() -> None:
    body = f"SELECT count(*) FROM t GROUP BY {W}"
    text = f"""
        CREATE VIEW a AS {body};
        CREATE OR REPLACE TEMPORARY VIEW b AS {body};
        CREATE OR REPLACE TEMP VIEW `c d` AS {body};
        CREATE MATERIALIZED VIEW db.e AS {body};
        -- name: f
        {body};;
        -- some words
        {body};
        /* name: no */ {body} ; -- the end
    """
    queries = parse_file(text)
    assert [query.name for query in queries] == ["a", "b", "c d", "db.e", "f", "q6", "q7"]
    assert [text[query.at : query.at + len(query.text)] for query in queries] == [query.text for query in queries]
    assert queries[0].text == f"CREATE VIEW a AS {body}"


def test_what_editors_put_before_a_text_is_no_part_of_it() -> None:
    (query,) = parse_file(f"\ufeffSELECT count(*) FROM t GROUP BY {W}")
    assert query.text.startswith("SELECT")


def test_an_empty_file_holds_no_query() -> None:
    assert parse_file(" \n -- nothing\n ; ;") == []


def test_two_queries_of_one_name_are_refused() -> None:
    body = f"SELECT count(*) FROM t GROUP BY {W}"
    text = f"CREATE VIEW a AS {body};\n-- name: A\n{body}; CREATE VIEW b AS {body}"
    with pytest.raises(QueriesError) as raised:
        parse_file(text, taken=["B"])
    assert [str(error).splitlines()[0] for error in raised.value.errors] == [
        "there is another query called A",
        "there is another query called b",
    ]


def test_only_create_or_replace_takes_the_name_of_a_query_registered_before() -> None:
    body = f"SELECT count(*) FROM t GROUP BY {W}"
    (query,) = parse_file(f"CREATE OR REPLACE VIEW b AS {body}", taken=["B"])
    assert query.name == "b"
    with pytest.raises(QueriesError, match="another query called b"):
        parse_file(f"CREATE OR REPLACE VIEW b AS {body}; CREATE OR REPLACE VIEW b AS {body}", taken=["B"])


def test_numbers_go_around_names_that_are_taken() -> None:
    body = f"SELECT count(*) FROM t GROUP BY {W}"
    queries = parse_file(f"{body}; {body}; CREATE VIEW q3 AS {body}", taken=["q1"])
    assert [query.name for query in queries] == ["q2", "q4", "q3"]


def test_a_semicolon_in_a_literal_or_comment_ends_nothing() -> None:
    (query,) = parse_file(f"SELECT max(';') /* ; */ -- ;\nFROM t GROUP BY {W}")
    assert query.outputs[0].part is Part.AGGREGATE


def test_a_thousand_queries_are_read_in_a_few_seconds() -> None:
    text = ";\n".join(
        f"CREATE VIEW q{number} AS SELECT symbol, window.end, max(price) - min(price), sum(volume) FROM trades "
        f"WHERE volume > {number} GROUP BY symbol, window(ts, '{number + 1} minutes', '1 minute')"
        for number in range(1000)
    )
    start = time.process_time()
    assert len(parse_file(text)) == 1000
    assert time.process_time() - start < 5  # about 1.2 s on a quiet machine


# -- CQL --------------------------------------------------------------------------------------------------------------


def test_the_cql_of_the_papers() -> None:
    query = one("SELECT MAX(a) AS m FROM S [WINDOW 10 min SLIDE 2 min] WHERE b > 1 GROUP BY k HAVING m > 0")
    assert (query.event_time, query.window) == (None, TimeWindow(600_000_000, 120_000_000))
    assert [(output.sql, output.alias) for output in query.outputs] == [
        ("__agg_0", "m"),
        ("__window.start", "window_start"),
        ("__window.end", "window_end"),
    ]
    assert query.having == "__agg_0 > 0"
    assert query.shape == (
        "SELECT MAX(a) AS m, window.start AS window_start, window.end AS window_end FROM S "
        "GROUP BY k, window(`{event_time}`, '2 minutes', '1 minute') HAVING m > 0"
    )


@pytest.mark.parametrize(
    ("source", "window", "stream"),
    [
        ("S [RANGE 10 min SLIDE 2 min]", TimeWindow(600_000_000, 120_000_000), "S"),
        ("S [window 10 min]", TimeWindow(600_000_000, 600_000_000), "S"),
        ("S[WINDOW 10min SLIDE 30s] AS x", TimeWindow(600_000_000, 30_000_000), "S"),
        ("db.S x [WINDOW 1 h 30 min SLIDE 2 h]", TimeWindow(5_400_000_000, 7_200_000_000), "db.S"),
    ],
)
def test_forms_of_the_cql_window(source: str, window: TimeWindow, stream: str) -> None:
    query = one(f"SELECT count(*) FROM {source}")
    assert (query.window, query.stream, query.keys) == (window, stream, ())
    assert "window(`{event_time}`" in query.shape


def test_cql_groups_by_all_and_by_the_window(spark: Any) -> None:
    spark.sql("SELECT timestamp'2024-01-01' AS ts, 1 AS a, 'x' AS k").createOrReplaceTempView("S")
    for text in (
        "SELECT k, max(a) FROM S [WINDOW 10 min SLIDE 2 min] GROUP BY ALL",
        "SELECT k, max(a), window.start FROM S x [WINDOW 10 min] GROUP BY x.k",
        "SELECT max(a) FROM S [WINDOW 10 min]",
    ):
        query = one(text, ["ts", "a", "k"])
        frame = spark.sql(query.shape.replace("{event_time}", "ts"))
        assert frame.columns[-2:] == ["window_start", "window_end"]
        assert len(frame.columns) == len(query.outputs)
        assert [key.sql for key in query.keys] == (["k"] if "k, " in text else [])
