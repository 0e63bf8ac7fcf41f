"""Rows later than allowed, against the naive model of semantics 4 and 5."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from live.driven import SECOND, Driven
from live.live_cases import disordered, model, queries_of, sql

CASES = st.tuples(st.integers(0, 2**32), st.integers(0, 40))


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CASES)
def test_rows_later_than_allowed_count_in_exactly_the_windows_that_are_open(spark, tmp_path_factory, case):
    seed, lateness = case
    check(spark, tmp_path_factory.mktemp("late"), seed, lateness * SECOND)


def check(spark, folder: Path, seed: int, lateness: int) -> None:
    queries, batches = queries_of(seed), disordered(seed, 60 * SECOND)
    naive = model(queries, lateness)
    driven = Driven(spark, folder, lateness)
    driven.add({name: sql(query) for name, query in queries.items()})
    late = 0
    for rows in batches:
        naive.feed(rows)
        driven.feed(rows)
        late += driven.job.last.counts["late"]
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, f"{sql(queries[name])} before the end"
    driven.job.drain()
    naive.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])
    assert late == naive.late


@pytest.mark.parametrize("seed", [1])
def test_a_restart_after_every_batch_changes_no_answer(spark, tmp_path, seed):
    queries, batches = queries_of(seed), disordered(seed, 30 * SECOND)
    naive = model(queries, 20 * SECOND)
    driven = Driven(spark, tmp_path, 20 * SECOND)
    driven.add({name: sql(query) for name, query in queries.items()})
    for rows in batches:
        naive.feed(rows)
        driven.feed(rows)
        driven = Driven(spark, tmp_path, 20 * SECOND, driven.sink)
    driven.job.drain()
    naive.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])
