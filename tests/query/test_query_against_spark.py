"""Every accepted query: Spark takes its shape, and its model means the same rows as its text."""

from __future__ import annotations

from typing import Any

import pytest

from weft.query.model import Call, Query
from weft.query.sparksql import parse_file

ROWS = """
    SELECT * FROM VALUES
      (timestamp'2024-01-01 00:00:01', 'ibm', 'B', 10.5d, 100L, 1.25BD, named_struct('x', 1, 'y', 'u'), array('p')),
      (timestamp'2024-01-01 00:02:30', 'ibm', 'S', 11.0d, NULL, 2.50BD, named_struct('x', 1, 'y', 'v'), array('p')),
      (timestamp'2024-01-01 00:04:59', 'msft', 'B', NULL, 300L, NULL, named_struct('x', 2, 'y', 'u'), NULL),
      (timestamp'2024-01-01 00:11:00', 'msft', NULL, 9.0d, 5L, 0.75BD, NULL, array('r', 's')),
      (timestamp'2024-01-01 00:12:00', 'IBM', 'B', 8.5d, 7L, 9.00BD, named_struct('x', 3, 'y', 'w'), array()),
      (timestamp'2024-01-01 00:31:00', NULL, 'S', 7.0d, 70L, 4.00BD, named_struct('x', 3, 'y', NULL), array('p'))
    AS v(ts, symbol, side, price, volume, `the qty`, s, tags)
"""
COLUMNS = ["ts", "symbol", "side", "price", "volume", "the qty", "s", "tags"]
W = "window(ts, '10 minutes', '5 minutes')"

ACCEPTED = [
    f"SELECT count(*) FROM trades GROUP BY {W}",
    f"SELECT window, count(*) FROM trades GROUP BY {W}",
    f"SELECT window.start, window.end AS until, sum(volume) total FROM trades GROUP BY {W}",
    "SELECT `window`.`start`, Window.END, WINDOW, max(price) FROM trades GROUP BY window(ts, '7 minutes', '2 minutes')",
    "SELECT window.start, min(price) FROM trades GROUP BY window(ts, '10 minutes', '10 minutes', '3 minutes')",
    "SELECT window.start, min(price) FROM trades GROUP BY window(ts, '10 minutes', '5 minutes', '-2 minutes')",
    "SELECT window.start, min(price) FROM trades GROUP BY window(ts, 600000000, 300000000L)",
    "SELECT window.start, min(price) FROM trades GROUP BY window(ts, '1 hour')",
    f"SELECT {W}, {W}.start, {W}.end AS e, count(1) FROM trades GROUP BY {W}",
    f"SELECT {W} AS w, w.start, count(*) FROM trades GROUP BY w HAVING w.start > '2020-01-01'",
    "SELECT window(ts, '600 seconds'), count(*) FROM trades GROUP BY window(ts, '10 minutes')",
    f"SELECT count(*) FROM trades GROUP BY ({W}), (symbol)",
    f"SELECT symbol, side, avg(price) FROM trades GROUP BY symbol, {W}, side",
    f"SELECT SYMBOL, count(`symbol`), `Side` FROM trades GROUP BY symbol, side, {W}",
    f"SELECT symbol FROM trades GROUP BY {W}, symbol, symbol",
    "SELECT t.symbol, max(t.price) FROM trades t WHERE t.volume > 5 GROUP BY window(t.ts, '5 minutes'), t.symbol",
    f"SELECT trades.symbol, symbol, sum(trades.volume) FROM trades GROUP BY trades.symbol, {W}",
    f"SELECT r.s.x, count(*) FROM trades AS r GROUP BY {W}, s.x",
    f"SELECT s.x, s.y || '!', count(*) FROM trades GROUP BY {W}, s",
    f"SELECT S.X + 1, count(*) FROM trades GROUP BY {W}, s.x HAVING s.x > 0",
    f"SELECT `the qty`, count(*) FROM trades GROUP BY `The Qty`, {W}",
    f"SELECT map('k', symbol)['k'], count(*) FROM trades GROUP BY map('k', symbol)['k'], {W}",
    f"SELECT upper(symbol) AS u, count(*) FROM trades GROUP BY {W}, upper( Symbol )",
    f"SELECT upper(symbol) AS u, u || 'x' AS z, count(*) FROM trades GROUP BY {W}, u",
    f"SELECT coalesce(upper(symbol), 'none') AS u, count(*) FROM trades GROUP BY {W}, upper(symbol)",
    f"SELECT upper(symbol) AS u, count(*) FROM trades GROUP BY {W}, u, lower(u)",
    f"SELECT date_trunc('day', ts), count(*) FROM trades GROUP BY date_trunc('day', ts), {W}",
    f"SELECT CASE WHEN price > 9 THEN 'high' ELSE 'low' END AS k, count(*) FROM trades GROUP BY k, {W}",
    f"SELECT volume % 10 + 1, count(*) FROM trades GROUP BY volume % 10, {W}",
    f"SELECT volume & 3 | 1, volume & 3, max(price) FROM trades GROUP BY {W}, volume & 3",
    f"SELECT (volume + price) * 2, count(*) FROM trades GROUP BY {W}, (volume+price)",
    f"SELECT symbol sy, count(*) FROM trades GROUP BY {W}, symbol HAVING sy = 'ibm'",
    f"SELECT symbol AS volume, sum(price) AS symbol FROM trades GROUP BY {W}, symbol HAVING symbol = 'ibm'",
    f"SELECT symbol, sum(price) AS volume FROM trades GROUP BY {W}, symbol HAVING volume > 10",
    f"SELECT symbol, max(price) AS volume FROM trades GROUP BY {W}, symbol HAVING sum(volume) > 5",
    f"SELECT upper(symbol) AS symbol, count(*) FROM trades GROUP BY {W}, symbol",
    f"SELECT sum(price) AS p, p + 1 AS z, z * 2 AS zz FROM trades GROUP BY {W}",
    f"SELECT count(*) `my c`, `my c` + 1 FROM trades GROUP BY {W} HAVING `MY C` > 1",
    f"SELECT named_struct('f', max(price)) AS m, m.f + 1 AS z FROM trades GROUP BY {W} HAVING m.f > 0",
    f"SELECT window.start AS st, hour(window.start), count(*) FROM trades GROUP BY st, hour(window.start), {W}",
    f"SELECT symbol, {W}, count(*) FROM trades GROUP BY 1, 2",
    f"SELECT symbol, count(*), {W} AS w FROM trades GROUP BY (1), 3",
    f"SELECT ALL symbol, {W}, count(*) FROM trades GROUP BY ALL",
    f"SELECT price + sum(volume), price, {W}, 5, 'x' FROM trades GROUP BY ALL",
    f"SELECT {W}.start AS st, upper(symbol), sum(volume) + length(upper(symbol)) FROM trades GROUP BY ALL",
    f"SELECT 2 AS two, round(avg(price), 2), cast(sum(volume) AS DECIMAL(20, 2)) FROM trades GROUP BY {W}, two, 'x'",
    f"SELECT 5, 'x', null, count(*) FROM trades GROUP BY {W}",
    f"SELECT max(price) - min(price) AS spread, round(avg(price), 2) FROM trades GROUP BY {W} HAVING spread >= 0",
    f"SELECT sum(price * volume) / sum(volume) AS vwap FROM trades WHERE volume IS NOT NULL GROUP BY {W}",
    f"SELECT count(*) FILTER (WHERE side = 'B') AS n, sum(price) FILTER(WHERE side='S') FROM trades GROUP BY {W}",
    f"SELECT `sum`(price) FROM trades GROUP BY {W}",
    f"SELECT count(price, volume), count(1), count(null), count_if(price > 9), sum(ALL price) FROM trades GROUP BY {W}",
    f"SELECT mean(price), variance(price), var_pop(price), var_samp(price), std(price) FROM trades GROUP BY {W}",
    f"SELECT stddev(price), stddev_pop(price), skewness(price), kurtosis(price) FROM trades GROUP BY {W}",
    f"SELECT covar_pop(price, volume), covar_samp(price, volume), corr(price, volume) FROM trades GROUP BY {W}",
    f"SELECT every(price > 8), bool_and(price > 8), any(price > 9), some(price > 9) FROM trades GROUP BY {W}",
    f"SELECT bit_and(volume), bit_or(volume), bit_xor(volume) FROM trades GROUP BY {W}",
    f"SELECT min_by(symbol, price), max_by(symbol, price) FROM trades GROUP BY {W}",
    f"SELECT max(struct(price AS P, symbol)), max(struct(price AS p, symbol)) FROM trades GROUP BY {W}",
    f"SELECT count(*) > 1 AND NOT max(price) IS NULL, -max(price), max(price)::int FROM trades GROUP BY {W}",
    f"SELECT CASE WHEN count(*) > 1 THEN 'many' ELSE concat('one ', max(symbol)) END FROM trades GROUP BY {W}",
    f"SELECT transform(array(max(price), min(price)), x -> x + 1), size(max(tags)) FROM trades GROUP BY {W}",
    f"SELECT exists(array(symbol), symbol -> symbol = 'ibm'), count(*) FROM trades GROUP BY symbol, {W}",
    f"SELECT count(*) FROM trades WHERE side IN ('B', 'S') AND symbol LIKE 'i%' OR price BETWEEN 7 AND 9 GROUP BY {W}",
    f"SELECT count(*) FROM trades WHERE exists(tags, t -> t = 'p') GROUP BY {W}",
    f"SELECT sum(price), sum( PRICE ), sum(trades.`price`), sum(price + 0) FROM trades GROUP BY {W}",
    f"SELECT /* a comment */ symbol -- another\n, max(price) /* 'quoted' */ FROM trades GROUP BY {W}, symbol",
    f"SELECT count(*) FROM trades GROUP BY {W} HAVING max(price) > 8 AND window.end < '2030-01-01'",
    f"SELECT aggregate(array(1, 2), 0, (a, b) -> a + b) + count(*) AS `select` FROM trades GROUP BY {W}",
    f"SELECT date_diff(DAY, window.start, window.end), extract(HOUR FROM max(ts)) FROM trades GROUP BY {W}",
    f"SELECT max(ts) - INTERVAL '1' DAY, max(ts) + INTERVAL 2 HOURS FROM trades GROUP BY {W}",
    f"SELECT if(count(*) > 1, max(price), min(price)), left(max(symbol), 2) FROM trades GROUP BY {W}",
    f"SELECT max(price) FILTER (WHERE symbol = 'it''s' OR symbol = \"dq\" OR symbol = r'\\d') FROM trades GROUP BY {W}",
]


def call_sql(call: Call) -> str:
    arguments = ", ".join(argument.sql for argument in call.arguments) or "*"
    condition = f" FILTER (WHERE {call.filter.sql})" if call.filter else ""
    return f"{call.function}({arguments}){condition}{' IGNORE NULLS' if call.ignore_nulls else ''}"


def model_sql(query: Query) -> str:
    """The query once more in Spark SQL, from nothing but the model."""
    window = query.window
    time = f"window({query.event_time}, {window.range}, {window.slide}, {window.start})"
    columns = [f"{time} AS __window"]
    columns += [f"{key.sql} AS __key_{number}" for number, key in enumerate(query.keys)]
    columns += [f"{call_sql(call)} AS __agg_{number}" for number, call in enumerate(query.calls)]
    where = f" WHERE {query.where.sql}" if query.where else ""
    groups = ", ".join([time, *(key.sql for key in query.keys)])
    inner = f"SELECT {', '.join(columns)} FROM trades{where} GROUP BY {groups}"
    outputs = ", ".join(f"{output.sql} AS c{number}" for number, output in enumerate(query.outputs))
    return f"SELECT {outputs} FROM ({inner}){f' WHERE {query.having}' if query.having else ''}"


@pytest.fixture(scope="module")
def trades(spark: Any) -> Any:
    spark.sql(ROWS).createOrReplaceTempView("trades")
    yield spark
    spark.catalog.dropTempView("trades")


@pytest.mark.parametrize("text", ACCEPTED)
def test_the_model_means_the_rows_of_the_text(trades: Any, text: str) -> None:
    (query,) = parse_file(text, COLUMNS)
    by_spark = trades.sql(text)
    by_model = trades.sql(model_sql(query))
    assert trades.sql(query.shape).schema == by_spark.schema
    assert sorted(map(repr, map(tuple, by_model.collect()))) == sorted(map(repr, map(tuple, by_spark.collect())))
    assert [output.alias for output in query.outputs if output.alias] == [
        column for column, output in zip(by_spark.columns, query.outputs, strict=True) if output.alias
    ]


@pytest.mark.parametrize("text", ACCEPTED)
def test_without_the_columns_the_model_is_the_same(text: str) -> None:
    (known,), (unknown,) = parse_file(text, COLUMNS), parse_file(text)
    assert unknown == known


def test_first_and_last_keep_their_nulls_option(trades: Any) -> None:
    text = f"""
        SELECT first(price), first(price, true), first(price) IGNORE NULLS, first(price IGNORE NULLS),
               first_value(price, false), any_value(price) RESPECT NULLS, last(price) RESPECT NULLS,
               last_value(price) FILTER (WHERE price > 1) IGNORE NULLS
        FROM trades GROUP BY {W}
    """
    (query,) = parse_file(text, COLUMNS)
    assert [(call.function, call.ignore_nulls) for call in query.calls] == [
        ("first", False),
        ("first", True),
        ("last", False),
        ("last", True),
    ]
    assert [output.index for output in query.outputs] == [0, 1, 1, 1, 0, 0, 2, 3]
    trades.sql(model_sql(query))
    assert trades.sql(query.shape).schema == trades.sql(text).schema
