"""Queries that come and go while a stream runs: each is answered for its lifetime, no other notices."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from live.driven import SECOND, Driven
from live.live_cases import BEGIN, Case, case_of, close_case, naive_query, sql
from live.naive_stream import NaiveStream
from weft.catalog.database import CatalogError, Database
from weft.job.history import History
from weft.job.query_registry import QueryRegistry
from weft.optimize import planner
from weft.optimize.constants import Constants
from weft.plan.record import PlanRecord
from weft.slicing.time_window import TimeWindow

LATENESS = 5 * SECOND


def batch_of(rnd: random.Random, number: int, count: int = 40) -> list[tuple]:
    """Ten seconds of event time, with disorder within the allowed lateness."""
    instants = [number * 10 * SECOND + rnd.randrange(10 * SECOND) for _ in range(count)]
    late = [max(instant - rnd.choice((0, 0, 4 * SECOND)), 0) for instant in instants]
    return [(BEGIN + t, rnd.choice("abc"), rnd.randrange(100), rnd.random()) for t in late]


def random_changes(spark, folder: Path, seed: int, operations: int, restarts: float = 0.1) -> dict[str, int]:
    """Random adds and drops between random batches; gives how many of each there were."""
    rnd = random.Random(seed)
    driven = Driven(spark, folder, LATENESS)
    naive = NaiveStream(LATENESS, {})
    ended: dict[str, tuple[Case, object]] = {}
    cases: dict[str, Case] = {}
    done = {"add": 0, "drop": 0, "restart": 0, "from retained slices": 0}
    everything: list[tuple] = []
    number = 0
    while done["add"] + done["drop"] < operations:
        added: dict[str, Case] = {}
        for _ in range(rnd.choice((0, 1, 1, 2, 4))):
            live = [*cases, *added]
            if live and rnd.random() < 0.45:
                name = rnd.choice(live)
                driven.catalog.drop(name)
                if name in added:
                    del added[name]
                else:
                    ended[name] = (cases.pop(name), naive.queries.pop(name))
                done["drop"] += 1
            else:
                name = f"q{done['add']}"
                # some ask what others ask, many nearly the same
                kind = rnd.choice(("copy", "any", "close", "close", "close"))
                copied = rnd.choice(list(cases.values())) if cases and kind == "copy" else None
                added[name] = copied or (case_of(rnd) if kind == "any" else close_case(rnd))
                driven.add({name: sql(added[name])})
                done["add"] += 1
        if rnd.random() < restarts:
            driven = Driven(spark, folder, LATENESS, driven.sink)
            done["restart"] += 1
        rows = batch_of(rnd, number)
        seen, watermark = naive.largest, naive.watermark
        driven.feed(rows)
        for name, case in added.items():
            cases[name] = case
            first = driven.job.live.record.first.get(name)
            naive.queries[name] = naive_query(case, first)
            if seen is not None:
                assert first is not None
                assert first <= seen + 1
                if first <= seen:
                    done["from retained slices"] += 1
                    replay(naive, name, everything, watermark)
        naive.feed(rows)
        everything += rows
        number += 1
    driven.job.drain()
    naive.drain()
    for name, (case, query) in [*ended.items(), *((name, (cases[name], naive.queries[name])) for name in cases)]:
        assert driven.rows(name) == query.answers, f"{name} {sql(case)} first {query.first}"
    return done


def replay(naive: NaiveStream, name: str, rows: list[tuple], watermark: int | None) -> None:
    """What a query that is answered from retained slices has seen: all rows, in the windows that are open."""
    alone = NaiveStream(naive.lateness, {name: naive.queries[name]}, watermark)
    for row in rows:
        if naive.queries[name].passes(row):
            alone._count(naive.queries[name], row)


@pytest.mark.parametrize("seed", [7])
def test_every_query_is_answered_for_its_lifetime(spark, tmp_path, seed):
    done = random_changes(spark, tmp_path, seed, operations=24, restarts=0.2)
    assert done["from retained slices"]


def test_a_query_whose_slices_were_retained_is_answered_from_them(spark, tmp_path):
    driven = Driven(spark, tmp_path, LATENESS)
    long = Case(TimeWindow(60 * SECOND, 10 * SECOND), None, True, ("sum(v)", "count(*)"))
    driven.add({"long": sql(long)})
    rnd = random.Random(3)
    batches = [batch_of(rnd, number) for number in range(10)]
    for rows in batches[:8]:
        driven.feed(rows)
    short = Case(TimeWindow(30 * SECOND, 10 * SECOND), None, True, ("sum(v)",))
    odd = Case(TimeWindow(30 * SECOND, 7 * SECOND), None, True, ("sum(v)",))
    other = Case(TimeWindow(30 * SECOND, 10 * SECOND), None, True, ("max(v)",))
    driven.add({"short": sql(short), "odd": sql(odd), "other": sql(other)})
    largest = max(row[0] for rows in batches[:8] for row in rows)
    for rows in batches[8:]:
        driven.feed(rows)
    driven.job.drain()
    first = driven.job.live.record.first
    assert first["short"] < largest, "its keys, partials and edges were all kept"
    assert first["odd"] == first["other"] == largest + 1, (
        "slices straddle the edges of one, the other's max was not kept"
    )
    naive = NaiveStream(LATENESS, {"short": naive_query(short, first["short"])})
    watermark = max(row[0] for rows in batches[:8] for row in rows) - LATENESS
    replay(naive, "short", [row for rows in batches[:8] for row in rows], watermark)
    naive.watermark = watermark
    naive.largest = largest
    for rows in batches[8:]:
        naive.feed(rows)
    naive.drain()
    assert driven.rows("short") == naive.queries["short"].answers
    ids = {entry.id: entry.name for entry in driven.catalog.entries()}
    told = {ids[id]: start for id, start in driven.catalog.first_windows().items()}
    starts = {name: min(row[0] for row in driven.rows(name)) for name in ("short", "odd", "other")}
    assert told == starts, "people are told from which window on, but for the query that was there first"


WINDOW = TimeWindow(60 * SECOND, 10 * SECOND)
TOTAL = Case(WINDOW, None, True, ("sum(v)",))
COUNT = Case(WINDOW, None, True, ("count(*)",))
ABOVE = Case(WINDOW, 50, True, ("sum(v)",))


class Added:
    """A stream over eight batches of some queries, then other queries, then two batches more."""

    def __init__(self, spark, folder: Path, running: dict[str, Case]) -> None:
        self.spark, self.folder = spark, folder
        self.driven = Driven(spark, folder, LATENESS)
        rnd = random.Random(11)
        self.batches = [batch_of(rnd, number) for number in range(10)]
        self.rows: list[tuple] = []
        self.driven.add({name: sql(case) for name, case in running.items()})

    def feed(self, count: int) -> None:
        """Some batches more."""
        for _ in range(count):
            self.driven.feed(self.batches[0])
            self.rows += self.batches.pop(0)

    def restart(self) -> None:
        """The next driver."""
        self.driven = Driven(self.spark, self.folder, LATENESS, self.driven.sink)

    def add(self, **cases: Case) -> bool:
        """Queries are added, the stream goes to its end; whether all were answered from what was retained.

        Whether or not they were, each answer holds all rows of its window.
        """
        seen = max(row[0] for row in self.rows)
        self.driven.add({name: sql(case) for name, case in cases.items()})
        self.feed(len(self.batches))
        self.driven.job.drain()
        firsts = self.driven.job.live.record.first
        for name, case in cases.items():
            naive = NaiveStream(LATENESS, {name: naive_query(case, firsts[name])}, seen - LATENESS)
            naive.feed(self.rows)
            naive.drain()
            assert self.driven.rows(name) == naive.queries[name].answers, sql(case)
        return all(firsts[name] <= seen for name in cases)


def test_an_argument_that_was_evaluated_for_other_rows_does_not_answer_a_new_query(spark, tmp_path):
    stream = Added(spark, tmp_path, {"d": COUNT, "a": ABOVE})
    stream.feed(8)
    assert not stream.add(c=TOTAL)


def test_an_argument_that_was_evaluated_for_a_filter_does_not_answer_a_new_query(spark, tmp_path):
    both = Case(WINDOW, None, True, ("count(*)", "sum(v) FILTER (WHERE v % 2 = 0)"))
    stream = Added(spark, tmp_path, {"both": both})
    stream.feed(8)
    assert not stream.add(c=TOTAL)


@pytest.mark.parametrize("conditional", [False, True])
def test_a_key_that_was_evaluated_for_other_rows_does_not_answer_a_new_query(spark, tmp_path, monkeypatch, conditional):
    chosen = planner.choose_sharding
    monkeypatch.setattr(planner, "choose_sharding", lambda one: replace(chosen(one), conditional=conditional))
    stream = Added(spark, tmp_path, {"a": replace(COUNT, where=50), "d": replace(COUNT, by="v % 3")})
    stream.feed(8)
    (grouping,) = stream.driven.job.live.groupings.values()
    assert grouping.conditional is conditional, "both keys are in one grouping"
    assert not stream.add(c=COUNT)


def test_an_argument_that_was_evaluated_for_all_rows_answers_a_new_query_about_some(spark, tmp_path):
    stream = Added(spark, tmp_path, {"a": TOTAL, "d": replace(COUNT, where=50)})
    stream.feed(8)
    stream.restart()
    assert stream.add(c=ABOVE)


def test_an_argument_that_nobody_asked_for_in_between_answers_from_then_on(spark, tmp_path):
    stream = Added(spark, tmp_path, {"d": COUNT, "a": ABOVE, "c": TOTAL})
    stream.feed(3)
    stream.driven.catalog.drop("c")
    stream.feed(2)
    stream.driven.add({"c": sql(TOTAL)})
    stream.feed(3)
    stream.restart()
    since = stream.driven.job.live.record.first["c"]
    assert stream.add(e=TOTAL)
    assert stream.driven.job.live.record.first["e"] >= since


def test_slices_that_an_older_weft_retained_answer_no_new_query(spark, tmp_path):
    stream = Added(spark, tmp_path, {"a": TOTAL})
    stream.feed(8)
    for manifest in (tmp_path / "weft" / "batches").glob("??????????.json"):
        manifest.write_text(manifest.read_text().replace('"evaluated": true, ', ""))
    stream.restart()
    assert not stream.add(c=TOTAL)


def test_what_a_stopped_query_kept_answers_nobody_after_a_restart(spark, tmp_path):
    stream = Added(spark, tmp_path, {"d": COUNT, "a": ABOVE})
    stopped = sql(TOTAL).replace("sum(v) AS a0", "sum(v) AS a0, sum(10 / (v - 1000)) AS b")
    stream.driven.add({"broken": stopped})
    stream.feed(7)
    stream.batches[0] = [*stream.batches[0], (stream.batches[0][-1][0], "a", 1000, 0.0)]
    stream.feed(1)
    assert "broken" in stream.driven.job.last.failed
    stream.restart()
    assert not stream.add(c=TOTAL)


BAD_WHERE = "SELECT window.start, count(*) AS n FROM s WHERE 10 / v > 2 GROUP BY window(ts, '10 seconds')"
BAD_KEY = "SELECT window.start, 10 / v AS g, count(*) AS n FROM s GROUP BY window(ts, '10 seconds'), 10 / v"
GOOD = {"a": TOTAL, "d": replace(COUNT, by="v % 3")}


def without_zeros(rows: list[tuple]) -> list[tuple]:
    """Rows that divide anything."""
    return [(t, k, max(v, 1), x) for t, k, v, x in rows]


@pytest.mark.parametrize("batch", ["first", "later"])
def test_a_condition_or_key_that_a_value_stops_is_refused_by_name_and_all_others_go_on(spark, tmp_path, batch):
    stream = Added(spark, tmp_path, GOOD)
    stream.driven.add({"where": BAD_WHERE, "key": BAD_KEY})
    stream.batches = [without_zeros(rows) for rows in stream.batches]
    zero = 0 if batch == "first" else 3
    stream.batches[zero] = [*stream.batches[zero], (stream.batches[zero][0][0], "a", 0, 0.0)]
    stream.feed(6)
    refused(stream, "where", "key")


def test_a_condition_or_key_of_a_new_query_that_a_value_stops_is_refused_by_name_and_all_others_go_on(spark, tmp_path):
    stream = Added(spark, tmp_path, GOOD)
    stream.feed(3)
    stream.driven.add({"where": BAD_WHERE, "key": BAD_KEY})
    stream.batches[0] = [*stream.batches[0], (stream.batches[0][0][0], "a", 0, 0.0)]
    stream.feed(3)
    refused(stream, "where", "key")


def refused(stream: Added, *names: str) -> None:
    """These are refused for a division by zero, and the answers of the others are right."""
    entries = stream.driven.catalog.entries("refused")
    assert {entry.name for entry in entries} == set(names)
    assert all("zero" in entry.reason.lower() for entry in entries)
    assert set(stream.driven.job.live.record.queries) == set(GOOD)
    stream.driven.job.drain()
    naive = NaiveStream(LATENESS, {name: naive_query(case) for name, case in GOOD.items()})
    naive.feed(stream.rows)
    naive.drain()
    assert all(stream.driven.rows(name) == query.answers for name, query in naive.queries.items())


@contextmanager
def away() -> Iterator[None]:
    """No catalog can be reached."""

    def fail(_: Database) -> NoReturn:
        raise CatalogError("the catalog is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "read", fail)
        patch.setattr(Database, "write", fail)
        yield


def test_a_catalog_that_is_away_does_not_stop_the_stream(spark, tmp_path, caplog):
    stream = Added(spark, tmp_path, GOOD)
    stream.feed(3)
    stream.driven.add({"late": sql(COUNT)})
    with away():
        stream.feed(2)
    assert "late" not in stream.driven.job.live.record.queries
    assert [record.getMessage() for record in caplog.records].count(
        "the catalog is away: the catalog is away; the queries stay as they are until it is back"
    ) == 1
    stream.feed(1)
    assert "late" in stream.driven.job.live.record.queries
    assert not stream.driven.catalog.entries("pending")


def test_a_catalog_that_goes_while_a_plan_is_made_is_told_of_it_later(spark, tmp_path, monkeypatch):
    stream = Added(spark, tmp_path, GOOD)
    kept = History.keep_plan

    def keep_plan(history: History, record: PlanRecord) -> PlanRecord:
        outage.enter_context(away())
        return kept(history, record)

    with ExitStack() as outage:
        monkeypatch.setattr(History, "keep_plan", keep_plan)
        stream.feed(2)
    assert {entry.state for entry in stream.driven.catalog.entries()} == {"pending"}
    stream.feed(1)
    assert {(entry.state, entry.batch) for entry in stream.driven.catalog.entries()} == {("active", 0)}
    assert [(plan.version, plan.batch) for plan in stream.driven.catalog.plans()] == [(1, 0)]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_query_that_a_value_stops_while_the_catalog_is_away_is_refused_when_it_is_back(spark, tmp_path, restarted):
    stream = Added(spark, tmp_path, GOOD)
    stream.driven.add({"where": BAD_WHERE})
    stream.batches = [without_zeros(rows) for rows in stream.batches]
    stream.feed(2)
    stream.batches[0] = [*stream.batches[0], (stream.batches[0][0][0], "a", 0, 0.0)]
    with away():
        stream.feed(3)
    assert not stream.driven.catalog.entries("refused")
    if restarted:
        stream.restart()
    stream.feed(1)
    refused(stream, "where")


def test_a_query_that_would_cut_the_others_to_pieces_gets_slices_of_its_own(spark, tmp_path, monkeypatch):
    constants = tmp_path / "constants.json"
    Constants(merge=1e-3, row=1e-9, slice=1e-9).save(path=constants)
    monkeypatch.setenv("WEFT_CONSTANTS", str(constants))
    coarse, fine = (
        {f"q{slide}": Case(TimeWindow(slide * SECOND, slide * SECOND), None, True, ("sum(v)",)) for slide in slides}
        for slides in ((9, 11), (1, 2))
    )
    driven = Driven(spark, tmp_path / "checkpoint", LATENESS)
    naive = NaiveStream(LATENESS, {name: naive_query(case) for name, case in coarse.items()})
    driven.add({name: sql(case) for name, case in coarse.items()})
    rnd = random.Random(5)
    for number in range(6):
        if number == 3:
            driven.add({name: sql(case) for name, case in fine.items()})
            naive.queries |= {name: naive_query(case, naive.largest + 1) for name, case in fine.items()}
        rows = batch_of(rnd, number)
        driven.feed(rows)
        naive.feed(rows)
    assert [one.queries for one in driven.job.live.record.groupings] == [tuple(coarse), tuple(fine)]
    driven.job.drain()
    naive.drain()
    assert all(driven.rows(name) == query.answers for name, query in naive.queries.items())


def test_a_paused_query_is_silent_and_then_goes_on_with_a_whole_window(spark, tmp_path):
    driven = Driven(spark, tmp_path, LATENESS)
    case = Case(TimeWindow(20 * SECOND, 10 * SECOND), None, True, ("sum(v)",))
    driven.add({"q": sql(case), "other": sql(case)})
    rnd = random.Random(4)
    for number in range(4):
        driven.feed(batch_of(rnd, number))
    driven.catalog.pause("q")
    for number in range(4, 8):
        driven.feed(batch_of(rnd, number))
    driven.catalog.resume("q")
    for number in range(8, 12):
        driven.feed(batch_of(rnd, number))
    driven.job.drain()
    mine, others = driven.rows("q"), driven.rows("other")
    assert mine <= others, "what it says is right"
    missing = {row[0] for row in others - mine}
    assert missing, "windows of the pause are left out"
    assert max(missing) < max(row[0] for row in mine)


def test_a_plan_is_made_once_for_a_change_and_again_for_one_that_comes_meanwhile(spark, tmp_path, monkeypatch):
    made: list[int] = []
    wanted = QueryRegistry.wanted
    monkeypatch.setattr(QueryRegistry, "wanted", lambda self: made.append(1) or wanted(self))
    driven = Driven(spark, tmp_path, LATENESS)
    driven.add({"total": sql(TOTAL)})
    rnd = random.Random(11)
    batches = [batch_of(rnd, number) for number in range(5)]
    for rows in batches[:2]:
        driven.feed(rows)
    assert len(made) == 1, "that the queries were accepted is no change"
    accept_all = driven.catalog.accept_all

    def slow(entries, batch):
        monkeypatch.setattr(driven.catalog, "accept_all", accept_all)
        driven.add({"above": sql(ABOVE)})
        return accept_all(entries, batch)

    monkeypatch.setattr(driven.catalog, "accept_all", slow)
    driven.add({"count": sql(COUNT)})
    driven.feed(batches[2])
    assert set(driven.job.live.record.queries) == {"total", "count"}
    driven.feed(batches[3])
    assert set(driven.job.live.record.queries) == {"total", "count", "above"}
    driven.feed(batches[4])
    assert len(made) == 3
    assert {entry.state for entry in driven.catalog.entries()} == {"active"}
