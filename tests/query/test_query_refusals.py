"""What is refused: the words, the place under the caret, and what to do instead."""

from __future__ import annotations

import pytest

from weft.errors import QueriesError, QueryError, WeftError
from weft.query import refusals
from weft.query.sparksql import parse_file

COLUMNS = ["ts", "symbol", "price", "volume", "s"]
W = "window(ts, '10 minutes')"
GROUP = f"FROM trades GROUP BY {W}"

ORDER = "the answers of a stream have no order: sort them where you read them"
CUT = "every window is answered: cut where you read the answers"
SETS = "register each SELECT as a query of its own"
JOIN = "join first, and register the joined DataFrame as the stream"
INNER = "compute the inner query as a DataFrame and register that as the stream"
KEYS = "register one query for each set of keys"
TRAVEL = "register the DataFrame of that version as the stream"
OVER = "put the window into GROUP BY: GROUP BY window(ts, '10 minutes', '1 minute')"
ADD_WINDOW = "add one, for example GROUP BY window(ts, '10 minutes', '1 minute')"
SAME = "an answer has to be the same when it is computed again: write the value itself"
ONE_WINDOW = "register a query for each window; to select the window write window, window.start or window.end"
DURATION = "write for example '10 minutes' or '1 hour 30 minutes'"
COLUMNS_ONLY = "use columns, and expressions of columns"
GROUPABLE = "group by columns, expressions of columns and the window"
EXPLODE = "explode first, and register the exploded DataFrame as the stream"
VIEW = "write CREATE [OR REPLACE] [TEMPORARY] VIEW name AS SELECT ... or CREATE MATERIALIZED VIEW name AS SELECT ..."
STAR = "name the columns, keys and aggregates to select"
SPARK = refusals.unsupported_aggregate("median").hint

BEFORE = "compute it before, as a column of the stream, or register a function of your own in the session"
NAME = "its name becomes that of folders, tables and topics: it holds no / and no \\, and begins with no dot"

REFUSED = [
    # clauses
    (f"SELECT count(*) {GROUP} ORDER BY 1", "ORDER BY is not supported", "ORDER BY", ORDER),
    (f"SELECT count(*) {GROUP} SORT BY x", "SORT BY is not supported", "SORT BY", ORDER),
    (f"SELECT count(*) {GROUP} CLUSTER BY x", "CLUSTER BY is not supported", "CLUSTER BY", ORDER),
    (f"SELECT count(*) {GROUP} DISTRIBUTE BY x", "DISTRIBUTE BY is not supported", "DISTRIBUTE BY", ORDER),
    (f"SELECT count(*) {GROUP} HAVING count(*) > 1 LIMIT 5", "LIMIT is not supported", "LIMIT", CUT),
    (f"SELECT count(*) {GROUP} OFFSET 5", "OFFSET is not supported", "OFFSET", CUT),
    (f"SELECT count(*) {GROUP} UNION ALL SELECT 1", "set operations are not supported", "UNION", SETS),
    (f"SELECT count(*) {GROUP} INTERSECT SELECT 1", "set operations are not supported", "INTERSECT", SETS),
    (f"SELECT count(*) FROM trades JOIN q ON true GROUP BY {W}", "joins are not supported", "JOIN", JOIN),
    (f"SELECT count(*) FROM trades t LEFT JOIN q GROUP BY {W}", "joins are not supported", "LEFT", JOIN),
    (f"SELECT count(*) FROM trades, q GROUP BY {W}", "several tables are not supported", ",", JOIN),
    ("SELECT count(*) FROM trades LATERAL VIEW explode(x)", "LATERAL VIEW is not supported", "LATERAL", EXPLODE),
    (
        "SELECT count(*) FROM trades PIVOT (sum(x) FOR y IN (1))",
        "PIVOT is not supported",
        "PIVOT",
        "use one aggregate with FILTER (WHERE ...) for each column",
    ),
    (
        "SELECT count(*) FROM trades TABLESAMPLE (10 PERCENT)",
        "TABLESAMPLE is not supported",
        "TABLESAMPLE",
        "register df.sample(...) as the stream",
    ),
    ("SELECT count(*) FROM trades VERSION AS OF 1", "time travel is not supported", "VERSION", TRAVEL),
    ("SELECT count(*) FROM trades TIMESTAMP AS OF 'x'", "time travel is not supported", "TIMESTAMP", TRAVEL),
    (
        f"SELECT count(*) {GROUP} QUALIFY x > 1",
        "QUALIFY is not supported",
        "QUALIFY",
        "use HAVING for conditions on aggregates",
    ),
    ("SELECT count(*) FROM trades WINDOW w AS (ORDER BY ts)", "the WINDOW clause is not supported", "WINDOW", OVER),
    ("SELECT count(*) FROM trades WHERE true WINDOW w AS ()", "the WINDOW clause is not supported", "WINDOW", OVER),
    (
        "SELECT count(*) FROM trades |> WHERE x",
        "pipe syntax is not supported",
        "|>",
        "write SELECT ... FROM ... GROUP BY ...",
    ),
    (f"SELECT count(*) FROM trades GROUP BY ROLLUP(symbol), {W}", "ROLLUP is not supported", "ROLLUP", KEYS),
    (f"SELECT count(*) FROM trades GROUP BY CUBE(symbol), {W}", "CUBE is not supported", "CUBE", KEYS),
    (
        "SELECT count(*) FROM trades GROUP BY GROUPING SETS ((a))",
        "GROUPING SETS is not supported",
        "GROUPING SETS",
        KEYS,
    ),
    (f"SELECT count(*) {GROUP} WITH ROLLUP", "WITH ROLLUP or CUBE is not supported", "WITH", KEYS),
    (f"SELECT count(*) {GROUP} GROUPING SETS ((symbol))", "GROUPING SETS is not supported", "GROUPING SETS", KEYS),
    # the select list
    (f"SELECT * {GROUP}", "* is not supported in the select list", "*", STAR),
    (f"SELECT trades.* {GROUP}", "* is not supported in the select list", "trades.*", STAR),
    (f"SELECT count(trades.*) {GROUP}", "* is not supported in the select list", "trades.*", STAR),
    (
        f"SELECT DISTINCT symbol {GROUP}, symbol",
        "SELECT DISTINCT is not supported",
        "DISTINCT",
        "each key and window gives one row already: select them, and remove DISTINCT",
    ),
    (
        f"SELECT /*+ BROADCAST(t) */ count(*) {GROUP}",
        "optimizer hints are not supported",
        "/*+ BROADCAST(t) */",
        "remove the hint: Weft plans all queries together",
    ),
    # sub-queries
    (f"SELECT count(*) FROM (SELECT 1) GROUP BY {W}", "sub-queries are not supported", "(", INNER),
    (f"SELECT count(*) FROM VALUES (1) GROUP BY {W}", "sub-queries are not supported", "VALUES", INNER),
    (f"SELECT count(*), (SELECT 1) {GROUP}", "sub-queries are not supported", "SELECT", INNER),
    (f"SELECT count(*) FROM t WHERE a IN (SELECT 1) GROUP BY {W}", "sub-queries are not supported", "SELECT", INNER),
    (f"SELECT count(*) FROM t WHERE EXISTS (SELECT 1) GROUP BY {W}", "sub-queries are not supported", "SELECT", INNER),
    ("WITH x AS (SELECT 1) SELECT 1 FROM x", "common table expressions (WITH) are not supported", "WITH", INNER),
    ("SELECT count(*) FROM range(10)", "table functions are not supported", "(", "name a registered stream after FROM"),
    (
        "FROM trades SELECT 1",
        "a query cannot begin with FROM",
        "FROM",
        "write SELECT ... FROM ... GROUP BY window(...)",
    ),
    # parameters
    ("SELECT count(*) FROM t WHERE a > :p", "query parameters are not supported", ":", "write the value itself"),
    ("SELECT count(*) FROM t WHERE a > ?", "query parameters are not supported", "?", "write the value itself"),
    ("SELECT count(*) FROM t WHERE a > ${x}", "query parameters are not supported", "$", "write the value itself"),
    # functions
    (f"SELECT sum(price) OVER (ORDER BY ts) {GROUP}", "window functions (OVER) are not supported", "OVER", OVER),
    (f"SELECT rank(), count(*) {GROUP}", "window functions (OVER) are not supported", "rank()", OVER),
    (
        f"SELECT count(DISTINCT symbol) {GROUP}",
        "DISTINCT inside an aggregate is not supported",
        "DISTINCT symbol",
        "distinct values cannot be merged from slices; run this query on Spark",
    ),
    (
        f"SELECT collect_list(price) {GROUP}",
        "the aggregate collect_list is not supported",
        "collect_list(price)",
        SPARK,
    ),
    (
        f"SELECT median(price) FILTER (WHERE true) {GROUP}",
        "the aggregate median is not supported",
        "median(price) FILTER (WHERE true)",
        SPARK,
    ),
    (f"SELECT sum(median(price)) {GROUP}", "the aggregate median is not supported", "median(price)", SPARK),
    (f"SELECT grouping(symbol) {GROUP}, symbol", "grouping is not supported", "grouping(symbol)", KEYS),
    (
        f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price) {GROUP}",
        "WITHIN GROUP is not supported",
        "WITHIN",
        "ordered-set aggregates cannot be merged from slices; run this query on Spark",
    ),
    (
        f"SELECT sum(max(price)) {GROUP}",
        "an aggregate inside an aggregate is not possible",
        "max(price)",
        "register the inner query, and aggregate its answers",
    ),
    (
        f"SELECT max(window.start) {GROUP}",
        "the window cannot stand inside an aggregate",
        "window.start",
        "it is the same for all rows of a group: use it outside",
    ),
    (f"SELECT avgg(price) {GROUP}", "no function avgg", "avgg(price)", "did you mean avg?"),
    (f"SELECT max(uppper(symbol)) {GROUP}", "no function uppper", "uppper(symbol)", "did you mean upper?"),
    (f"SELECT count(*) FROM trades WHERE xyzzyx(s) GROUP BY {W}", "no function xyzzyx", "xyzzyx(s)", None),
    (
        f"SELECT max(reflect('a', 'b')) {GROUP}",
        "reflect is not among the functions that a query may call",
        "reflect('a', 'b')",
        BEFORE,
    ),
    (
        f"SELECT max(from_protobuf(s, s)) {GROUP}",
        "from_protobuf is not among the functions that a query may call",
        "from_protobuf(s, s)",
        BEFORE,
    ),
    (
        f"SELECT max(version()) {GROUP}",
        "version tells of the session, not of the rows",
        "version()",
        "write the value itself",
    ),
    (
        f"SELECT max(s || current_user) {GROUP}",
        "current_user tells of the session, not of the rows",
        "current_user",
        "write the value itself",
    ),
    (f"CREATE VIEW ../x AS SELECT count(*) {GROUP}", "a query cannot be called ../x", "../x", NAME),
    (f"CREATE VIEW `../x` AS SELECT count(*) {GROUP}", "a query cannot be called ../x", "`../x`", NAME),
    (f"-- name: a/b\nSELECT count(*) {GROUP}", "a query cannot be called a/b", "SELECT", NAME),
    (f"SELECT sum(rand()) {GROUP}", "rand gives another value at each run", "rand()", SAME),
    (
        f"SELECT count(*), current_timestamp() {GROUP}",
        "current_timestamp gives another value at each run",
        "current_timestamp()",
        SAME,
    ),
    (f"SELECT count(*), current_date {GROUP}", "current_date gives another value at each run", "current_date", SAME),
    (f"SELECT count(*), current_time {GROUP}", "current_time gives another value at each run", "current_time", SAME),
    (
        f"SELECT count(*) FROM trades WHERE ts > now()  GROUP BY {W}",
        "now gives another value at each run",
        "now()",
        SAME,
    ),
    (
        f"SELECT unix_timestamp(), count(*) {GROUP}",
        "unix_timestamp gives another value at each run",
        "unix_timestamp()",
        SAME,
    ),
    (f"SELECT max(ts) > DATE 'Today' {GROUP}", "today gives another value at each run", "DATE 'Today'", SAME),
    (f"SELECT max(ts - TIMESTAMP'now UTC') {GROUP}", "now gives another value at each run", "TIMESTAMP'now UTC'", SAME),
    (f"SELECT explode(array(1)), count(*) {GROUP}", "explode makes several rows of one", "explode(array(1))", EXPLODE),
    (
        f"SELECT builtin.sum(price) {GROUP}",
        "qualified function names are not supported",
        "builtin.sum(price)",
        "call the function by its plain name",
    ),
    (f"SELECT sum(price, volume) {GROUP}", "sum takes 1 argument, not 2", "sum(price, volume)", None),
    (f"SELECT corr(price) {GROUP}", "corr takes 2 arguments, not 1", "corr(price)", None),
    (f"SELECT count() {GROUP}", "count takes at least 1 argument, not 0", "count()", None),
    (f"SELECT sum(*) {GROUP}", "sum cannot take this argument", "*", None),
    (f"SELECT sum(price ORDER BY ts) {GROUP}", "sum cannot take this argument", "price ORDER BY ts", None),
    (
        f"SELECT first(price, 1) {GROUP}",
        "the second argument has to be true or false",
        "1",
        "write IGNORE NULLS, or true, to skip NULLs",
    ),
    (
        f"SELECT max(price) IGNORE NULLS {GROUP}",
        "max takes no IGNORE NULLS",
        "max(price) IGNORE NULLS",
        "it ignores NULLs anyhow: remove it",
    ),
    (
        f"SELECT upper(symbol) FILTER (WHERE true) {GROUP}",
        "FILTER and IGNORE NULLS belong to aggregates only",
        "upper(symbol) FILTER (WHERE true)",
        "move the condition into WHERE, or into an aggregate's FILTER",
    ),
    # names
    (f"SELECT prise, count(*) {GROUP}", "trades has no column prise", "prise", "did you mean price?"),
    (f"SELECT sum(zzz) {GROUP}", "trades has no column zzz", "zzz", None),
    (
        f"SELECT price, count(*) {GROUP}",
        "price is neither in GROUP BY nor inside an aggregate",
        "price",
        "add it to GROUP BY, or aggregate it: max(price); a key's expression has to read as it does in GROUP BY",
    ),
    (
        f"SELECT count(*) {GROUP} HAVING trades.price > 1",
        "trades.price is neither in GROUP BY nor inside an aggregate",
        "trades.price",
        "add it to GROUP BY, or aggregate it: max(trades.price); a key's expression has to read as it does in GROUP BY",
    ),
    (
        f"SELECT window.middle {GROUP}",
        "a window has the fields start and end only",
        "window.middle",
        "write window.start or window.end",
    ),
    # the window
    ("SELECT count(*) FROM trades", "the query has no GROUP BY window(...)", "SELECT count(*)", ADD_WINDOW),
    ("SELECT count(*) FROM trades GROUP BY symbol", "GROUP BY has no window", "GROUP BY symbol", ADD_WINDOW),
    ("SELECT symbol, count(*) FROM trades GROUP BY ALL", "GROUP BY has no window", "GROUP BY ALL", ADD_WINDOW),
    (
        f"SELECT 1 {GROUP}, window(ts, '5 minutes')",
        "a query has one window, and this is another",
        "window(ts, '5 minutes')",
        ONE_WINDOW,
    ),
    (
        f"SELECT window(ts, '5 minutes') {GROUP}",
        "a query has one window, and this is another",
        "window(ts, '5 minutes')",
        ONE_WINDOW,
    ),
    (
        "SELECT 1 FROM trades GROUP BY session_window(ts, '5 minutes')",
        "session windows are not supported",
        "session_window(ts, '5 minutes')",
        "use window(ts, 'length', 'slide')",
    ),
    (
        f"SELECT window_time(window) {GROUP}",
        "window_time is not supported",
        "window_time(window)",
        "write window.end - INTERVAL 1 MICROSECOND",
    ),
    (
        "SELECT 1 FROM trades GROUP BY window(date(ts), '5 minutes')",
        "the first argument of window has to be the stream's event-time column",
        "date(ts)",
        "name the column itself, no expression",
    ),
    (
        "SELECT 1 FROM trades GROUP BY window(ts)",
        "window takes a column and one to three durations",
        "window(ts)",
        "write window(ts, 'length'), window(ts, 'length', 'slide') or window(ts, 'length', 'slide', 'start')",
    ),
    (
        "SELECT 1 FROM trades GROUP BY window(ts, '5 min')",
        "no unit 'min': Spark knows microseconds, milliseconds, seconds, minutes, hours, days and weeks",
        "'5 min'",
        DURATION,
    ),
    (
        "SELECT 1 FROM trades GROUP BY window(ts, '1 month')",
        "months and years are not of one length",
        "'1 month'",
        DURATION,
    ),
    (
        "SELECT 1 FROM trades GROUP BY window(ts, '0 days')",
        "the length of a window has to be positive",
        "'0 days'",
        None,
    ),
    (
        "SELECT 1 FROM trades GROUP BY window(ts, '1 day', '-1 day')",
        "the slide of a window has to be positive",
        "'-1 day'",
        None,
    ),
    (
        "SELECT 1 FROM trades GROUP BY window(ts, '2 days', '1 day', '-1 days')",
        "the start of windows has to be shorter than their slide",
        "'-1 days'",
        "take it modulo the slide",
    ),
    (
        "SELECT 1 FROM trades GROUP BY window(ts, INTERVAL 10 MINUTES)",
        "a duration has to be a string or a whole number of microseconds",
        "INTERVAL 10 MINUTES",
        "write for example '10 minutes'",
    ),
    # WHERE and GROUP BY
    (
        f"SELECT 1 FROM trades WHERE count(*) > 1 GROUP BY {W}",
        "WHERE cannot hold an aggregate",
        "count(*)",
        "put conditions on aggregates into HAVING",
    ),
    (
        f"SELECT 1 FROM trades WHERE window.start > ts GROUP BY {W}",
        "WHERE cannot hold the window",
        "window.start",
        "put conditions on the window into HAVING",
    ),
    (f"SELECT 1 {GROUP}, sum(price)", "GROUP BY cannot hold an aggregate", "sum(price)", COLUMNS_ONLY),
    (
        f"SELECT sum(price) FILTER (WHERE max(price) > 1) {GROUP}",
        "FILTER cannot hold an aggregate",
        "max(price)",
        COLUMNS_ONLY,
    ),
    (f"SELECT 1 {GROUP}, 7", "GROUP BY 7 points to no column of the select list", "7", "it has columns 1 to 1"),
    (f"SELECT 1 {GROUP}, -1", "GROUP BY -1 points to no column of the select list", "-1", "it has columns 1 to 1"),
    (f"SELECT count(*) {GROUP}, 1", "GROUP BY 1 points to an aggregate", "1", GROUPABLE),
    (f"SELECT count(*) AS c {GROUP}, c", "GROUP BY c points to an aggregate", "c", GROUPABLE),
    (
        f"SELECT 1 {GROUP}, concat(symbol, window.start)",
        "a key cannot mix the window with columns",
        "concat(symbol, window.start)",
        "group by the columns and the window apart, and combine them in SELECT",
    ),
    (
        f"SELECT 1 FROM trades GROUP BY hour({W}.start)",
        "GROUP BY has a function of the window, but not the window itself",
        f"hour({W}.start)",
        "add the window to GROUP BY",
    ),
    # CQL
    (
        "SELECT max(a) FROM S [WINDOW 10 foo]",
        "no unit 'foo': write us, ms, s, min, h, d or w, or a unit in full",
        "10 foo",
        "write for example 10 min, 1 h or 30 s",
    ),
    (
        "SELECT max(a) FROM S [ROWS 10]",
        "cannot read the window",
        "ROWS 10",
        "write for example [WINDOW 10 min SLIDE 2 min]",
    ),
    ("SELECT max(a) FROM S [WINDOW 1 h SLIDE 0 s]", "the slide of a window has to be positive", "0 s", None),
    (f"SELECT max(a) FROM S [WINDOW 1 h] GROUP BY {W}", "a query has one window, and this is another", W, ONE_WINDOW),
    # what cannot be read
    (f"SELECT count(*), {GROUP}", "an expression is missing here", "FROM", None),
    (f"SELECT count(*) FROM t WHERE GROUP BY {W}", "an expression is missing here", "GROUP BY", None),
    (f"SELECT count(*) {GROUP} HAVING", "an expression is missing here", "", None),
    (f"SELECT count(* {GROUP}", "cannot read this: expecting )", "FROM", None),
    (f"SELECT a BETWEEN 1 {GROUP}", "cannot read this: something is missing", "FROM", None),
    (f"SELECT count(*) {GROUP}) x", "did not expect ) here", ")", None),
    (f"SELECT sum(price) AS 'x' {GROUP}", "a name after AS is missing here", "'x'", None),
    (
        "SELECT count(*)",
        "FROM is missing",
        "",
        "name the stream: SELECT ... FROM stream GROUP BY window(ts, '10 minutes')",
    ),
    ("SELECT count(*) FROM S [WINDOW 10 min", "] is missing here", "", None),
    # statements
    (
        "INSERT INTO x SELECT 1",
        "only queries can be registered, not INSERT",
        "INSERT",
        "write SELECT ..., CREATE VIEW name AS SELECT ... or CREATE MATERIALIZED VIEW name AS SELECT ...",
    ),
    ("CREATE TABLE x AS SELECT 1", "VIEW is expected here", "TABLE", VIEW),
    ("CREATE VIEW x (a, b) AS SELECT 1", "AS is expected here", "(", VIEW),
    ("CREATE VIEW x COMMENT 'c' AS SELECT 1", "AS is expected here", "COMMENT", VIEW),
    ("CREATE GLOBAL TEMPORARY VIEW x AS SELECT 1", "VIEW is expected here", "GLOBAL", VIEW),
    ("CREATE VIEW x AS", "the query is missing here", "", None),
    ("SELECT 'abc FROM trades", "this string never ends", "'", "close it"),
    ("SELECT `abc FROM trades", "this name never ends", "`", "close it"),
    ("SELECT /* abc FROM trades", "this comment never ends", "/", "close it"),
]


def refusal(text: str) -> QueryError:
    with pytest.raises(QueriesError) as raised:
        parse_file(text, {"trades": COLUMNS}, functions=())
    (error,) = raised.value.errors
    return error


@pytest.mark.parametrize(("text", "message", "under", "hint"), REFUSED, ids=[entry[0][:70] for entry in REFUSED])
def test_it_is_refused_with_reason_place_and_remedy(text: str, message: str, under: str, hint: str | None) -> None:
    error = refusal(text)
    assert (error.message, error.hint) == (message, hint)
    assert error.text == text
    assert error.at is not None
    assert text[error.at : error.at + error.length] == under


def test_a_function_that_nobody_may_know_yet_is_taken_where_it_could_stand() -> None:
    text = f"SELECT symbol, mine(symbol), max(mine(price)) {GROUP}, symbol"
    assert len(parse_file(text)) == 1
    assert len(parse_file(text, COLUMNS, functions=["mine"])) == 1
    with pytest.raises(QueriesError, match="no function mine"):
        parse_file(text, COLUMNS, functions=["ming"])


def test_the_caret_stands_under_the_place_in_the_file() -> None:
    text = f"-- prices\nCREATE VIEW mid AS\n  SELECT symbol,\n\tcollect_set(price)\n  {GROUP}, symbol"
    assert str(refusal(text)) == (
        "query mid: the aggregate collect_set is not supported\n"
        "  line 4, column 2:\n"
        "     collect_set(price)\n"
        "     ^^^^^^^^^^^^^^^^^^\n"
        f"  {SPARK}"
    )


def test_all_bad_statements_are_reported_in_the_order_of_the_file() -> None:
    text = f"SELECT * {GROUP};\nSELECT count(*) {GROUP};\nCREATE TABLE x;\n-- name: last\nSELECT rand() {GROUP}"
    with pytest.raises(QueriesError) as raised:
        parse_file(text)
    assert [(error.query, error.message) for error in raised.value.errors] == [
        ("q1", "* is not supported in the select list"),
        (None, "VIEW is expected here"),
        ("last", "rand gives another value at each run"),
    ]
    assert str(raised.value).count("line ") == 3


def test_a_compiled_sqlglot_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr("weft.query.sparksql.SelectParser", refuse)
    with pytest.raises(WeftError, match="uninstall the package sqlglotc"):
        parse_file(f"SELECT count(*) {GROUP}")
