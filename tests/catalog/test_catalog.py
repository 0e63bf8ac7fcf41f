"""The catalog: states of queries, seeding, history, status; the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from weft.catalog import Catalog, Heartbeat, is_running
from weft.catalog.catalog import FIRST_WINDOWS
from weft.catalog.database import CatalogError
from weft.catalog.status import QueryFigures
from weft.errors import QueriesError, UseError
from weft.query.sparksql import parse_file

HOURLY = "CREATE VIEW hourly AS SELECT count(*) AS n FROM trades GROUP BY window(ts, '1 hour')"
DAILY = "CREATE VIEW daily AS SELECT max(price) AS p FROM trades GROUP BY window(ts, '1 day')"
UNNAMED = "SELECT min(price) AS p FROM trades GROUP BY window(ts, '5 minutes')"


def states(catalog: Catalog) -> dict[str, str]:
    return {entry.name: entry.state for entry in catalog.entries()}


def test_an_added_query_is_pending_until_the_job_accepts_it(catalog: Catalog) -> None:
    (entry,) = catalog.add(HOURLY)
    assert (entry.name, entry.sql, entry.state, entry.batch) == ("hourly", HOURLY, "pending", None)
    assert catalog.accept("hourly", 12)
    (entry,) = catalog.entries()
    assert (entry.state, entry.batch) == ("active", 12)


def test_a_refused_query_keeps_the_reason(catalog: Catalog) -> None:
    catalog.add(HOURLY)
    assert catalog.refuse("hourly", "there is no stream trades")
    (entry,) = catalog.entries("refused")
    assert entry.reason == "there is no stream trades"
    assert not catalog.accept("hourly", 1), "refused is for ever"
    (again,) = catalog.add(HOURLY)
    assert again.id != entry.id


def test_a_refused_query_can_be_dropped_and_is_gone_from_the_list(catalog: Catalog) -> None:
    catalog.add(HOURLY)
    catalog.refuse("hourly", "too large")
    assert [entry.state for entry in catalog.drop("hourly")] == ["dropped"]
    assert states(catalog) == {"hourly": "dropped"}


def test_an_active_query_can_still_be_refused_by_the_job(catalog: Catalog) -> None:
    catalog.add(HOURLY)
    catalog.accept("hourly", 1)
    assert catalog.refuse("hourly", "overflow")
    assert states(catalog) == {"hourly": "refused"}


def test_the_version_rises_with_every_change_of_a_query(catalog: Catalog) -> None:
    seen = [catalog.version()]
    changes = (
        lambda: catalog.add(HOURLY),
        lambda: catalog.accept("hourly", 3),
        lambda: catalog.pause("hourly"),
        lambda: catalog.resume("hourly"),
        lambda: catalog.refuse("hourly", "no"),
        lambda: catalog.add(DAILY),
        lambda: catalog.drop("daily"),
    )
    for change in changes:
        change()
        seen.append(catalog.version())
    assert seen == sorted(set(seen))
    catalog.put_status({"state": "running"})
    catalog.record_plan(1, 0, {})
    assert catalog.version() == seen[-1], "what the job says is no change"


def test_a_query_that_is_dropped_before_the_job_looks_is_not_accepted(catalog: Catalog) -> None:
    catalog.add(HOURLY)
    catalog.drop("hourly")
    assert not catalog.accept("hourly", 1)
    assert states(catalog) == {"hourly": "dropped"}


def test_a_name_that_was_given_away_meanwhile_is_not_accepted_for_the_other(catalog: Catalog) -> None:
    (first,) = catalog.add(HOURLY)
    catalog.drop("hourly")
    (second,) = catalog.add(HOURLY.replace("1 hour", "2 hours"))
    assert not catalog.accept("hourly", 1, id=first.id)
    assert not catalog.refuse("hourly", "no", id=first.id)
    assert catalog.accept("hourly", 1, id=second.id)


def test_many_are_accepted_at_once_but_not_those_that_left_meanwhile(catalog: Catalog) -> None:
    entries = catalog.add(f"{HOURLY}; {DAILY}; {UNNAMED}")
    catalog.drop("daily")
    (other,) = catalog.add(DAILY)
    catalog.accept_all(entries, 5)
    assert [(entry.name, entry.state) for entry in catalog.entries("pending", "active")] == [
        ("hourly", "active"),
        ("q3", "active"),
        ("daily", "pending"),
    ]
    assert other.state == "pending"


def test_a_resumed_query_is_for_the_job_to_accept_again(catalog: Catalog) -> None:
    catalog.add(HOURLY)
    catalog.accept("hourly", 1)
    assert [entry.state for entry in catalog.pause("hourly")] == ["paused"]
    assert [entry.state for entry in catalog.resume("hourly")] == ["pending"]
    catalog.accept("hourly", 9)
    assert catalog.entries()[0].batch == 9


def test_names_are_found_in_any_letter_case(catalog: Catalog) -> None:
    catalog.add(HOURLY)
    with pytest.raises(QueriesError, match="HOURLY"):
        catalog.add(HOURLY.replace("hourly", "HOURLY"))
    assert [entry.name for entry in catalog.drop("Hourly")] == ["hourly"]


def test_create_or_replace_drops_the_query_of_its_name(catalog: Catalog) -> None:
    catalog.add(HOURLY)
    catalog.add(HOURLY.replace("CREATE", "CREATE OR REPLACE").replace("1 hour", "2 hours"))
    assert [(entry.state, "2 hours" in entry.sql) for entry in catalog.entries()] == [
        ("dropped", False),
        ("pending", True),
    ]


@pytest.mark.parametrize("before", ["pending", "active", "paused"])
def test_a_refused_successor_leaves_the_query_of_its_name_as_it_was(catalog: Catalog, before: str) -> None:
    catalog.add(HOURLY)
    if before != "pending":
        catalog.accept("hourly", 3)
    if before == "paused":
        catalog.pause("hourly")
    was = catalog.entries()[0]
    catalog.add(HOURLY.replace("CREATE", "CREATE OR REPLACE").replace("1 hour", "2 hours"))
    assert catalog.refuse("hourly", "it has other columns")
    restored, refused = catalog.entries()
    assert (restored.id, restored.state, restored.batch, restored.sql) == (was.id, before, was.batch, was.sql)
    assert (refused.state, refused.reason) == ("refused", "it has other columns")
    assert [change.action for change in catalog.changes()][-3:] == ["added", "refused", "restored"]
    assert [entry.id for entry in catalog.drop("hourly")] == [was.id], "the live one of the two"


@pytest.mark.parametrize("before", ["active", "paused"])
def test_refused_successors_in_a_row_leave_the_first_query_as_it_was(catalog: Catalog, before: str) -> None:
    successor = HOURLY.replace("CREATE", "CREATE OR REPLACE")
    catalog.add(HOURLY)
    catalog.accept("hourly", 3)
    if before == "paused":
        catalog.pause("hourly")
    was = catalog.entries()[0]
    catalog.add(successor)
    catalog.add(successor)
    assert catalog.refuse("hourly", "bad"), "the second successor, before anybody looked at the first"
    assert catalog.refuse("hourly", "bad"), "the first one, which came back"
    catalog.add(successor)
    assert catalog.refuse("hourly", "bad")
    catalog.add(successor)
    catalog.pause("hourly")
    catalog.resume("hourly")
    assert catalog.refuse("hourly", "bad")
    restored, *others = catalog.entries()
    assert (restored.id, restored.state, restored.batch) == (was.id, before, was.batch)
    assert {entry.state for entry in others} == {"refused"}


def test_a_query_that_fails_later_brings_nothing_back(catalog: Catalog) -> None:
    catalog.add(HOURLY)
    catalog.add(HOURLY.replace("CREATE", "CREATE OR REPLACE").replace("1 hour", "2 hours"))
    catalog.accept("hourly", 3)
    catalog.refuse("hourly", "batch 4: division by zero")
    assert [entry.state for entry in catalog.entries()] == ["dropped", "refused"]


def test_first_windows_are_those_of_the_plan_that_a_query_came_with(catalog: Catalog) -> None:
    catalog.add(f"{HOURLY}; {DAILY}")
    catalog.accept("hourly", 0)
    catalog.record_plan(1, 0, {})
    catalog.accept("daily", 7)
    assert catalog.first_windows() == {}, "accepted, but not planned yet"
    catalog.record_plan(2, 7, {FIRST_WINDOWS: {"hourly": 5, "daily": 60}})
    catalog.record_plan(3, 9, {FIRST_WINDOWS: {"hourly": 8, "daily": 90}})
    _, daily = catalog.entries()
    assert catalog.first_windows() == {daily.id: 60}


def test_queries_without_a_name_are_numbered_around_those_there_are(catalog: Catalog) -> None:
    names = [catalog.add(UNNAMED)[0].name for _ in range(3)]
    assert names == ["q1", "q2", "q3"]
    for entry in catalog.entries():
        (query,) = parse_file(entry.sql)
        assert query.name == entry.name, "the statement gives its name again"


def test_a_bad_query_leaves_nothing_behind(catalog: Catalog) -> None:
    before = catalog.version()
    with pytest.raises(QueriesError) as caught:
        catalog.add(f"{HOURLY}; SELECT count(*) FRM trades")
    assert "^" in str(caught.value)
    assert (catalog.entries(), catalog.version(), catalog.changes()) == ([], before, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda catalog: catalog.drop("daily", "hourli"), "there is no query hourli; did you mean hourly?"),
        (lambda catalog: catalog.resume("daily", "hourly"), "query daily is active, so it cannot be resumed"),
        (lambda catalog: catalog.pause("hourly", "gone"), "query gone is dropped, so it cannot be paused"),
    ],
)
def test_what_cannot_be_changed_is_named_and_nothing_is_changed(catalog: Catalog, change: object, message: str) -> None:
    catalog.add(f"{HOURLY}; {DAILY}; {DAILY.replace('daily', 'gone')}")
    catalog.drop("gone")
    catalog.accept("daily", 1)
    before = catalog.entries()
    with pytest.raises(UseError) as caught:
        change(catalog)  # type: ignore[operator]
    assert str(caught.value) == message
    assert catalog.entries() == before


def test_the_first_file_seeds(catalog: Catalog) -> None:
    assert not catalog.is_seeded()
    assert not catalog.seed(parse_file(f"{HOURLY}; {UNNAMED}"))
    assert catalog.is_seeded()
    assert states(catalog) == {"hourly": "pending", "q2": "pending"}


def test_the_same_file_again_is_fine_whatever_was_changed_since(catalog: Catalog) -> None:
    file = parse_file(f"{HOURLY};\n{UNNAMED}")
    catalog.seed(file)
    assert not catalog.seed(parse_file(f"-- with a comment\n{HOURLY} ;\n\n{UNNAMED}"))
    catalog.add(DAILY)
    catalog.drop("hourly")
    moved = catalog.seed(file)
    assert str(moved) == "added to the file: hourly; missing in the file: daily"
    assert states(catalog) == {"hourly": "dropped", "q2": "pending", "daily": "pending"}, "the catalog rules"


def test_a_file_that_says_what_the_catalog_says_is_fine(catalog: Catalog) -> None:
    catalog.seed(parse_file(HOURLY))
    catalog.add(DAILY)
    assert not catalog.seed(parse_file(f"{DAILY}; {HOURLY}"))


def test_an_edited_file_is_an_error_that_names_the_differences(catalog: Catalog) -> None:
    catalog.seed(parse_file(f"{HOURLY}; {UNNAMED}; {DAILY}"))
    edited = f"{HOURLY.replace('1 hour', '2 hours')}; {DAILY}; {DAILY.replace('daily', 'weekly')}"
    with pytest.raises(UseError) as caught:
        catalog.seed(parse_file(edited))
    message = str(caught.value)
    assert "added to the file: weekly; missing in the file: q2; changed in the file: hourly" in message
    assert "weft add" in message
    assert states(catalog) == {"hourly": "pending", "q2": "pending", "daily": "pending"}


def test_white_space_inside_a_string_is_a_change(catalog: Catalog) -> None:
    text = "CREATE VIEW v AS SELECT count(*) AS n FROM t WHERE s = 'a b' GROUP BY window(ts, '1 hour')"
    catalog.seed(parse_file(text))
    catalog.seed(parse_file(text.replace(" WHERE", "\n  WHERE")))
    with pytest.raises(UseError, match="changed in the file: v"):
        catalog.seed(parse_file(text.replace("a b", "a  b")))


def test_a_seed_that_clashes_with_an_added_query_seeds_nothing(catalog: Catalog) -> None:
    catalog.add(DAILY)
    with pytest.raises(UseError, match="has a query daily already"):
        catalog.seed(parse_file(f"{HOURLY}; {DAILY}"))
    assert states(catalog) == {"daily": "pending"}
    assert not catalog.is_seeded()


def test_the_history_tells_who_came_and_went_and_when(catalog: Catalog) -> None:
    catalog.seed(parse_file(HOURLY))
    catalog.accept("hourly", 0)
    catalog.add(DAILY)
    catalog.refuse("daily", "too large")
    catalog.pause("hourly")
    catalog.drop("hourly")
    told = [(change.action, change.name, change.batch, change.note) for change in catalog.changes()]
    assert told == [
        ("seeded", "hourly", None, None),
        ("accepted", "hourly", 0, None),
        ("added", "daily", None, None),
        ("refused", "daily", None, "too large"),
        ("paused", "hourly", None, None),
        ("dropped", "hourly", None, None),
    ]
    versions = [change.version for change in catalog.changes()]
    assert versions == sorted(set(versions))


def test_figures_of_queries_are_kept_of_those_that_take_most_time(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert catalog.figures() == {}
    monkeypatch.setattr("weft.catalog.catalog.MOST_FIGURES", 2)
    told = {
        f"q{number}": QueryFigures(
            answers=number, rows=7, seconds=number / 2, state_bytes=9, lag_seconds=None, answered_at=1.5
        )
        for number in range(4)
    }
    catalog.put_figures(told)
    catalog.put_figures(told)
    assert catalog.figures() == {"q3": told["q3"], "q2": told["q2"]}


def test_plans_are_kept_and_a_replayed_one_takes_its_place(catalog: Catalog) -> None:
    catalog.record_plan(1, 0, {"trees": [["a"]]})
    catalog.record_plan(4, 7, {"trees": [["a", "b"]]})
    catalog.record_plan(4, 8, {"trees": [["b", "a"]]})
    assert [(plan.version, plan.batch, plan.plan["trees"]) for plan in catalog.plans()] == [
        (1, 0, [["a"]]),
        (4, 8, [["b", "a"]]),
    ]


def test_the_status_is_what_was_last_said(catalog: Catalog) -> None:
    assert catalog.status() is None
    catalog.put_status({"state": "starting"})
    catalog.put_status({"state": "running", "rows": 5, "watermark": None, "errors": [{"at": 1.0, "message": "ü"}]})
    status = catalog.status()
    assert status is not None
    heartbeat = status.pop("heartbeat")
    assert status == {"state": "running", "rows": 5, "watermark": None, "errors": [{"at": 1.0, "message": "ü"}]}
    assert is_running({**status, "heartbeat": heartbeat}, heartbeat + 1)
    assert not is_running({**status, "heartbeat": heartbeat}, heartbeat + 60)


def test_a_heartbeat_goes_on_while_a_batch_takes_long_and_tells_the_end(catalog: Catalog) -> None:
    with Heartbeat(catalog, {"state": "starting"}, every=0.02) as heart:
        heart.say({"state": "running", "batch": 3})
        beats: set[float] = set()
        deadline = time.monotonic() + 20
        while len(beats) < 3 and time.monotonic() < deadline:
            status = catalog.status()
            assert status is not None
            if status["state"] == "running":
                beats.add(status["heartbeat"])
    assert len(beats) == 3
    ended = catalog.status()
    assert ended is not None and (ended["state"], ended["batch"]) == ("stopped", 3)


def test_a_catalog_that_is_away_for_a_while_does_not_stop_the_job(tmp_path: Path) -> None:
    folder, away = tmp_path / "here", tmp_path / "away"
    folder.mkdir()
    with Catalog.open(f"sqlite:///{folder}/catalog.db") as catalog:
        with Heartbeat(catalog, {"state": "running", "batch": 1}, every=0.01) as heart:
            catalog.close()
            folder.rename(away)
            time.sleep(0.1)
            heart.say({"state": "running", "batch": 2})
            away.rename(folder)
        ended = catalog.status()
    assert ended is not None and ended["batch"] == 2


@pytest.mark.parametrize(("said", "error", "state"), [("running", ValueError, "failed"), ("drained", None, "drained")])
def test_the_last_heartbeat_tells_how_it_ended(
    catalog: Catalog, said: str, error: type[Exception] | None, state: str
) -> None:
    def run() -> None:
        with Heartbeat(catalog, {"state": said}):  # type: ignore[typeddict-item]
            if error is not None:
                raise error

    if error is None:
        run()
    else:
        with pytest.raises(error):
            run()
    ended = catalog.status()
    assert ended is not None and ended["state"] == state


def test_a_reopened_catalog_holds_what_it_held(url: str) -> None:
    with Catalog.open(url) as first:
        first.add(HOURLY)
        uid, version = first.uid(), first.version()
    with Catalog.open(url) as second:
        assert (second.uid(), second.version(), states(second)) == (uid, version, {"hourly": "pending"})


def test_a_catalog_of_a_newer_weft_is_left_alone(catalog: Catalog, url: str) -> None:
    from sqlalchemy import update

    from weft.catalog.tables import CATALOG

    with catalog._database.write() as connection:
        connection.execute(update(CATALOG).values(format=99))
    with pytest.raises(CatalogError, match="newer Weft"):
        Catalog.open(url)


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("nothing of the kind, but long enough to be looked at" * 100)
    with pytest.raises(CatalogError, match="not a database"):
        Catalog.open(f"sqlite:///{tmp_path}/catalog.db")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="is there such a folder"):
        Catalog.open(f"sqlite:///{tmp_path}/no/catalog.db")
