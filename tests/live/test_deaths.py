"""A driver that dies at any point of a batch: the next one loses nothing and repeats nothing."""

from __future__ import annotations

import itertools
import os
import random

import pytest

from live.driven import SECOND, Collecting, Driven, outlive
from live.live_cases import BEGIN, Case, disordered, model, queries_of, sql
from weft.errors import WeftError
from weft.job import segments
from weft.job.checkpoint import Checkpoint
from weft.job.history import History
from weft.job.lease import FencedError, Lease
from weft.job.outbox import Outbox
from weft.slicing.time_window import TimeWindow
from weft.step import answer_files

LATENESS = 20 * SECOND


class DiedError(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def before(target, name):
    """Dies before the call does anything."""

    def install(patch, death):
        original = getattr(target, name)

        def dying(*arguments, **named):
            death()
            return original(*arguments, **named)

        patch.setattr(target, name, dying)

    return install


def after(target, name):
    """Dies when the call has done its work, and nobody knows."""

    def install(patch, death):
        original = getattr(target, name)

        def dying(*arguments, **named):
            done = original(*arguments, **named)
            death()
            return done

        patch.setattr(target, name, dying)

    return install


POINTS = {
    "before the start is written down": before(History, "start"),
    "after the start is written down": after(History, "start"),
    "after a plan is written down": after(History, "keep_plan"),
    "before answers are written": before(answer_files.AnswerFiles, "take"),
    "in the middle of the answers": after(answer_files.PackWriter, "add"),
    "before the state is written": before(segments, "write"),
    "after the state is written": after(segments, "write"),
    "before the commit": before(History, "commit"),
    "after the commit": after(History, "commit"),
    "in the middle of a commit": after(Checkpoint, "_write_beside"),
    "after a sink took the batch": before(Outbox, "_note"),
    "before a sink takes the batch": before(Collecting, "deliver"),
    "while old files are deleted": before(Checkpoint, "delete"),
}


SOME = list(POINTS) if os.environ.get("WEFT_LONG") else list(POINTS)[::2]
"""Every point with WEFT_LONG=1; every other one where time is short."""


@pytest.mark.parametrize("point", SOME)
def test_a_death_at_any_point_loses_nothing_and_repeats_nothing(spark, tmp_path, monkeypatch, point):
    queries, batches = queries_of(5), disordered(5, 30 * SECOND)
    rnd = random.Random(point)
    naive = model(queries, LATENESS)
    sink = Collecting()
    fatal = {1 if "plan" in point else rnd.randint(1, 4)}
    calls = itertools.count(1)

    def death():
        if next(calls) in fatal:
            fatal.clear()
            fatal.add(next(calls) + rnd.randint(3, 12))
            deaths.append(point)
            raise DiedError

    deaths: list[str] = []
    POINTS[point](monkeypatch, death)
    driven = alive(spark, tmp_path, sink)
    driven.add({name: sql(query) for name, query in queries.items()})
    driven = outlive(driven, batches, DiedError, lambda: alive(spark, tmp_path, sink))
    alive(spark, tmp_path, sink)
    for rows in batches:
        naive.feed(rows)
    naive.drain()
    assert deaths, f"nothing died {point}"
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])


def test_a_drain_that_a_death_cut_short_is_finished_before_new_rows_are_looked_at(spark, tmp_path, monkeypatch):
    queries, batches = queries_of(5), disordered(5, 30 * SECOND)
    naive = model(queries, LATENESS)
    driven = Driven(spark, tmp_path, LATENESS)
    driven.add({name: sql(query) for name, query in queries.items()})
    for rows in batches[:-1]:
        naive.feed(rows)
        driven.feed(rows)

    def death(*_: object) -> None:
        raise DiedError

    with monkeypatch.context() as patch:
        patch.setattr(History, "commit", death)
        with pytest.raises(DiedError):
            driven.job.drain()
    naive.drain()
    again = Driven(spark, tmp_path, LATENESS, driven.sink)
    assert again.job.last.drained
    for name, query in naive.queries.items():
        assert again.rows(name) == query.answers, sql(queries[name])
    with pytest.raises(WeftError, match="drained"):
        again.feed(batches[-1])


def alive(spark, folder, sink):
    """The next driver; one that dies while it recovers is followed by another."""
    while True:
        try:
            return Driven(spark, folder, LATENESS, sink)
        except DiedError:
            continue


def test_a_driver_that_was_replaced_commits_nothing(spark, tmp_path):
    queries, batches = queries_of(5), disordered(5, 30 * SECOND)
    old = Driven(spark, tmp_path, LATENESS)
    old.add({name: sql(query) for name, query in queries.items()})
    old.feed(batches[0])
    new = Driven(spark, tmp_path, LATENESS, old.sink)
    with pytest.raises(FencedError, match="taken over"):
        old.feed(batches[1])
    new.feed(batches[1])
    assert new.job.last.epoch == new.job.lease.epoch


def test_a_commit_of_the_old_driver_at_the_last_moment_counts_and_is_taken_up(spark, tmp_path, monkeypatch):
    queries, batches = queries_of(6), disordered(6, 30 * SECOND)
    naive = model(queries, LATENESS)
    old = Driven(spark, tmp_path, LATENESS)
    old.add({name: sql(query) for name, query in queries.items()})
    naive.feed(batches[0])
    old.feed(batches[0])
    new = Driven(spark, tmp_path, LATENESS, old.sink)
    # the old one had looked at its lease before the new one came
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "check", lambda lease: None)
        old.feed(batches[1])
    naive.feed(batches[1])
    new.feed(batches[1])
    assert new.job.last.epoch == old.job.lease.epoch
    for rows in batches[2:]:
        naive.feed(rows)
        new.feed(rows)
    new.job.drain()
    naive.drain()
    for name, query in naive.queries.items():
        assert new.rows(name) == query.answers, sql(queries[name])


def test_an_old_driver_that_wakes_when_its_batch_is_long_forgotten_harms_nothing(spark, tmp_path, monkeypatch):
    queries = {"long": Case(TimeWindow(600 * SECOND, 60 * SECOND), None, True, ("sum(v)", "count(*)"))}
    rnd = random.Random(7)
    batches = [
        [(BEGIN + (number * 20 + rnd.randrange(20)) * SECOND, "a", rnd.randrange(100), 0.0) for _ in range(10)]
        for number in range(6)
    ]
    naive = model(queries, LATENESS)
    for rows in batches:
        naive.feed(rows)
    naive.drain()
    old = Driven(spark, tmp_path, LATENESS)
    old.add({name: sql(query) for name, query in queries.items()})
    commit = History.commit

    def commit_late(history, manifest):
        monkeypatch.setattr(History, "commit", commit)
        new = Driven(spark, tmp_path, LATENESS, old.sink)
        for rows in batches[:4]:
            new.feed(rows)
        return commit(history, manifest)

    monkeypatch.setattr(History, "commit", commit_late)
    with pytest.raises(FencedError, match="taken over"):
        old.feed(batches[0])
    last = Driven(spark, tmp_path, LATENESS, old.sink)
    for rows in batches[4:]:
        last.feed(rows)
    last.job.drain()
    assert last.rows("long") == naive.queries["long"].answers
