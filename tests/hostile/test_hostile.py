"""One person's query never stops another's: whatever it asks for, wherever it fails, before and after a restart."""

from __future__ import annotations

import pytest

from hostile.kinds import KINDS, good_queries
from hostile.neighbours import Neighbourhood, batch_answers, rows_of, wrong

SHORT = [kind for kind in KINDS if kind.runs]
SHORTEST = [kind for kind in SHORT if kind.name not in {"divide", "long_value"}]
"""In a stream there are these too; each one more that fails in the middle of a run takes seconds."""


def test_no_hostile_query_costs_another_its_answers_in_a_run(spark, tmp_path):
    good = good_queries(6)
    rows = [row for batch in rows_of(3, trigger=1) for row in batch]
    expected, _ = batch_answers(spark, tmp_path / "alone", good, (), rows)
    found, got = batch_answers(spark, tmp_path / "beside", good, SHORTEST, rows)
    assert wrong(SHORTEST, got) == {}
    assert found == expected
    assert all(answers.total() for answers in expected.values()), "they have answers"


def test_no_hostile_query_costs_another_its_answers_in_a_stream(spark, tmp_path):
    good = good_queries(10)
    batches = rows_of(5, trigger=2)
    alone, beside = (Neighbourhood(spark, tmp_path / name, good) for name in ("alone", "beside"))
    beside.add(SHORT)
    for number, rows in enumerate(batches):
        if number == 3:
            beside.restart()
        alone.feed(rows)
        beside.feed(rows)
    assert wrong(SHORT, beside.got) == {}
    assert beside.answers() == alone.answers()
    assert all(answers.total() for answers in alone.answers().values()), "they have answers"


@pytest.mark.long
@pytest.mark.parametrize("moment", ["first", "later", "restarted"])
def test_no_hostile_query_costs_fifty_others_their_answers_whenever_it_fails(spark, tmp_path, moment):
    good = good_queries(50)
    batches = rows_of(5, trigger={"first": 0, "later": 2, "restarted": 3}[moment])
    alone, beside = (Neighbourhood(spark, tmp_path / name, good) for name in ("alone", "beside"))
    for number, rows in enumerate(batches):
        if number == (0 if moment == "first" else 1):
            beside.add(KINDS)
        if moment == "restarted":
            beside.restart()
        alone.feed(rows)
        beside.feed(rows)
    assert wrong(KINDS, beside.got) == {}
    assert beside.answers() == alone.answers()


@pytest.mark.long
def test_no_hostile_query_costs_fifty_others_their_answers_in_a_run(spark, tmp_path):
    good = good_queries(50)
    rows = [row for batch in rows_of(3, trigger=1) for row in batch]
    expected, _ = batch_answers(spark, tmp_path / "alone", good, (), rows)
    found, got = batch_answers(spark, tmp_path / "beside", good, KINDS, rows)
    assert wrong(KINDS, got) == {}
    assert found == expected


def test_there_are_at_least_forty_kinds():
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 40
