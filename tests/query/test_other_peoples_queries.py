"""What was met in other people's queries: every answer is Spark's, or the query is refused when it is registered."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.functions import pandas_udf, udf

import weft
from oracle.compare import Rows, multiset_difference, oracle_session, schema_difference
from weft.errors import QueriesError
from weft.sinks.parquet import ParquetSink
from weft.spark.answers import with_schema

WINDOW = "window(ts, '10 seconds', '5 seconds')"
BY = f"GROUP BY s, {WINDOW}"
ROWS = """
    SELECT timestamp_seconds(id) AS ts, id AS n, if(id % 5 = 4, NULL, chr(97 + id % 3)) AS s,
        if(id % 7 = 6, NULL, array(id % 2, if(id % 3 = 0, NULL, id % 3))) AS arr,
        CAST(id AS DECIMAL(38, 2)) AS d, CAST(id AS DECIMAL(20, 2)) AS small,
        array(if(id % 2 = 0, -0.0D, 0.0D)) AS zeros,
        if(id % 6 = 5, NULL, named_struct('A', id % 2, 'b', if(id % 4 = 3, NULL, 'x'))) AS st,
        map('k', id % 2) AS m, make_ym_interval(0, int(id)) AS ym, make_dt_interval(0, 0, int(id % 2)) AS dt,
        1152921504606846976 * (id % 4 + 1) AS big
    FROM range(40)
"""
NAMES = [
    f"SELECT to_json(struct(s, sum(n) AS total)) FROM t {BY}",
    f"SELECT struct(s, sum(n)) FROM t {BY}",
    f"SELECT struct(s, sum(n)) AS x FROM t {BY}",
    f"SELECT struct(window) FROM t {BY}",
    f"SELECT struct(WINDOW, {WINDOW}, {WINDOW}.start, window.`end`) AS x FROM t {BY}",
    f"SELECT struct(window.start, avg(n)) FROM t {BY}",
    f"SELECT to_json(struct(window.start, avg(n))) AS x, to_json(struct(window)) FROM t {BY}",
    f"SELECT typeof(struct(s, S, t.s, n % 2, (n % 2), max(n))), n % 2 AS k, typeof(struct(k)) FROM t {BY}, n % 2",
    f"SELECT sum(n) AS total, total + 1 AS more, to_json(struct(total, TOTAL, more, s)) FROM t {BY}",
    f"SELECT s AS k, typeof((k, s, sum(n))), window AS w, to_json((w, w.start, k)) FROM t {BY}",
    f"SELECT to_csv(struct(s, sum(n))), to_xml(struct(s, sum(n))), map(coalesce(s, '-'), struct(s)) AS m FROM t {BY}",
    f"SELECT named_struct('a', s, 'b', sum(n)), array(struct(s)), array(struct(max(n), s))[0] FROM t {BY}",
    f"SELECT schema_of_json('{{}}'), to_json(map('s', struct(s, count(*)))) FROM t {BY}",
    f"SELECT transform(array(1, 2), x -> struct(x, s, sum(n))) AS x FROM t {BY}",
    f"SELECT to_json(transform(array(s), s -> struct(s, max(n)))), arrays_zip(array(s), array(sum(n))) FROM t {BY}",
    f"SELECT array(s) AS a, to_json(arrays_zip(a, array(min(n)), A)) FROM t {BY}",
    f"SELECT typeof(struct(st.a, st.A, st.b, st, st)) FROM t GROUP BY st, {WINDOW}",
    f"SELECT to_json(struct(st.a, st.A)) FROM t GROUP BY st.a, {WINDOW}",
    f"SELECT to_json(struct(m['k'], arr[0], -n, upper(s))) FROM t GROUP BY m['k'], arr[0], -n, upper(s), {WINDOW}",
    f"SELECT upper(s) AS k, to_json(struct(k, count(*))) AS k2 FROM t GROUP BY k, {WINDOW}",
    f"SELECT to_json(struct(s, n)) AS x, struct(s, n), struct( s , n ).s FROM t GROUP BY struct(s, n), s, n, {WINDOW}",
    f'SELECT s FROM t {BY} HAVING to_json(struct(s, sum(n))) LIKE \'{{"s":%"col2":%\'',
]
KEYS = [
    f"SELECT arr, count(*) FROM t GROUP BY arr, {WINDOW}",
    f"SELECT window, arr, st, sum(n) FROM t GROUP BY arr, st, {WINDOW}",
    f"SELECT window.start, st AS k, max(n) FROM t GROUP BY st, {WINDOW}",
    f"SELECT window, zeros, count(*) FROM t GROUP BY zeros, {WINDOW}",
    f"SELECT arr[1], st.b, min(n), to_json(struct(st, arr)) FROM t GROUP BY arr, st, {WINDOW}",
    f"SELECT array(st) AS k, window, sum(n) FROM t GROUP BY array(st), {WINDOW}",
    f"SELECT struct(s, arr) AS k, window, sum(n) FROM t WHERE n > 3 GROUP BY struct(s, arr), {WINDOW}",
    f"SELECT s, window, sum(n) FROM t {BY}",
]
INTERVALS = [
    f"SELECT dt, window, sum(n) FROM t GROUP BY dt, {WINDOW}",
    f"SELECT dt, avg(n) FROM t GROUP BY dt, {WINDOW}",
]
CONDITIONS = [
    f"SELECT s, count(*) FROM t {BY} HAVING sum(n)",
    f"SELECT s, count(*) FROM t {BY} HAVING min(n)",
    f"SELECT s, window, count(*) FROM t {BY} HAVING NULL",
    f"SELECT s, count(*) FROM t WHERE false {BY}",
    f"SELECT s, window, count(*) FROM t WHERE CAST(NULL AS BOOLEAN) {BY}",
    f"SELECT s, count(*) FILTER (WHERE false), count(*) FILTER (WHERE CAST(NULL AS BOOLEAN)) FROM t {BY}",
    f"SELECT s, count(*) FROM t WHERE ym > INTERVAL '3' MONTH {BY}",
    f"SELECT s, array(max(n))[0] FROM t {BY}",
]


def oracle(spark: Any, selects: Sequence[str], **settings: str) -> list[Rows]:
    """What Spark says."""
    session = oracle_session(spark, **settings)
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW t AS {ROWS}")
    return [Rows.of(session.sql(select)) for select in selects]


def engine_over(rows: Any, selects: Sequence[str]) -> weft.Engine:
    """An engine with the queries q0, q1, ..."""
    engine = weft.Engine(rows.sparkSession).stream("t", rows, "ts")
    engine.sql("".join(f"-- name: q{number}\n{select};\n" for number, select in enumerate(selects)))
    return engine


def assert_equal(select: str, ours: Rows, theirs: Rows) -> None:
    assert schema_difference(ours.schema, theirs.schema) is None, f"{select}\n{ours.schema}\n{theirs.schema}"
    difference = multiset_difference(ours.rows, theirs.rows)
    assert difference is None, f"{select}\n{difference}"
    assert "__" not in repr(ours.rows) + ours.schema.simpleString(), select


@pytest.mark.parametrize("selects", [NAMES, KEYS + INTERVALS, CONDITIONS], ids=["names", "keys", "conditions"])
def test_a_batch_gives_the_rows_and_names_of_spark(spark: Any, selects: list[str]) -> None:
    answers = engine_over(spark.sql(ROWS), selects).run()
    assert not answers.failures
    for number, (select, theirs) in enumerate(zip(selects, oracle(spark, selects), strict=True)):
        assert_equal(select, Rows.of(answers[f"q{number}"]), theirs)
    assert "__" not in repr(answers.all().collect())


def test_files_of_a_batch_hold_the_rows_and_names_of_spark(spark: Any, tmp_path: Path) -> None:
    selects = NAMES + KEYS + CONDITIONS + INTERVALS
    answers = engine_over(spark.sql(ROWS), selects).run()
    answers.write(str(tmp_path / "out"))
    assert not answers.failures
    assert_files(spark, tmp_path / "out", selects)


@pytest.mark.parametrize("finals", ["driver", "executors"])
def test_a_stream_gives_the_rows_and_names_of_spark(spark: Any, tmp_path: Path, finals: Any) -> None:
    selects = NAMES + KEYS + CONDITIONS
    spark.sql(ROWS).repartitionByRange(3, "ts").write.parquet(str(tmp_path / "source"))
    source = spark.read.parquet(str(tmp_path / "source"))
    stream = spark.readStream.schema(source.schema).option("maxFilesPerTrigger", 1)
    engine = engine_over(stream.parquet(str(tmp_path / "source")), selects)
    live = engine.start(
        str(tmp_path / "checkpoint"),
        lateness="1 minute",
        sinks=[ParquetSink(str(tmp_path / "out"))],
        available_now=True,
        drain=True,
        finals=finals,
    )
    live.await_termination()
    assert_files(spark, tmp_path / "out", selects)


def assert_files(spark: Any, folder: Path, selects: Sequence[str]) -> None:
    for number, (select, theirs) in enumerate(zip(selects, oracle(spark, selects), strict=True)):
        place = folder / f"query=q{number}"
        if list(place.glob("*.parquet")):
            found = spark.read.parquet(str(place))
            types = [(item.name, item.dataType.simpleString()) for item in found.schema]
            assert types == [(item.name, item.dataType.simpleString()) for item in theirs.schema], select
            assert_equal(select, Rows.of(with_schema(found, theirs.schema)), theirs)
        else:
            assert not theirs.rows, select


@pytest.mark.parametrize(
    ("select", "words"),
    [
        (f"SELECT count(*) FROM t WHERE n {BY}", "WHERE has to be a condition, and this is of type bigint"),
        (f"SELECT count(*) FROM t WHERE NULL {BY}", "WHERE has to be a condition"),
        (f"SELECT count(*) FROM t WHERE 'true' {BY}", "WHERE has to be a condition, and this is of type string"),
        (f"SELECT count(*) FILTER (WHERE NULL) FROM t {BY}", "FILTER has to be a condition"),
        (f"SELECT s, count(*) FILTER (WHERE n) AS c FROM t {BY}", "FILTER has to be a condition"),
        (f"SELECT ym, count(*) FROM t GROUP BY ym, {WINDOW}", "a key of type interval year to month is not supported"),
        (f"SELECT max(ym) FROM t {BY}", "max of type interval year to month is not supported"),
        (f"SELECT make_ym_interval(1, int(max(n))) AS x FROM t {BY}", "column x of type interval year to month"),
        (f"SELECT count(*) FROM t GROUP BY m, {WINDOW}", "GROUP BY over map<string,bigint> is not supported"),
        (f"SELECT count(*) FROM t GROUP BY array(m), {WINDOW}", "array_sort\\(map_entries"),
        (f"SELECT avgg(n) FROM t {BY}", "no function avgg\n(.*\n)*  did you mean avg?"),
        (f"SELECT max(java_method('java.lang.System', 'exit', 1)) FROM t {BY}", "java_method is not among"),
        (f"SELECT max(current_user()) FROM t {BY}", "current_user tells of the session"),
        (f"SELECT s FROM t WHERE s = current_user {BY}", "current_user tells of the session"),
        (f"SELECT struct(*) FROM t {BY}", r"\* is not supported"),
        (f"SELECT st.* FROM t GROUP BY st, {WINDOW}", r"\* is not supported"),
    ],
)
def test_what_spark_refuses_or_weft_cannot_do_is_refused_when_it_is_registered(
    spark: Any, select: str, words: str
) -> None:
    with pytest.raises(QueriesError, match=words):
        engine_over(spark.sql(ROWS), [select])


def test_where_false_alone_is_answered_with_no_row_and_the_rows_are_counted(spark: Any) -> None:
    answers = engine_over(spark.sql(ROWS), [f"SELECT s, count(*) FROM t WHERE false {BY}"]).run()
    assert answers["q0"].count() == 0
    assert answers.totals.rows_read == 40


def test_a_run_that_failed_does_not_keep_the_next_one_waiting(spark: Any, tmp_path: Path) -> None:
    spark.sql(ROWS).write.parquet(str(tmp_path / "rows"))
    gone = spark.read.parquet(str(tmp_path / "rows"))
    shutil.rmtree(tmp_path / "rows")
    selects = [f"SELECT s, count(*) AS c FROM t {BY}", f"SELECT arr, count(*) AS c FROM t GROUP BY arr, {WINDOW}"]
    with pytest.raises((PySparkException, Py4JError)):
        engine_over(gone, selects).run()
    assert engine_over(spark.sql(ROWS), selects).run().totals.rows_read == 40


# -------------------------------------------------------------------------------------------------- not ANSI

LOOSE = {"spark.sql.ansi.enabled": "false"}
WRAPPED = [
    f"SELECT s, window, sum(big) FROM t {BY}",
    f"SELECT s, sum(big) + 1 AS x, sum(-big) AS y, avg(big) IS NULL AS z FROM t {BY}",
    f"SELECT s, sum(small), avg(small), max(d), count(d) FROM t {BY}",
    f"SELECT s, sum(CAST(s AS INT)), max(CAST('x' AS INT)), max(n / 0), max(arr[7]) FROM t {BY}",
    f"SELECT window, sum(big) FROM t WHERE big / 0 IS NULL GROUP BY {WINDOW}",
]


@pytest.fixture
def loose(spark: Any) -> Any:
    """A session that is not ANSI."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    return session


def test_where_spark_is_not_ansi_sums_of_integers_go_round_as_its_do(spark: Any, loose: Any) -> None:
    answers = engine_over(loose.sql(ROWS), WRAPPED).run()
    assert not answers.failures
    for number, (select, theirs) in enumerate(zip(WRAPPED, oracle(spark, WRAPPED, **LOOSE), strict=True)):
        assert_equal(select, Rows.of(answers[f"q{number}"]), theirs)


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_where_spark_is_not_ansi_sums_of_wide_decimals_are_refused(loose: Any, function: str) -> None:
    with pytest.raises(QueriesError, match=f"{function} over decimal128.* depends on the order of rows"):
        engine_over(loose.sql(ROWS), [f"SELECT s, {function}(d) FROM t {BY}"])


# ----------------------------------------------------------------------------------- functions of the user's own


def test_functions_that_the_user_registered_may_be_called_if_they_give_the_same_each_time(spark: Any) -> None:
    session = spark.newSession()
    session.udf.register("doubled", lambda x: None if x is None else 2 * x, "bigint")
    session.udf.register("moody", udf(lambda x: x, "bigint").asNondeterministic())
    session.udf.register("total", pandas_total())
    session.sql("CREATE TEMPORARY FUNCTION plus_one(x BIGINT) RETURNS BIGINT RETURN x + 1")
    rows = session.sql(ROWS)
    select = f"SELECT s, sum(doubled(n)), plus_one(max(n)), doubled(min(n)) FROM t WHERE doubled(n) > 3 {BY}"
    rows.createOrReplaceTempView("t")
    assert_equal(select, Rows.of(engine_over(rows, [select]).run()["q0"]), Rows.of(session.sql(select)))
    for text in (f"SELECT max(moody(n)) FROM t {BY}", f"SELECT n, moody(n) FROM t GROUP BY n, {WINDOW}"):
        with pytest.raises(QueriesError, match=r"random, or an aggregate of your own|NONDETERMINISTIC"):
            engine_over(rows, [text])
    with pytest.raises(QueriesError, match="random, or an aggregate of your own"):
        engine_over(rows, [f"SELECT n, total(n) FROM t GROUP BY n, {WINDOW}"])
    with pytest.raises(QueriesError, match=r"no function doubledd\n(.*\n)*  did you mean doubled?"):
        engine_over(rows, [f"SELECT max(doubledd(n)) FROM t {BY}"])


def pandas_total() -> Any:
    """An aggregate of the user's own."""

    def total(values: pd.Series) -> int:  # type: ignore[type-arg]
        return int(values.sum())

    total.__annotations__ = {"values": pd.Series, "return": int}
    return pandas_udf("bigint")(total)
