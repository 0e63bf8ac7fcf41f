"""The judge is judged: every kind of wrong answer is seen, and every answer that is right in its own way passes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from oracle.compare import NAN, Rows, compare, plain
from oracle.queries import Asked, Judged

SCHEMA = StructType([StructField("k", LongType()), StructField("v", DoubleType())])
EXACT = Asked("q", "", "", "", (Judged(), Judged()))
BOUNDED = Asked("q", "", "", "", (Judged(), Judged(tolerance=2)))
TIED = Asked("q", "", "", "", (Judged(), Judged(ties=2, largest=True)))
HAVING = Asked("q", "", "", "", (Judged(), Judged()), keep=2)


def differs(query: Asked, ours: list[tuple], spark: list[tuple]) -> bool:
    return compare(query, Rows(SCHEMA, ours), Rows(SCHEMA, spark)).difference is not None


def test_a_missing_an_extra_a_repeated_and_a_changed_row_are_seen() -> None:
    spark = [(1, 1.0), (1, 1.0), (2, NAN)]
    assert not differs(EXACT, [(2, NAN), (1, 1.0), (1, 1.0)], spark)
    for wrong in ([(1, 1.0), (2, NAN)], [*spark, (3, 1.0)], [*spark, (1, 1.0)], [(1, 1.0), (1, 1.5), (2, NAN)], []):
        assert differs(EXACT, wrong, spark), wrong


@pytest.mark.parametrize(
    "other",
    [
        StructType([StructField("K", LongType()), StructField("v", DoubleType())]),
        StructType([StructField("k", LongType(), nullable=False), StructField("v", DoubleType())]),
        StructType([StructField("k", DoubleType()), StructField("v", DoubleType())]),
        StructType([StructField("k", LongType())]),
    ],
    ids=["name", "nullability", "type", "number of columns"],
)
def test_a_schema_that_differs_is_seen(other: StructType) -> None:
    assert "schema" in str(compare(EXACT, Rows(other, []), Rows(SCHEMA, [])).difference)


def test_doubles_may_differ_by_their_bound_and_no_more() -> None:
    spark = [(1, 1.0, 1e-9), (1, 2.0, 1e-9), (2, NAN, NAN), (3, float("inf"), float("inf")), (4, None, None)]
    right = [(1, 2.0 + 9e-10), (1, 1.0 - 9e-10), (2, NAN), (3, float("inf")), (4, None)]
    assert not differs(BOUNDED, right, spark)
    for place, wrong in enumerate([(1, 2.0 + 2e-9), (1, 1.1), (2, 1.0), (3, 1e300), (4, 0.0)]):
        assert differs(BOUNDED, [*right[:place], wrong, *right[place + 1 :]], spark), wrong


def test_a_value_that_semantics_leaves_open_is_not_compared() -> None:
    assert not differs(BOUNDED, [(1, 7.0)], [(1, 5.0, -1.0)])
    assert not differs(BOUNDED, [(1, None)], [(1, 5.0, -1.0)])
    assert differs(BOUNDED, [(1, 7.0)], [(1, None, -1.0)])
    assert differs(BOUNDED, [(2, 7.0)], [(1, 5.0, -1.0)])


def test_any_value_of_the_tied_rows_is_right_and_no_other() -> None:
    spark = [(1, 5.0, [(3, 5.0), (9, 5.0), (9, 6.0), (None, 7.0)])]
    assert not differs(TIED, [(1, 6.0)], spark)
    assert differs(TIED, [(1, 7.0)], spark)
    assert differs(TIED, [(1, None)], spark)
    assert not differs(TIED, [(1, None)], [(1, None, [(None, 7.0)])])


def test_rows_too_close_for_having_to_call_may_be_there_or_not() -> None:
    spark = [(1, 1.0, True), (2, 2.0, None), (3, 3.0, False)]
    assert not differs(HAVING, [(1, 1.0)], spark)
    assert not differs(HAVING, [(1, 1.0), (2, 2.0)], spark)
    assert differs(HAVING, [(1, 1.0), (3, 3.0)], spark)
    assert differs(HAVING, [(2, 2.0)], spark)


def test_rows_are_paired_even_where_sorting_would_pair_them_wrongly() -> None:
    both = Asked("q", "", "", "", (Judged(tolerance=2), Judged(tolerance=3)))
    spark = [(1.0, 5.0, 1e-6, 1e-6), (1.0 + 1e-8, 4.0, 1e-6, 1e-6)]
    assert not differs(both, [(1.0 + 2e-8, 5.0), (1.0, 4.0)], spark)
    assert differs(both, [(1.0 + 2e-8, 4.0), (1.0, 4.0)], spark)


def test_arrow_values_become_plain_ones() -> None:
    assert plain(pa.array([float("nan"), -0.0, None])) == [NAN, 0.0, None]
    assert plain(pa.array([5, None], pa.timestamp("us", tz="UTC"))) == [5, None]
    assert plain(pa.array([{"a": 1, "b": None}, None])) == [(1, None), None]
    assert plain(pa.array([[1, 2], [], None, [3]])) == [(1, 2), (), None, (3,)]
