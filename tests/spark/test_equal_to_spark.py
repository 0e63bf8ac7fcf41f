"""Weft's rows are Spark's rows: random workloads, then a case for every point of docs/semantics 1 to 3.

The random part takes its size from the environment. CI compares 40 queries over 2 data sets; the long run is

    WEFT_RANDOM_DATASETS=110 WEFT_RANDOM_QUERIES=2200 .venv/bin/pytest tests/spark/test_equal_to_spark.py -k random

and prints at its end how much was compared.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.errors import PySparkException

import weft
from oracle import generate, naive
from oracle.cases import MINUTE, SECOND, Case, asked, stream
from oracle.compare import NAN, Rows, compare, oracle_session
from oracle.trial import CUT, judge
from weft.errors import WeftError

DATASETS = int(os.environ.get("WEFT_RANDOM_DATASETS", "2"))
QUERIES = int(os.environ.get("WEFT_RANDOM_QUERIES", "40"))

HOUR = 60 * MINUTE
DAY = 24 * HOUR
Y2024 = 1_704_067_200 * SECOND
NAN_, INF = float("nan"), float("inf")
WINDOW = "window(ts, '3 minutes', '1 minute')"


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    return oracle_session(spark)


# ---------------------------------------------------------------------------------------------------- random


@settings(
    max_examples=DATASETS,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # a difference is reduced by the trial itself, which knows what a query is
    suppress_health_check=list(HealthCheck),
)
@given(shape=generate.shapes(max(1, round(QUERIES / DATASETS))))
def test_random_queries_over_random_data_give_the_rows_of_spark(
    spark: Any, session: Any, shape: generate.Shape
) -> None:
    judge(spark, session, generate.workload(shape))


@pytest.mark.parametrize("cut", ["workers", "driver"])
def test_random_queries_give_the_rows_of_spark_by_kernels(
    spark: Any, session: Any, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    monkeypatch.setenv(CUT, cut)
    judge(spark, session, generate.workload(generate.shape(20_014, 8)))


@pytest.mark.long
def test_random_queries_with_more_than_64_predicates_in_one_run_give_the_rows_of_spark(
    spark: Any, session: Any
) -> None:
    shape = generate.Shape(
        seed=64,
        rows=120,
        event_time_type="timestamp",
        span=6 * HOUR,
        types=("int", "double", "string", "boolean", "decimal(20,4)", "date"),
        partitions=2,
        queries=70,
        many_predicates=True,
    )
    workload = generate.workload(shape)
    predicates = {line for query in workload.queries for line in query.select.splitlines() if line.startswith("WHERE")}
    filters = {part for query in workload.queries for part in query.select.split("FILTER (WHERE ")[1:]}
    assert len(predicates) + len(filters) > 64
    judge(spark, session, workload)


# --------------------------------------------------------------------------------- semantics 1: which windows


def times(*seconds: float) -> list[tuple[int, int]]:
    """Rows at these seconds, numbered from 1."""
    return [(round(second * SECOND), number) for number, second in enumerate(seconds, 1)]


def test_windows_start_at_multiples_of_the_slide_from_the_epoch_also_before_1970(spark: Any) -> None:
    case = Case(spark, stream("ts timestamp, x int", times(-3600.5, -61, -60, -1, 0, 1, 59.999999, 60, 3600)))
    found, *_ = case.same(
        f"SELECT window, sum(x) FROM s GROUP BY {WINDOW}",
        "SELECT window.start, window.end, count(*) FROM s GROUP BY window(ts, '1 minute')",
        "SELECT window, sum(x) FROM s GROUP BY window(ts, '7 seconds', '3 seconds')",
    )
    assert ((-2 * MINUTE, MINUTE), 27) in found.rows


@pytest.mark.parametrize("start", ["17 seconds", "-17 seconds", "59 seconds 999999 microseconds", "0 seconds"])
def test_windows_are_shifted_by_the_start_of_the_query(spark: Any, start: str) -> None:
    case = Case(spark, stream("ts timestamp, x int", times(-50, -43, -1, 0, 16, 17, 43, 60, 77, 200)))
    case.same(
        f"SELECT window, sum(x), count(*) FROM s GROUP BY window(ts, '2 minutes', '1 minute', '{start}')",
        f"SELECT window, sum(x), count(*) FROM s GROUP BY window(ts, '90 seconds', '1 minute', '{start}')",
    )


def test_a_range_that_is_no_multiple_of_the_slide_ends_where_spark_says(spark: Any) -> None:
    case = Case(spark, stream("ts timestamp, x int", times(*range(0, 300, 7))))
    case.same(
        "SELECT window, sum(x), max(x) FROM s GROUP BY window(ts, '100 seconds', '30 seconds')",
        "SELECT window, sum(x), min(x) FROM s GROUP BY window(ts, '31 seconds', '30 seconds')",
        "SELECT window, sum(x), avg(x) FROM s GROUP BY window(ts, '59 seconds', '30 seconds', '11 seconds')",
    )


def test_a_range_shorter_than_the_slide_leaves_out_the_rows_between_windows(spark: Any) -> None:
    case = Case(spark, stream("ts timestamp, x int", times(*range(-100, 200, 7))))
    ours, every = case.weft(
        "SELECT window.start, sum(x), count(*) FROM s GROUP BY window(ts, '20 seconds', '1 minute', '5 seconds')",
        "SELECT window.start, sum(x), count(*) FROM s GROUP BY window(ts, '1 minute')",
    )
    rows = [{"ts": time, "x": x} for time, x in zip(case.stream.values["ts"], case.stream.values["x"], strict=True)]
    calls = [naive.Aggregate("sum", ("x",)), naive.Aggregate("count")]
    for answers, window in (
        (ours, naive.Window(20 * SECOND, MINUTE, 5 * SECOND)),
        (every, naive.Window(MINUTE, MINUTE)),
    ):
        assert isinstance(answers, Rows), answers
        expected = naive.answers(rows, window, calls)
        assert {row[0]: row[1:] for row in answers.rows} == {start: values for (start, _), values in expected.items()}
        assert len(answers.rows) == len(expected)


def test_slides_of_single_microseconds_are_exact(spark: Any) -> None:
    base = Y2024 + 1
    case = Case(spark, stream("ts timestamp, x int", [(base + i * i, i) for i in range(40)]))
    case.same(
        "SELECT window, sum(x) FROM s GROUP BY window(ts, '7 microseconds', '3 microseconds')",
        "SELECT window, sum(x) FROM s GROUP BY window(ts, '1 microsecond')",
        "SELECT window, max(x) FROM s GROUP BY window(ts, '1 millisecond', '499 microseconds', '13 microseconds')",
    )


def test_windows_longer_than_the_data_hold_all_of_it(spark: Any) -> None:
    case = Case(spark, stream("ts timestamp, x int", [(Y2024 + i * SECOND, i) for i in range(20)]))
    found, _ = case.same(
        "SELECT window, sum(x) FROM s GROUP BY window(ts, '30 days', '1 day')",
        "SELECT window, max(x) FROM s GROUP BY window(ts, '52 weeks', '4 weeks', '3 days')",
    )
    assert [row[1] for row in found.rows] == [190] * 30


def test_decades_without_a_row_cost_nothing_however_short_the_slide(spark: Any) -> None:
    rows = [(-2_051_222_400 * SECOND, 1), (-2_051_222_400 * SECOND + 3, 2), (0, 3), (Y2024, 4), (Y2024 + 1500, 5)]
    Case(spark, stream("ts timestamp, x int", rows)).same(
        "SELECT window, sum(x) FROM s GROUP BY window(ts, '2 milliseconds', '1 millisecond')",
        "SELECT window, sum(x) FROM s GROUP BY window(ts, '5 microseconds', '2 microseconds')",
        "SELECT window, count(*), max(x) FROM s GROUP BY window(ts, '1 week')",
    )


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_windows_and_time_functions_follow_spark_in_any_session_time_zone(spark: Any, zone: str, kind: str) -> None:
    sunday = 1_710_053_100 * SECOND  # 2024-03-10 06:45 UTC: New York's clocks skip an hour fifteen minutes later
    case = Case(
        spark,
        stream(f"ts {kind}, x int", [(sunday + i * 11 * MINUTE, i) for i in range(60)]),
        {"spark.sql.session.timeZone": zone},
    )
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        case.same(
            "SELECT window, sum(x) FROM s GROUP BY window(ts, '1 day')",
            "SELECT window, sum(x) FROM s GROUP BY window(ts, '6 hours', '1 hour', '30 minutes')",
            "SELECT date_trunc('day', ts), count(*) FROM s GROUP BY window(ts, '1 day'), date_trunc('day', ts)",
            "SELECT hour(ts), date_format(window.start, 'HH:mm') AS at, max(x) FROM s "
            "GROUP BY window(ts, '1 hour'), hour(ts)",
            "SELECT window.end, min(ts), max(ts) FROM s WHERE hour(ts) < 4 GROUP BY window(ts, '2 hours', '1 hour')",
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_timestamp_without_time_zone_gives_windows_without_time_zone(spark: Any) -> None:
    found, _ = Case(spark, stream("ts timestamp_ntz, x int", times(0, 59, 60, 150))).same(
        f"SELECT window, min(x), min(ts) FROM s GROUP BY {WINDOW}",
        f"SELECT window.start AS began, max(ts) FROM s GROUP BY {WINDOW}",
    )
    assert found.schema["window"].dataType.simpleString() == "struct<start:timestamp_ntz,end:timestamp_ntz>"


# ---------------------------------------------------------------------------------- semantics 2: which rows


def test_a_window_that_holds_only_nulls_appears_and_an_empty_one_does_not(spark: Any) -> None:
    case = Case(spark, stream("ts timestamp, x int", [(0, None), (10 * MINUTE, 5)]))
    found, *_ = case.same(
        "SELECT window.start, sum(x), count(x), count(*), avg(x), min(x) FROM s GROUP BY window(ts, '1 minute')",
        "SELECT window.start, stddev(x), skewness(x), corr(x, x), bit_or(x), max_by(x, ts) FROM s "
        "GROUP BY window(ts, '1 minute')",
        "SELECT window.start, sum(x) FILTER (WHERE x > 100), count_if(x > 100) FROM s GROUP BY window(ts, '1 minute')",
    )
    assert sorted(found.rows, key=repr) == [(0, None, 0, 1, None, None), (10 * MINUTE, 5, 1, 1, 5.0, 5)]


def test_a_key_that_falls_silent_still_gets_the_windows_that_cover_its_last_rows(spark: Any) -> None:
    rows = [(0, "quiet", 1), *((i * MINUTE, "busy", i) for i in range(30))]
    found, _ = Case(spark, stream("ts timestamp, k string, x int", rows)).same(
        "SELECT window.start, k, sum(x), min(x) FROM s GROUP BY window(ts, '10 minutes', '1 minute'), k",
        "SELECT k, count(*) FROM s GROUP BY window(ts, '10 minutes', '1 minute'), k",
    )
    assert sum(row[1] == "quiet" for row in found.rows) == 10


def test_rows_without_an_event_time_are_dropped(spark: Any) -> None:
    case = Case(spark, stream("ts timestamp, x int", [(None, 1), (0, 2), (None, None), (MINUTE, 4)]))
    case.same(f"SELECT window, sum(x), count(*) FROM s GROUP BY {WINDOW}")


@pytest.mark.parametrize("rows", [[], [(0, "a", 1)], [(None, "a", 1)]], ids=["empty", "one row", "no event time"])
def test_hardly_any_input_gives_what_spark_gives(spark: Any, rows: list[Any]) -> None:
    Case(spark, stream("ts timestamp, k string, x int", rows)).same(
        f"SELECT window, k, sum(x), avg(x), min(k), stddev(x) FROM s GROUP BY {WINDOW}, k",
        f"SELECT count(*) AS n FROM s GROUP BY {WINDOW}",
        f"SELECT max(x) - min(x) AS spread FROM s WHERE x > 0 GROUP BY {WINDOW} HAVING count(*) > 0",
    )


def test_a_predicate_that_no_row_satisfies_gives_no_row(spark: Any) -> None:
    rows = [(i * SECOND, i) for i in range(100)]
    none, all_ = Case(spark, stream("ts timestamp, x int", rows)).same(
        f"SELECT window, sum(x) FROM s WHERE x < 0 GROUP BY {WINDOW}",
        f"SELECT window, sum(x) FILTER (WHERE x < 0), count(*) FROM s GROUP BY {WINDOW}",
    )
    assert none.rows == [] and len(all_.rows) == 4


def test_null_predicates_let_no_row_through(spark: Any) -> None:
    rows = [(i * SECOND, None if i % 3 else i, i % 2 == 0 if i % 5 else None) for i in range(60)]
    Case(spark, stream("ts timestamp, x int, b boolean", rows)).same(
        f"SELECT window, count(*) FROM s WHERE x > 5 GROUP BY {WINDOW}",
        f"SELECT window, count(*) FROM s WHERE NOT (x > 5) GROUP BY {WINDOW}",
        f"SELECT window, count(*) FROM s WHERE x NOT IN (1, 3, NULL) GROUP BY {WINDOW}",
        f"SELECT window, count(*) FROM s WHERE b GROUP BY {WINDOW}",
        f"SELECT window, count(*) FILTER (WHERE b), count(*) FILTER (WHERE NOT b) FROM s GROUP BY {WINDOW}",
        f"SELECT window, count(*) FROM s WHERE CAST(NULL AS BOOLEAN) GROUP BY {WINDOW}",
        f"SELECT window, count(*) FROM s WHERE x > 5 OR b GROUP BY {WINDOW}",
    )


# ------------------------------------------------------------------------------------- semantics 3: keys


def test_null_keys_are_a_group_of_their_own(spark: Any) -> None:
    rows = [(i * SECOND, None if i % 4 == 0 else "ab"[i % 2], None if i % 3 == 0 else i % 2) for i in range(90)]
    Case(spark, stream("ts timestamp, k string, j int", rows)).same(
        f"SELECT window, k, count(*) FROM s GROUP BY {WINDOW}, k",
        f"SELECT k, j, count(*), max(j) FROM s GROUP BY k, {WINDOW}, j",
        f"SELECT coalesce(k, 'none') AS k2, count(*) FROM s GROUP BY {WINDOW}, coalesce(k, 'none')",
    )


@pytest.mark.parametrize("kind", ["double", "float"])
def test_nan_equals_nan_and_minus_zero_equals_zero_in_keys(spark: Any, kind: str) -> None:
    values = [NAN_, 0.0, -0.0, INF, -INF, None, 1.5]
    case = Case(spark, stream(f"ts timestamp, k {kind}, x int", [(i * SECOND, values[i % 7], i) for i in range(140)]))
    found, *_ = case.same(
        "SELECT k, sum(x), count(*) FROM s GROUP BY window(ts, '1 hour'), k",
        f"SELECT window, k AS key, max(x) FROM s GROUP BY {WINDOW}, k",
        f"SELECT -k, count(*) FROM s GROUP BY {WINDOW}, -k",
    )
    assert len(found.rows) == 6 and sum(row[0] is NAN for row in found.rows) == 1


def test_collated_keys_are_refused_with_the_way_out(spark: Any) -> None:
    case = Case(spark, stream("ts timestamp, k string, x int", [(SECOND, "apple", 1)]))
    engine = weft.Engine(spark)
    engine.stream("s", case.stream.frame(spark).selectExpr("ts", "k COLLATE UTF8_LCASE AS k", "x"), event_time="ts")
    with pytest.raises(weft.QueriesError, match="UTF8_LCASE") as refused:
        engine.sql(f"SELECT window, k, sum(x) FROM s GROUP BY {WINDOW}, k")
    assert "collate(..., 'UTF8_BINARY')" in str(refused.value)


def test_one_key_with_nearly_all_rows_is_answered_like_the_others(spark: Any) -> None:
    rows = [(i * SECOND, "heavy" if i % 50 else f"k{i}", i % 17) for i in range(2000)]
    Case(spark, stream("ts timestamp, k string, x int", rows, partitions=4)).same(
        f"SELECT window, k, sum(x), max(x), count(*) FROM s GROUP BY {WINDOW}, k",
        f"SELECT window, 'all' AS k, sum(x) FROM s GROUP BY {WINDOW}",
        f"SELECT k, avg(x) FROM s WHERE k = 'heavy' GROUP BY {WINDOW}, k",
    )


def test_keys_of_every_type_and_many_at_once_come_back_as_they_are(spark: Any) -> None:
    schema = (
        "ts timestamp, a tinyint, b smallint, c int, d bigint, e float, f double, g decimal(38,10), h boolean, "
        "i date, j timestamp, k string, l timestamp_ntz"
    )
    values = [
        (-128, -32768, -(2**31), -(2**63), 1.5, 2.5, Decimal("-1234567890123456789012345678.0123456789")),
        (127, 32767, 2**31 - 1, 2**63 - 1, -1.5, -2.5, Decimal("9999999999999999999999999999.9999999999")),
    ]
    rest = [(True, -719_162, -62_135_596_800_000_000, "", 5), (False, 20_000, Y2024 + 7, "日本🙂", -5)]
    rows = [(i * SECOND, *values[i % 2], *rest[i // 2 % 2]) for i in range(20)]
    names = [part.split()[0] for part in schema.split(", ")[1:]]
    Case(spark, stream(schema, rows)).same(
        f"SELECT window, {', '.join(names)}, count(*) FROM s GROUP BY {WINDOW}, {', '.join(names)}",
        *(f"SELECT {name}, count(*) FROM s GROUP BY {WINDOW}, {name}" for name in names),
    )


# ------------------------------------------------------------------------- semantics 3: integers and decimals


def test_extreme_integers_are_exact_in_every_aggregate(spark: Any) -> None:
    limits = [(-128, -32768, -(2**31), -(2**63)), (127, 32767, 2**31 - 1, 2**63 - 1), (0, 0, 0, 0), (-1, -1, -1, -1)]
    rows = [(i * 20 * SECOND, *limits[i % 4]) for i in range(40)]
    Case(spark, stream("ts timestamp, a tinyint, b smallint, c int, d bigint", rows)).same(
        *(
            f"SELECT window, min({x}), max({x}), bit_and({x}), bit_or({x}), bit_xor({x}) FROM s GROUP BY {WINDOW}"
            for x in "abcd"
        ),
        f"SELECT window, sum(a), sum(b), sum(c), max_by(d, ts), min_by(a, d) FROM s GROUP BY {WINDOW}",
    )


def test_a_bigint_sum_that_overflows_fails_by_name_and_leaves_its_neighbours_right(spark: Any) -> None:
    rows = [(i * SECOND, 2**62 + i, i) for i in range(4)] + [(i * HOUR, 5, i) for i in range(1, 5)]
    case = Case(spark, stream("ts timestamp, big bigint, x int", rows))
    fine = (
        f"SELECT window, avg(big), max(big), min(big) FROM s GROUP BY {WINDOW}",
        f"SELECT window, sum(x) FROM s GROUP BY {WINDOW}",
        f"SELECT window, sum(big) FROM s WHERE big < 100 GROUP BY {WINDOW}",
        f"SELECT window, sum(CAST(big AS DECIMAL(20, 0))) FROM s GROUP BY {WINDOW}",
    )
    overflowing = f"SELECT window, sum(big) AS total FROM s GROUP BY {WINDOW}"
    failed, *others = case.weft(overflowing, *fine)
    assert isinstance(failed, WeftError) and "q0" in str(failed), failed
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        case.spark_rows(overflowing)
    for select, ours, theirs in zip(fine, others, case.spark_rows(*fine), strict=True):
        assert isinstance(ours, Rows), ours
        assert sorted(ours.rows) == sorted(theirs.rows), select


def test_a_bigint_sum_is_exact_though_some_order_of_adding_would_overflow(spark: Any) -> None:
    rows = [(i * MINUTE, x) for i, x in enumerate([2**62, 2**62, -(2**62), -(2**62), 2**62, 7])]
    case = Case(spark, stream("ts timestamp, x bigint", rows))
    ours, _ = case.weft(
        "SELECT window.start, sum(x) FROM s GROUP BY window(ts, '4 minutes')",
        "SELECT window.start, avg(x) FROM s GROUP BY window(ts, '2 minutes', '1 minute')",
    )
    assert isinstance(ours, Rows), ours
    assert sorted(ours.rows) == [(0, 0), (4 * MINUTE, 2**62 + 7)]
    case.same("SELECT window, avg(x), max(x) FROM s GROUP BY window(ts, '2 minutes', '1 minute')")


def test_decimals_are_exact_to_their_last_digit(spark: Any) -> None:
    huge = [Decimal("9999999999999999999999999.9999999999"), Decimal("-0.0000000001"), Decimal("1e20"), None]
    small = [Decimal("99.99"), Decimal("-99.99"), Decimal("0.01"), Decimal("0.05")]
    rows = [(i * 17 * SECOND, huge[i % 4], small[i * i % 4]) for i in range(50)]
    Case(spark, stream("ts timestamp, h decimal(38,10), s decimal(4,2)", rows)).same(
        f"SELECT window, sum(h), min(h), max(h) FROM s GROUP BY {WINDOW}",
        f"SELECT window, sum(s), avg(s), min(s), max(s), count(s) FROM s GROUP BY {WINDOW}",
        f"SELECT window, sum(s * s), avg(s + s), sum(s) / 3, max(s) - min(s) FROM s GROUP BY {WINDOW}",
        f"SELECT s, sum(h), count(h) FROM s GROUP BY {WINDOW}, s",
    )


def test_a_decimal_average_rounds_half_up_as_spark_does(spark: Any) -> None:
    cents = [1, 2, 2, 3, -1, -2, -2, 5, 7, 11, -13, 0]
    rows = [(i * 10 * SECOND, Decimal(c).scaleb(-2)) for i, c in enumerate(cents * 4)]
    Case(spark, stream("ts timestamp, d decimal(10,2)", rows)).same(
        *(f"SELECT window, avg(d) FROM s GROUP BY window(ts, '{n}0 seconds', '10 seconds')" for n in (3, 6, 7, 9, 11))
    )


def test_a_decimal_sum_beyond_38_digits_fails_by_name_and_one_just_below_is_exact(spark: Any) -> None:
    most = Decimal("9" * 38)
    rows = [(0, most, 1), (1, Decimal(-1), 1), (HOUR, most, 2), (HOUR + 1, Decimal(1), 2)]
    case = Case(spark, stream("ts timestamp, d decimal(38,0), x int", rows))
    over = f"SELECT window, sum(d) FROM s GROUP BY {WINDOW}"
    below = f"SELECT window, sum(d), max(d) FROM s WHERE x = 1 GROUP BY {WINDOW}"
    with pytest.raises(Exception, match=r"NUMERIC_VALUE_OUT_OF_RANGE|ARITHMETIC_OVERFLOW"):
        case.spark_rows(over)
    failed, fine = case.weft(over, below)
    assert isinstance(failed, WeftError), failed
    (theirs,) = case.spark_rows(below)
    assert isinstance(fine, Rows) and sorted(fine.rows) == sorted(theirs.rows)


# --------------------------------------------------------------------------------------- semantics 3: doubles


def exact_sums(case: Case, window: naive.Window, column: str = "x") -> dict[int, tuple[Any, Fraction | None]]:
    """The exact sum and the sum of magnitudes by window start; no magnitude where a value is not finite."""
    rows = [{"ts": t, "x": x} for t, x in zip(case.stream.values["ts"], case.stream.values[column], strict=True)]
    sums = naive.answers(rows, window, [naive.Aggregate("sum", ("x",))])
    finite = [row for row in rows if row["x"] is not None and abs(row["x"]) < INF]
    sizes = naive.answers(finite, window, [naive.Aggregate("sum", (lambda row: abs(row["x"]),))])
    return {start: (value, sizes.get((start, key), (None,))[0]) for (start, key), (value,) in sums.items()}


@pytest.mark.parametrize("spike", [1e16, -1e300, INF, -INF, NAN_, 1.7976931348623157e308])
def test_what_left_the_window_leaves_no_trace_in_a_sum_of_doubles(spark: Any, spike: float) -> None:
    values = [0.1 * i for i in range(60)]
    values[7], values[8], values[31] = spike, 1e16, spike
    case = Case(spark, stream("ts timestamp, x double", [(i * 20 * SECOND, x) for i, x in enumerate(values)]))
    ours, _ = case.weft(
        f"SELECT window.start, sum(x), avg(x), count(x) FROM s GROUP BY {WINDOW}",
        "SELECT window.start, sum(x) FROM s GROUP BY window(ts, '5 minutes', '1 minute')",
    )
    assert isinstance(ours, Rows), ours
    expected = exact_sums(case, naive.Window(3 * MINUTE, MINUTE))
    assert {row[0] for row in ours.rows} == expected.keys()
    for start, total, mean, count in ours.rows:
        exact, size = expected[start]
        if isinstance(exact, Fraction):
            assert abs(Fraction(total) - exact) <= size / 10**9, (start, total, exact)
            assert abs(Fraction(mean) - exact / count) <= size / 10**9, (start, mean, exact)
        else:
            same = (NAN, NAN) if exact != exact else (exact, exact)
            assert (total, mean) == same, (start, total, mean, exact)


def test_the_variance_of_close_values_far_from_zero_is_not_lost(spark: Any) -> None:
    values = [1e9 + (i * 7919 % 101) / 101 for i in range(90)]
    case = Case(spark, stream("ts timestamp, x double", [(i * 10 * SECOND, x) for i, x in enumerate(values)]))
    (ours,) = case.weft(
        f"SELECT window.start, var_pop(x), stddev_samp(x), covar_pop(x, -x), skewness(x), kurtosis(x), corr(x, 2 * x) "
        f"FROM s GROUP BY {WINDOW}"
    )
    assert isinstance(ours, Rows), ours
    rows = [{"ts": t, "x": x} for t, x in zip(case.stream.values["ts"], values, strict=True)]
    calls = [naive.Aggregate(f, ("x",)) for f in ("var_pop", "stddev_samp", "skewness", "kurtosis")]
    expected = naive.answers(rows, naive.Window(3 * MINUTE, MINUTE), calls)
    assert len(ours.rows) == len(expected)
    for start, variance, deviation, covariance, skewness, kurtosis, correlation in ours.rows:
        exact = expected[start, ()]
        assert variance == pytest.approx(float(exact[0]), rel=1e-6)
        assert covariance == pytest.approx(-float(exact[0]), rel=1e-6)
        assert deviation == pytest.approx(exact[1], rel=1e-6)
        assert skewness == pytest.approx(exact[2], abs=1e-5)
        assert kurtosis == pytest.approx(exact[3], abs=1e-5)
        assert correlation == pytest.approx(1, abs=1e-6)


def test_moments_of_a_window_do_not_remember_an_infinity(spark: Any) -> None:
    values = [float(i % 5) for i in range(40)]
    values[3], values[11] = INF, NAN_
    case = Case(spark, stream("ts timestamp, x double", [(i * MINUTE, x) for i, x in enumerate(values)]))
    (ours,) = case.weft(f"SELECT window.start, var_pop(x), covar_samp(x, x), skewness(x) FROM s GROUP BY {WINDOW}")
    assert isinstance(ours, Rows), ours
    tainted = {3 * MINUTE - i * MINUTE for i in range(3)} | {11 * MINUTE - i * MINUTE for i in range(3)}
    for start, *moments in ours.rows:
        assert [moment is NAN for moment in moments[:2]] == [start in tainted] * 2, (start, moments)


def test_min_and_max_take_nan_for_the_largest_double(spark: Any) -> None:
    values = [NAN_, INF, -INF, 1.0, None, -0.0, 0.0, 5e-324]
    rows = [(i * 25 * SECOND, values[i * i % 8], float(values[i % 8] or 0)) for i in range(64)]
    Case(spark, stream("ts timestamp, x double, y float", rows)).same(
        f"SELECT window, min(x), max(x), min(y), max(y) FROM s GROUP BY {WINDOW}",
        f"SELECT window, max(x) FILTER (WHERE NOT isnan(x)), min(-x), max(abs(y)) FROM s GROUP BY {WINDOW}",
    )


def test_floats_are_summed_as_doubles_and_compared_as_floats(spark: Any) -> None:
    rows = [(i * 20 * SECOND, (i % 7) * 0.25, i % 3) for i in range(50)]
    Case(spark, stream("ts timestamp, x float, k int", rows)).same(
        f"SELECT window, sum(x), min(x), max(x), avg(x) FROM s GROUP BY {WINDOW}",
        f"SELECT window, k, sum(x * x), max(x / 2), min(-x) FROM s GROUP BY {WINDOW}, k",
    )


def test_small_numbers_stay_themselves_beside_numbers_that_need_128_bits(spark: Any) -> None:
    huge = 2**63 - 1
    rows = [(i * 20 * SECOND, (-1, 1, huge, -huge)[i % 4], i % 4) for i in range(40)]
    Case(spark, stream("ts timestamp, x bigint, k int", rows)).same(
        f"SELECT window, k, avg(x) FROM s GROUP BY {WINDOW}, k",
        f"SELECT window, avg(x), min(x) FROM s WHERE k < 2 GROUP BY {WINDOW}",
    )


# ---------------------------------------------------------------------- semantics 3: strings, dates, ties


def test_strings_are_ordered_by_their_bytes(spark: Any) -> None:
    words = ["", "a", "B", "é", "\uffff", "🙂", "日本", "a\u0000b", "zz", None]
    rows = [(i * 15 * SECOND, words[i * 3 % 10], i) for i in range(60)]
    Case(spark, stream("ts timestamp, w string, x int", rows)).same(
        f"SELECT window, min(w), max(w), min(upper(w)), max(length(w)) FROM s GROUP BY {WINDOW}",
        f"SELECT window, max_by(w, x), min_by(w, x), max_by(x, x) FROM s GROUP BY {WINDOW}",
        f"SELECT window, concat(min(w), '..', max(w)) AS reach FROM s GROUP BY {WINDOW} HAVING max(w) > 'b'",
    )


def test_dates_timestamps_and_booleans_have_least_and_greatest_values(spark: Any) -> None:
    rows = [(i * 20 * SECOND, i * 37 % 50 - 25, (i * 7 % 11 - 5) * DAY, i % 3 == 0) for i in range(60)]
    Case(spark, stream("ts timestamp, d date, t timestamp, b boolean", rows)).same(
        f"SELECT window, min(d), max(d), min(t), max(t), min(b), max(b) FROM s GROUP BY {WINDOW}",
        f"SELECT window, max_by(d, t), min_by(b, t), min(ts), max(ts) FROM s GROUP BY {WINDOW}",
        f"SELECT window, bool_and(b), every(b), bool_or(b), any(b), some(NOT b) FROM s GROUP BY {WINDOW}",
        f"SELECT datediff(max(d), min(d)), year(max(t)) FROM s GROUP BY {WINDOW}",
    )


def test_min_by_keeps_null_values_and_ignores_null_orders(spark: Any) -> None:
    rows = [
        (i * 10 * SECOND, None if i % 3 == 0 else f"v{i}", None if i % 4 == 1 else (i * 13) % 101) for i in range(90)
    ]
    Case(spark, stream("ts timestamp, v string, o int", rows)).same(
        f"SELECT window, min_by(v, o), max_by(v, o), max_by(o, v) FROM s GROUP BY {WINDOW}",
        f"SELECT window, min_by(v, o) FILTER (WHERE v IS NOT NULL), max_by(v, -o) FROM s GROUP BY {WINDOW}",
    )


def test_first_and_last_go_by_event_time_whatever_the_order_of_rows(spark: Any) -> None:
    rows = [((i * 7919 % 600) * SECOND, None if i % 5 == 0 else f"v{i}", i % 2) for i in range(300)]
    case = Case(spark, stream("ts timestamp, v string, k int", rows, partitions=3))
    query = f"SELECT window, k, first(v), last(v), first(v) IGNORE NULLS, last(v, true) FROM s GROUP BY {WINDOW}, k"
    meant = (
        f"SELECT window, k, min_by(v, ts), max_by(v, ts), min_by(v, ts) FILTER (WHERE v IS NOT NULL), "
        f"max_by(v, ts) FILTER (WHERE v IS NOT NULL) FROM s GROUP BY {WINDOW}, k"
    )
    (ours,), (theirs,), (named,) = case.weft(query), case.spark_rows(meant), case.spark_rows(query)
    assert isinstance(ours, Rows), ours
    assert ours.schema == named.schema
    assert sorted(ours.rows, key=repr) == sorted(theirs.rows, key=repr)


# --------------------------------------------------------------------------------------------- sharing


def test_a_predicate_protects_a_division_though_other_queries_let_the_zero_through(spark: Any) -> None:
    rows = [(i * 20 * SECOND, i, i % 3) for i in range(60)]
    Case(spark, stream("ts timestamp, x int, y int", rows)).same(
        f"SELECT window, max(x / y) FROM s WHERE y <> 0 GROUP BY {WINDOW}",
        f"SELECT window, max(x), min(y), count(*) FROM s GROUP BY {WINDOW}",
        f"SELECT window, max(x / y) FILTER (WHERE y > 0) AS m FROM s GROUP BY {WINDOW}",
        f"SELECT window, min(x div y) FILTER (WHERE y <> 0), max(x) FROM s GROUP BY {WINDOW}",
        f"SELECT window, max(x / y) + max(abs(x / y)) FROM s WHERE y <> 0 AND x > 5 GROUP BY {WINDOW}",
        f"SELECT window, max(x % y) FROM s WHERE y = 2 GROUP BY {WINDOW}",
        f"SELECT window, sum(CASE WHEN y <> 0 THEN x div y ELSE 0 END) FROM s GROUP BY {WINDOW}",
        f"SELECT window, x div y AS k, count(*) FROM s WHERE y <> 0 GROUP BY {WINDOW}, x div y",
    )


def test_a_division_by_zero_fails_by_name_and_leaves_its_neighbours_right(spark: Any) -> None:
    rows = [(i * 20 * SECOND, i, i % 3) for i in range(60)]
    case = Case(spark, stream("ts timestamp, x int, y int", rows))
    bad = (
        f"SELECT window, max(x / y) FROM s GROUP BY {WINDOW}",
        f"SELECT window, count(*) FROM s WHERE x / y > 1 GROUP BY {WINDOW}",
        f"SELECT window, x / y AS k, count(*) FROM s GROUP BY {WINDOW}, x / y",
        f"SELECT window, 1 / min(y) AS inverse FROM s GROUP BY {WINDOW}",
        f"SELECT window, count(*) FROM s GROUP BY {WINDOW} HAVING 1 / min(y) > 0",
        f"SELECT window, CAST(max('x' || x) AS INT) FROM s GROUP BY {WINDOW}",
    )
    fine = (
        f"SELECT window, max(x / y) FROM s WHERE y <> 0 GROUP BY {WINDOW}",
        f"SELECT window, sum(x), sum(y) FROM s GROUP BY {WINDOW}",
        f"SELECT window, y, count(*) FROM s WHERE x > 3 GROUP BY {WINDOW}, y",
    )
    found = case.weft(*bad, *fine)
    # what the aggregation raises fails by name; what only the select list raises fails when the rows are read
    assert [isinstance(failed, WeftError) for failed in found[:3]] == [True] * 3, found[:3]
    for select, failed in zip(bad, found, strict=False):
        with pytest.raises(Exception, match=r"DIVIDE_BY_ZERO|CAST_INVALID_INPUT"):
            case.spark_rows(select)
        assert isinstance(failed, WeftError | PySparkException), select
    for select, ours, theirs in zip(fine, found[len(bad) :], case.spark_rows(*fine), strict=True):
        assert isinstance(ours, Rows), f"{select}\n{ours}"
        assert sorted(ours.rows) == sorted(theirs.rows), select


def test_an_error_in_a_predicate_among_many_fails_by_name(spark: Any) -> None:
    rows = [(i * 20 * SECOND, i, i % 3) for i in range(60)]
    case = Case(spark, stream("ts timestamp, x int, y int", rows))
    fine = [f"SELECT window, sum(x) FROM s WHERE x % {i} = 1 GROUP BY {WINDOW}" for i in range(2, 9)]
    failed, *others = case.weft(f"SELECT window, sum(x) FROM s WHERE x / y > 1 GROUP BY {WINDOW}", *fine)
    assert isinstance(failed, WeftError) and "q0" in str(failed), failed
    for select, ours, theirs in zip(fine, others, case.spark_rows(*fine), strict=True):
        assert isinstance(ours, Rows), f"{select}\n{ours}"
        assert sorted(ours.rows) == sorted(theirs.rows), select


def test_rows_that_nobody_sums_cannot_overflow(spark: Any) -> None:
    most = Decimal("9" * 38)
    rows = [(i, most, 2) for i in range(5)] + [(i, Decimal(i), 1) for i in range(5)]
    Case(spark, stream("ts timestamp, d decimal(38,0), x int", rows)).same(
        f"SELECT window, max(d), count(*) FROM s GROUP BY {WINDOW}",
        f"SELECT window, sum(d), avg(CAST(x AS DECIMAL(5,1))) FROM s WHERE x = 1 GROUP BY {WINDOW}",
        f"SELECT window, sum(d) FILTER (WHERE x < 2) AS t, min(d) FROM s GROUP BY {WINDOW}",
    )


def test_expressions_that_differ_only_inside_a_literal_are_different(spark: Any) -> None:
    words = ["a", "A", "a b", "a  b", "it's", "`a`"]
    rows = [(i * 10 * SECOND, words[i * 5 % 6], i) for i in range(90)]
    Case(spark, stream("ts timestamp, k string, x int", rows)).same(
        f"SELECT window, count_if(k = 'a'), count_if(k = 'A'), count_if(K = 'a') FROM s GROUP BY {WINDOW}",
        f"SELECT window, sum(x) FROM s WHERE k = 'a b' GROUP BY {WINDOW}",
        f"SELECT window, sum(x) FROM s WHERE k = 'a  b' GROUP BY {WINDOW}",
        f"SELECT window, sum(x) FROM s WHERE k = 'it\\'s' GROUP BY {WINDOW}",
        f'SELECT window, sum(x) FROM s WHERE k = "it\'s" OR k = "`a`" GROUP BY {WINDOW}',
        f"SELECT window, k = 'a' AS is_a, count(*) FROM s GROUP BY {WINDOW}, k = 'a'",
        f"SELECT window, k = 'A' AS is_a, count(*) FROM s GROUP BY {WINDOW}, k = 'A'",
        f"SELECT max(x + 1), max(x+1), max(x + 1L), max(x + 1.0), max(x + /* one */ 1) FROM s GROUP BY {WINDOW}",
    )


def test_many_different_groupings_in_one_run_are_kept_apart(spark: Any) -> None:
    rows = [(i * 7 * SECOND, i * 31 % 101, None if i % 9 == 0 else f"k{i % 4}") for i in range(150)]
    Case(spark, stream("ts timestamp, x int, k string", rows)).same(
        *(f"SELECT window, x % {i} AS r, k, sum(x) FROM s GROUP BY {WINDOW}, x % {i}, k" for i in range(1, 36)),
        *(
            f"SELECT window, x % {i} AS r, count(k) FROM s WHERE x > {i} GROUP BY {WINDOW}, x % {i}"
            for i in range(1, 6)
        ),
        f"SELECT window, sum(x) FROM s GROUP BY {WINDOW}",
    )


@pytest.mark.parametrize("cut", ["jvm", "workers", "driver"])
def test_two_streams_are_answered_in_one_run(spark: Any, cut: Any) -> None:
    engine = weft.Engine(spark, cut=cut)
    first = stream("ts timestamp, x int", [(i * SECOND, i) for i in range(100)], name="first_one")
    second = stream("At timestamp_ntz, x double", [(i * MINUTE, i / 2) for i in range(100)], name="Second")
    texts = {
        "a": f"SELECT window, sum(x) AS t FROM first_one GROUP BY {WINDOW}",
        "b": "SELECT window, sum(x) AS t FROM second GROUP BY window(at, '10 minutes', '5 minutes')",
    }
    for one in (first, second):
        engine.stream(one.name, one.frame(spark), event_time=one.event_time)
        one.frame(spark).createOrReplaceTempView(one.name)
    engine.sql("\n".join(f"CREATE VIEW {name} AS {text};" for name, text in texts.items()))
    answers = engine.run()
    for name, text in texts.items():
        theirs = Rows.of(spark.sql(text))
        outcome = compare(asked(text, 2), Rows.of(answers[name]), theirs)
        assert outcome.difference is None and outcome.rows > 1, outcome.difference


def test_seventy_predicates_that_overlap_are_kept_apart(spark: Any) -> None:
    rows = [(i * SECOND, i * 31 % 140, i % 4) for i in range(400)]
    Case(spark, stream("ts timestamp, x int, k int", rows)).same(
        *(
            f"SELECT window, k, sum(x), count(*) FROM s WHERE x BETWEEN {i} AND {2 * i + 9} GROUP BY {WINDOW}, k"
            for i in range(70)
        )
    )


def test_predicates_that_make_every_row_a_case_of_its_own_go_into_the_partials(spark: Any) -> None:
    rows = [(i * SECOND, i * 7919 % 4096, i % 5) for i in range(1500)]
    bits = [f"(x & {1 << b}) <> 0" for b in range(12)]
    case = Case(spark, stream("ts timestamp, x int, k int", rows, partitions=3))
    queries = (
        *(f"SELECT window, k, sum(x), max(x), avg(x) FROM s WHERE {bit} GROUP BY {WINDOW}, k" for bit in bits),
        f"SELECT window, {', '.join(f'count(*) FILTER (WHERE {bit}) AS b{i}' for i, bit in enumerate(bits))} "
        f"FROM s GROUP BY {WINDOW}",
    )
    assert "in the partials" in case.engine(*queries)[0].explain()
    case.same(*queries)


def test_what_looks_like_a_placeholder_in_a_string_or_comment_is_none(spark: Any) -> None:
    rows = [(i * 20 * SECOND, i, i % 2) for i in range(40)]
    Case(spark, stream("ts timestamp, x int, k int", rows)).same(
        f"SELECT concat('__agg_0 __key_0 __window', max(x)) AS c, k FROM s GROUP BY {WINDOW}, k",
        f"SELECT max(x) /* __agg_7 */ + 1 AS c FROM s GROUP BY {WINDOW}",
    )


def test_a_query_that_cannot_be_written_leaves_nothing_behind_and_stops_no_other(spark: Any, tmp_path: Path) -> None:
    engine = weft.Engine(spark).stream("s", spark.sql("SELECT timestamp_seconds(id) AS ts, id FROM range(9)"), "ts")
    group = "FROM s GROUP BY window(ts, '1 minute')"
    engine.sql(f"""
        -- name: good
        SELECT max(id) + 1 AS x {group};
        -- name: zero
        SELECT max(id) / min(id * 0) AS x {group};
        -- name: span_and_zero
        SELECT max(ts) - min(ts) AS span, max(id) / min(id * 0) AS x {group};
        -- name: twice
        SELECT max(id) + 1 AS x, min(id) AS X {group}
    """)
    answers = engine.run()
    answers.write(str(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["query=good"]
    assert sorted(answers.failures) == ["span_and_zero", "twice", "zero"]
    assert "two columns are called x" in str(answers.failures["twice"])
    assert spark.read.parquet(str(tmp_path / "out" / "query=good")).collect() == [(9,)]


def test_create_or_replace_changes_what_is_asked(spark: Any) -> None:
    engine = weft.Engine(spark).stream("s", spark.sql("SELECT timestamp_seconds(id) AS ts, id FROM range(9)"), "ts")
    engine.sql("CREATE VIEW a AS SELECT max(id) AS x FROM s GROUP BY window(ts, '1 minute')")
    assert engine.sql("CREATE OR REPLACE VIEW A AS SELECT min(id) AS x FROM s GROUP BY window(ts, '1 minute')") == ["A"]
    assert engine.queries == ("A",)
    assert engine.run()["A"].collect() == [(0,)]


def test_the_same_query_asked_twice_is_answered_twice(spark: Any) -> None:
    rows = [(i * SECOND, i) for i in range(200)]
    text = f"SELECT window, sum(x) AS total FROM s GROUP BY {WINDOW}"
    Case(spark, stream("ts timestamp, x int", rows)).same(text, text, text.replace("total", "Total"), text.lower())


def test_queries_over_many_windows_share_slices_and_keep_their_own_edges(spark: Any) -> None:
    rows = [(i * 777_777, i * 31 % 101, i % 3) for i in range(600)]
    windows = [(r, s) for s in (1, 2, 3, 5, 7, 30) for r in (s, 2 * s, 4 * s, 4 * s + 1, 10 * s)]
    Case(spark, stream("ts timestamp, x int, k int", rows, partitions=2)).same(
        *(
            f"SELECT window, k, sum(x), max(x), min(x), count(*) FROM s "
            f"GROUP BY window(ts, '{r} seconds', '{s} seconds'), k"
            for r, s in windows
        )
    )


# -------------------------------------------------------------------------------------- names and forms


def test_columns_are_named_and_typed_as_spark_names_and_types_them(spark: Any) -> None:
    rows = [(i * SECOND, i * 0.5, f"s{i % 3}", i) for i in range(50)]
    Case(spark, stream("ts timestamp, Price double, symBol string, qty int", rows)).same(
        f"SELECT SUM(qty), sum(QTY), Count(*), count(1), MAX(price) - min(PRICE) FROM s GROUP BY {WINDOW}",
        f"SELECT window, SYMBOL, mean(qty), bit_or(qty) FROM s GROUP BY {WINDOW}, symbol",
        f"SELECT window.start, window.end, upper(symbol), round(max(price), 1), max(price) FROM s "
        f"GROUP BY {WINDOW}, upper(symbol)",
        f"SELECT window AS window, max(qty) AS `window end`, max(qty) AS qty FROM s GROUP BY {WINDOW}",
        f"SELECT max(qty), max(qty), 1, 'x', 1.50, NULL AS nothing FROM s GROUP BY {WINDOW}",
        f"SELECT sum(qty) FILTER (WHERE symbol = 's1'), any(qty > 3), count_if(qty > 3) FROM s GROUP BY {WINDOW}",
        f"SELECT s.symBol, max(s.qty) FROM s GROUP BY {WINDOW}, s.symBol",
        f"SELECT CASE WHEN qty > 9 THEN 'hi' ELSE 'lo' END, max(qty) FROM s "
        f"GROUP BY {WINDOW}, CASE WHEN qty > 9 THEN 'hi' ELSE 'lo' END",
        f"SELECT {WINDOW}, max(qty) FROM s GROUP BY {WINDOW}",
        f"SELECT {WINDOW}.start, max(qty) FROM s GROUP BY {WINDOW}",
    )


def test_group_by_all_ordinals_and_aliases_mean_what_spark_means(spark: Any) -> None:
    rows = [(i * SECOND, i, "abc"[i % 3]) for i in range(50)]
    Case(spark, stream("ts timestamp, x int, k string", rows)).same(
        f"SELECT {WINDOW} AS w, upper(k) AS u, sum(x) FROM s GROUP BY ALL",
        f"SELECT {WINDOW}, k, sum(x) AS total FROM s GROUP BY ALL HAVING total > 10",
        f"SELECT k, {WINDOW}, sum(x) FROM s GROUP BY 2, 1",
        f"SELECT {WINDOW} AS w, x % 2 AS odd, count(*) FROM s GROUP BY w, odd",
        f"SELECT x % 2 AS k, count(*) FROM s GROUP BY {WINDOW}, k, x % 2",
        f"SELECT sum(x) FROM s GROUP BY k, {WINDOW}",
        f"SELECT k || '!' AS shout, k FROM s GROUP BY {WINDOW}, k HAVING count(*) > 1",
    )


def test_having_may_ask_for_what_the_select_list_does_not_hold(spark: Any) -> None:
    rows = [(i * SECOND, i * 31 % 47, "abc"[i % 3]) for i in range(400)]
    Case(spark, stream("ts timestamp, x int, k string", rows)).same(
        f"SELECT window, k FROM s GROUP BY {WINDOW}, k HAVING max(x) > 45 AND k <> 'b'",
        f"SELECT window, sum(x) AS t FROM s GROUP BY {WINDOW} HAVING t > 100 AND count(*) > 30",
        f"SELECT max(x) FROM s GROUP BY {WINDOW} HAVING window.start > TIMESTAMP'1970-01-01 00:01:00'",
        f"SELECT window, avg(x) FROM s GROUP BY {WINDOW} HAVING max(x) IS NULL",
        f"SELECT window, count(*) FROM s GROUP BY {WINDOW} HAVING bool_or(k = 'a') AND min(k) IN ('a', 'b')",
    )


def test_columns_named_like_our_own_parts_do_no_harm(spark: Any) -> None:
    rows = [(i * SECOND, i, i * 2, i % 3, i % 2, i % 5) for i in range(100)]
    Case(spark, stream("ts timestamp, start int, end int, slice int, __key_0 int, __agg_0 int", rows)).same(
        f"SELECT window.start, slice, max(start), max(`end`) FROM s GROUP BY {WINDOW}, slice",
        f"SELECT __key_0, sum(__agg_0), min(slice) FROM s WHERE __agg_0 > 1 GROUP BY {WINDOW}, __key_0",
        f"SELECT slice AS __agg_0, start % 2 AS __key_0, count(*) AS __window FROM s "
        f"GROUP BY {WINDOW}, slice, start % 2",
    )


def test_unusual_keys_and_arguments_are_taken_as_spark_takes_them(spark: Any) -> None:
    rows = [(i * 10 * SECOND, i, "ab"[i % 2]) for i in range(60)]
    Case(spark, stream("ts timestamp, x int, k string", rows)).same(
        f"SELECT k, count(*) FROM s GROUP BY {WINDOW}, k, k",
        f"SELECT window, ts, count(*) FROM s GROUP BY {WINDOW}, ts",
        f"SELECT 'all' AS scope, count(*) FROM s GROUP BY {WINDOW}, 'all'",
        f"SELECT window, k FROM s GROUP BY {WINDOW}, k",
        f"SELECT 1 AS one FROM s GROUP BY {WINDOW}",
        f"SELECT sum(1), count(NULL), max('x'), avg(2), sum(1.5), min(true), count(x, k) FROM s GROUP BY {WINDOW}",
        f"SELECT (x + 1) * 2 AS y, ((max(x))) FROM s GROUP BY {WINDOW}, ((x + 1) * 2)",
        f"SELECT max(x) FROM s WHERE (((x > 3))) AND true GROUP BY {WINDOW}",
        f"SELECT -- why\n max(x) /* what; */ FROM s GROUP BY {WINDOW} -- the end",
    )


def test_fields_of_structs_elements_of_arrays_and_dotted_names_can_be_asked_for(spark: Any) -> None:
    base = stream("ts timestamp, x int", [(i * 10 * SECOND, i) for i in range(60)]).frame(spark)
    frame = base.selectExpr(
        "ts",
        "named_struct('price', x, 'sym', concat('s', x % 3)) AS trade",
        "array(x, x * 2) AS sizes",
        "map('a', x) AS tags",
        "x AS `dotted.name`",
    )
    texts = [
        f"SELECT window, trade.sym, sum(trade.price), max(s.trade.price) FROM s GROUP BY {WINDOW}, trade.sym",
        f"SELECT sum(sizes[1]), max(tags['a']), min(sizes[0]) FROM s WHERE size(sizes) = 2 GROUP BY {WINDOW}",
        f"SELECT `dotted.name` % 2, max(`dotted.name`) FROM s GROUP BY {WINDOW}, `dotted.name` % 2",
    ]
    engine = weft.Engine(spark)
    engine.stream("s", frame, event_time="ts")
    names = engine.sql(";\n".join(texts))
    answers = engine.run()
    frame.createOrReplaceTempView("s")
    for name, text in zip(names, texts, strict=True):
        theirs = Rows.of(spark.sql(text))
        outcome = compare(asked(text, len(theirs.schema.fields)), Rows.of(answers[name]), theirs)
        assert outcome.difference is None and outcome.rows > 1, f"{text}\n{outcome.difference}"


def test_columns_that_are_never_null_stay_so_in_the_answers(spark: Any) -> None:
    frame = spark.range(60).selectExpr("timestamp_seconds(id * 10) AS ts", "id", "id % 3 AS k", "id * 0.5D AS x")
    frame.createOrReplaceTempView("s")
    texts = [
        f"SELECT window, k, sum(id), count(*), max(x), bool_or(id > 3) FROM s GROUP BY {WINDOW}, k",
        "SELECT window.start, k + 1 AS next, sum(id) + 1 AS t FROM s GROUP BY window(ts, '1 minute'), k + 1",
        f"SELECT window AS w, k AS key, min(id) AS m, min_by(id, ts) AS f FROM s GROUP BY {WINDOW}, k",
        "SELECT coalesce(sum(id), 0L) AS c, k FROM s GROUP BY window(ts, '1 minute'), k HAVING count(*) > 1",
    ]
    engine = weft.Engine(spark)
    engine.stream("s", frame, event_time="ts")
    names = engine.sql(";\n".join(texts))
    answers = engine.run()
    for name, text in zip(names, texts, strict=True):
        theirs = Rows.of(spark.sql(text))
        outcome = compare(asked(text, len(theirs.schema.fields)), Rows.of(answers[name]), theirs)
        assert outcome.difference is None and outcome.rows > 1, f"{text}\n{outcome.difference}"


def test_an_answer_can_be_read_when_nothing_else_of_its_run_is_kept(spark: Any) -> None:
    one = stream("ts timestamp, x int", [(i * SECOND, i) for i in range(100)])
    engine = weft.Engine(spark)
    engine.stream("s", one.frame(spark), event_time="ts")
    engine.sql(f"-- name: q\nSELECT window, sum(x) FROM s GROUP BY {WINDOW}")
    frame = engine.run()["q"]
    gc.collect()
    first = Rows.of(frame)
    engine.sql("-- name: later\nSELECT window, max(x) FROM s GROUP BY window(ts, '10 seconds')")
    engine.drop("q")
    answers = engine.run()
    assert list(answers) == ["later"] and len(Rows.of(answers["later"]).rows) == 10
    assert sorted(Rows.of(frame).rows) == sorted(first.rows) and len(first.rows) == 4


@pytest.fixture
def trades(spark: Any) -> Iterator[Case]:
    rows = [(i * 10 * SECOND, f"sym{i % 3}", i * 31 % 47) for i in range(100)]
    yield Case(spark, stream("ts timestamp, symbol string, price int", rows, name="Trades"))


@pytest.mark.parametrize(
    ("cql", "sql"),
    [
        (
            "SELECT MAX(price) FROM Trades [WINDOW 10 min SLIDE 2 min]",
            "SELECT max(price), window.start AS window_start, window.end AS window_end FROM Trades "
            "GROUP BY window(ts, '10 minutes', '2 minutes')",
        ),
        (
            "SELECT symbol, SUM(price) AS total FROM Trades [WINDOW 90 sec SLIDE 60 sec] WHERE price > 5 "
            "GROUP BY symbol HAVING SUM(price) > 20",
            "SELECT symbol, sum(price) AS total, window.start AS window_start, window.end AS window_end FROM Trades "
            "WHERE price > 5 GROUP BY window(ts, '90 seconds', '60 seconds'), symbol HAVING sum(price) > 20",
        ),
    ],
)
def test_the_cql_form_of_the_papers_gives_the_rows_of_its_sql(trades: Case, cql: str, sql: str) -> None:
    (ours,), (theirs,) = trades.weft(cql), trades.spark_rows(sql)
    assert isinstance(ours, Rows), ours
    outcome = compare(asked(sql, len(theirs.schema.fields)), ours, theirs)
    assert outcome.difference is None and outcome.rows > 10, outcome.difference
