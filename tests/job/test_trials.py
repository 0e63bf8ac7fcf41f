"""A query that kills the process is found by the next ones; one that has left since does not hold its batch up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from live.driven import SECOND, Collecting, Driven, frame
from live.live_cases import disordered, model, queries_of, sql
from weft.job.checkpoint import Checkpoint
from weft.job.trials import REASON, Trial, Trials
from weft.spark.failures import JvmGoneError
from weft.spark.live import job

LATENESS = 20 * SECOND
BAD = "SELECT window.start, max(v) AS m FROM s GROUP BY window(ts, '10 seconds')"


class DiedError(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def deadly(monkeypatch, names: Sequence[str], death: Callable[[], BaseException]) -> None:
    """Have the process die whenever one of these queries is computed."""
    computed = job.Job._computed

    def dying(self, rows, ground, some):
        if self.last.batch >= 1 and not set(names).isdisjoint(some):
            raise death()
        return computed(self, rows, ground, some)

    monkeypatch.setattr(job.Job, "_computed", dying)


def live_through(driven: Driven, rows, number: int, restart: Callable[[], Driven]) -> tuple[Driven, int]:
    """Feed a batch until it is committed; how many processes died of it."""
    deaths = 0
    while driven.job.last.batch < number:
        try:
            driven.job.process(frame(driven.spark, rows), number)
        except (DiedError, JvmGoneError):
            deaths += 1
            driven = restart()
    return driven, deaths


@pytest.mark.parametrize("seen", [True, False], ids=["the JVM is seen to die", "the driver is killed"])
def test_a_query_that_kills_the_process_is_found_and_all_others_lose_nothing(spark, tmp_path, monkeypatch, seen):
    queries, batches = queries_of(5), disordered(5, 30 * SECOND)
    naive = model(queries, LATENESS)
    sink = Collecting()
    driven = Driven(spark, tmp_path, LATENESS, sink)
    driven.add({name: sql(query) for name, query in queries.items()})
    for rows in batches[:2]:
        driven.feed(rows)
    driven.add({"bad": BAD})
    with monkeypatch.context() as patch:
        deadly(patch, ["bad"], lambda: Py4JNetworkError("the JVM is gone") if seen else DiedError())
        driven, deaths = live_through(driven, batches[2], 2, lambda: Driven(spark, tmp_path, LATENESS, sink))
    assert deaths == (2 if seen else 4), "the new one is suspected first, and tried alone"
    (entry,) = driven.catalog.entries("refused")
    assert (entry.name, REASON in entry.reason) == ("bad", True)
    for rows in batches[3:]:
        driven.feed(rows)
    driven.job.drain()
    for rows in batches:
        naive.feed(rows)
    naive.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])


@pytest.mark.parametrize("how", ["drop", "pause"])
def test_a_query_that_has_left_since_leaves_the_batch_that_was_started(spark, tmp_path, monkeypatch, how):
    queries, batches = queries_of(5), disordered(5, 30 * SECOND)
    naive = model(queries, LATENESS)
    sink = Collecting()
    driven = Driven(spark, tmp_path, LATENESS, sink)
    driven.add({name: sql(query) for name, query in queries.items()})
    driven.add({"bad": BAD})
    for rows in batches[:2]:
        driven.feed(rows)
    with monkeypatch.context() as patch:
        deadly(patch, ["bad"], DiedError)
        with pytest.raises(DiedError):
            driven.job.process(frame(driven.spark, batches[2]), 2)
        getattr(driven.catalog, how)("bad")
    driven = Driven(spark, tmp_path, LATENESS, sink)
    with monkeypatch.context() as patch:
        deadly(patch, ["bad"], DiedError)
        driven.feed(batches[2])
    assert driven.job.last.left == ["bad"]
    driven = Driven(spark, tmp_path, LATENESS, sink)
    for rows in batches[3:]:
        driven.feed(rows)
    driven.job.drain()
    for rows in batches:
        naive.feed(rows)
    naive.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])


def test_a_query_of_the_last_plan_that_cannot_be_bound_any_more_is_refused_and_all_others_go_on(spark, tmp_path):
    queries, batches = queries_of(5), disordered(5, 30 * SECOND)
    naive = model(queries, LATENESS)
    sink = Collecting()
    driven = Driven(spark, tmp_path, LATENESS, sink)
    driven.add({name: sql(query) for name, query in queries.items()})
    driven.add({"bad": BAD})
    for rows in batches[:2]:
        driven.feed(rows)
    for plan in (tmp_path / "weft" / "plans").iterdir():
        record = json.loads(plan.read_text())
        record["queries"]["bad"] = record["queries"]["bad"].replace("max(v)", "max(nosuch)")
        plan.write_text(json.dumps(record))
    driven = Driven(spark, tmp_path, LATENESS, sink)
    assert [entry.name for entry in driven.catalog.entries("refused")] == ["bad"]
    for rows in batches[2:]:
        driven.feed(rows)
    driven.job.drain()
    for rows in batches:
        naive.feed(rows)
    naive.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])


def processes_until_found(folder: Path, names: Sequence[str], new: set[str], culprit: str, *, fatal: bool) -> int:
    """How many processes die until the culprit is found, and nobody else is blamed."""
    deaths = 0
    while True:
        trials = Trials(Checkpoint(str(folder)))

        def attempt(some: Sequence[str], trials: Trials = trials) -> None:
            if culprit in some:
                if fatal:
                    trials.died()
                raise DiedError

        try:
            found = trials.culprit(7, names, new, attempt)
            if found:
                assert found == {culprit: REASON}
                return deaths
            trials.begin(Trial(7, list(names)))
            attempt(names)
        except DiedError:
            deaths += 1


@pytest.mark.parametrize("culprit", ["q0", "q77", "q199"])
def test_deaths_narrow_two_hundred_suspects_down(tmp_path, culprit):
    names = [f"q{number}" for number in range(200)]
    assert processes_until_found(tmp_path / "a", names, set(), culprit, fatal=True) <= 10
    assert processes_until_found(tmp_path / "b", names, set(), culprit, fatal=False) <= 12
    assert processes_until_found(tmp_path / "c", names, {culprit}, culprit, fatal=True) == 2


def test_one_death_and_an_error_that_was_told_accuse_nobody(tmp_path):
    names = ["a", "b"]

    def attempt(_: Sequence[str]) -> None:
        raise AssertionError("nobody is suspected")

    first = Trials(Checkpoint(str(tmp_path)))
    first.begin(Trial(3, names))
    second = Trials(Checkpoint(str(tmp_path)))
    assert second.culprit(3, names, (), attempt) == {}
    second.begin(Trial(3, names))
    second.failed()
    third = Trials(Checkpoint(str(tmp_path)))
    assert third.culprit(3, names, (), attempt) == {}
