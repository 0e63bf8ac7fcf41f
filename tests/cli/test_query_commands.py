"""``weft add``, ``drop``, ``pause``, ``resume``, ``queries`` and ``status``, with and without a running job."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from weft.catalog import Catalog
from weft.catalog.catalog import FIRST_WINDOWS
from weft.catalog.status import QueryFigures
from weft.cli.queries import in_own_text

HOURLY = "CREATE VIEW hourly AS SELECT count(*) AS n FROM trades GROUP BY window(ts, '1 hour')"
DAILY = "CREATE VIEW daily AS SELECT max(price) AS p FROM trades GROUP BY window(ts, '1 day')"
ELSEWHERE = "CREATE VIEW elsewhere AS SELECT count(*) AS n FROM quotes GROUP BY window(ts, '1 day')"

Weft = Callable[..., Any]


def states(catalog: Catalog) -> dict[str, str]:
    return {entry.name: entry.state for entry in catalog.entries()}


def test_add_waits_until_the_job_answers(weft: Weft, job: Catalog) -> None:
    done = weft("add", HOURLY, "--checkpoint", "state")
    (entry,) = job.entries()
    assert (done.code, done.out) == (0, f"hourly is answered from batch {entry.batch} on\n")
    assert entry.state == "active"


def test_add_takes_a_file_or_standard_input(weft: Weft, job: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("more queries.sql").write_text(f"{HOURLY};\n{DAILY};")
    assert weft("add", "more queries.sql", "--checkpoint", "state").code == 0
    monkeypatch.setattr("sys.stdin", StringIO("SELECT sum(price) FROM trades GROUP BY window(ts, '1 hour')"))
    assert weft("add", "-", "--checkpoint", "state").out.startswith("q1 is answered from batch ")
    assert states(job) == {"hourly": "active", "daily": "active", "q1": "active"}


def test_a_query_that_the_job_refuses_is_bad_use_and_the_others_go_on(weft: Weft, job: Catalog) -> None:
    done = weft("add", f"{HOURLY}; {ELSEWHERE}", "--checkpoint", "state")
    assert done.code == 2
    assert done.out.startswith("hourly is answered from batch ")
    assert done.err == "weft: query elsewhere: there is no such stream\n"
    assert states(job) == {"hourly": "active", "elsewhere": "refused"}


def test_a_bad_query_is_shown_with_a_caret_and_nothing_is_written(weft: Weft, job: Catalog) -> None:
    done = weft("add", HOURLY.replace("count(*)", "count(*"), "--checkpoint", "state")
    assert done.code == 2
    assert "^" in done.err
    assert job.entries() == []


def test_what_the_job_refuses_is_shown_where_it_stands_in_the_users_own_text() -> None:
    text = "\n  SELECT max(x)\n FROM t GROUP BY window(ts, '1 hour');\n-- name: b\nSELECT 1"
    at = text.index("SELECT")
    told = {"line 1, column 12": "line 2, column 14", "line 2, column 7": "line 3, column 7"}
    for before, after in told.items():
        assert in_own_text(f"query q1: no column x\n  {before}:\n    SELECT max(x)", text, at) == (
            f"query q1: no column x\n  {after}:\n    SELECT max(x)"
        )


@pytest.mark.parametrize("command", ["check", "add"])
def test_an_empty_file_of_queries_is_bad_use(weft: Weft, command: str) -> None:
    Path("nothing.sql").write_text("\ufeff-- later\n ;\n")
    done = weft(command, "nothing.sql")
    assert done.code == 2
    assert "there is no query in nothing.sql" in done.err


def test_a_byte_order_mark_before_a_file_does_no_harm(weft: Weft) -> None:
    Path("queries.sql").write_text(f"\ufeff{HOURLY}")
    assert weft("check", "queries.sql").out == "1 queries over trades are fine\n"


def test_a_bad_query_is_shown_before_the_job_is_looked_for(weft: Weft) -> None:
    done = weft("add", "SELECT 1", "--checkpoint", "nowhere")
    assert done.code == 2
    assert "FROM is missing" in done.err


def test_without_a_job_a_query_waits_for_the_next_start(weft: Weft, state: Catalog) -> None:
    done = weft("add", HOURLY, "--checkpoint", "state")
    assert done.code == 0
    assert done.out == "no job is running with this checkpoint: pending for the next start: hourly\n"
    assert states(state) == {"hourly": "pending"}


def test_a_job_that_was_killed_is_said_to_be_gone(weft: Weft, state: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as past:
        past.setattr("weft.catalog.catalog.time.time", lambda: 1_000_000.0)
        state.put_status({"state": "running", "batch": 3})
    done = weft("add", HOURLY, "--checkpoint", "state")
    assert done.code == 0
    assert "no job is running with this checkpoint; the last one was heard of" in done.out
    assert "not heard of for" in weft("status", "--checkpoint", "state").out
    assert json.loads(weft("status", "--checkpoint", "state", "--json").out)["running"] is False


def test_a_job_that_does_not_answer_in_time_is_a_failure(weft: Weft, state: Catalog) -> None:
    state.put_status({"state": "running"})
    done = weft("add", HOURLY, "--checkpoint", "state", "--timeout", "300 ms")
    assert done.code == 1
    assert "has not decided about hourly within 300 ms" in done.err
    assert states(state) == {"hourly": "pending"}


def test_add_need_not_wait(weft: Weft, state: Catalog) -> None:
    state.put_status({"state": "running"})
    done = weft("add", HOURLY, "--checkpoint", "state", "--no-wait")
    assert (done.code, done.out) == (0, "hourly pending, until a job's next batch\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", HOURLY), "say which job: its --checkpoint DIR"),
        (("add", HOURLY, "--checkpoint", "stat"), "no job has been started with the checkpoint stat"),
        (("add", "missing.sql", "--checkpoint", "state"), "cannot read missing.sql"),
        (("add", "/* nothing */ ;", "--checkpoint", "state"), "there is no query in it"),
        (("add", HOURLY, "--checkpoint", "state", "--timeout", "soon"), "cannot read 'soon' as a duration"),
        (("add", HOURLY, "--checkpoint", "state", "--timeout", "soon"), "a number of seconds, such as 20"),
        (("add", HOURLY, "--config", "none.yaml"), "there is no file none.yaml"),
        (("drop", "--checkpoint", "state"), "say which queries"),
        (("drop", "dayly", "--checkpoint", "state"), "there is no query dayly; did you mean daily?"),
        (("pause", "dayly", "--checkpoint", "state"), "there is no query dayly; did you mean daily?"),
        (("resume", "daily", "--checkpoint", "state"), "query daily is pending, so it cannot be resumed"),
        (("add", DAILY, "--checkpoint", "state"), "daily"),
        (("queries", "--checkpoint", "state", "--catalog", "mysql://x:hidden@y/z"), "no catalog in mysql"),
    ],
)
def test_bad_use_is_told_with_exit_code_2(weft: Weft, state: Catalog, words: tuple[str, ...], message: str) -> None:
    state.add(DAILY)
    done = weft(*words)
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())
    assert "hidden" not in done.err
    assert states(state) == {"daily": "pending"}


def test_a_catalog_that_cannot_be_reached_is_a_failure_without_its_password(weft: Weft, state: Catalog) -> None:
    done = weft("status", "--checkpoint", "state", "--catalog", "postgresql://ada:hidden@127.0.0.1:1/weft")
    assert done.code == 1
    assert "postgresql://ada:***@127.0.0.1:1/weft" in done.err
    assert "hidden" not in done.err + done.out


def test_drop_pause_and_resume_say_from_when_on(weft: Weft, job: Catalog) -> None:
    weft("add", f"{HOURLY}; {DAILY}", "--checkpoint", "state")
    assert weft("pause", "hourly", "--checkpoint", "state").out == "hourly paused, from the next batch on\n"
    assert states(job)["hourly"] == "paused"
    assert weft("resume", "hourly", "--checkpoint", "state").out.startswith("hourly is answered from batch ")
    assert (
        weft("drop", "hourly", "daily", "--checkpoint", "state").out
        == "hourly, daily dropped, from the next batch on\n"
    )
    assert states(job) == {"hourly": "dropped", "daily": "dropped"}


def test_all_queries_are_paused_and_resumed_at_once(weft: Weft, state: Catalog) -> None:
    state.add(f"{HOURLY}; {DAILY}")
    out = weft("pause", "--all", "--checkpoint", "state").out
    assert out == "hourly, daily paused, when a job starts: none is running\n"
    assert weft("resume", "--all", "--no-wait", "--checkpoint", "state").code == 0
    assert states(state) == {"hourly": "pending", "daily": "pending"}


def test_queries_lists_states_and_reasons(weft: Weft, state: Catalog) -> None:
    state.add(f"{HOURLY}; {DAILY}; {ELSEWHERE}; {DAILY.replace('daily', 'gone')}")
    state.accept("hourly", 1234)
    state.refuse("elsewhere", "there is no stream quotes\n  there is trades")
    state.drop("gone")
    lines = [line.split() for line in weft("queries", "--checkpoint", "state").out.splitlines()]
    assert lines[0][:2] == ["query", "state"]
    assert [line[:2] for line in lines[1:]] == [["hourly", "active"], ["daily", "pending"], ["elsewhere", "refused"]]
    assert lines[1][2:4] == ["1,234", "-"]
    assert lines[3][-5:] == ["there", "is", "no", "stream", "quotes"]


def test_people_are_told_the_first_window_of_a_query_that_came_later(weft: Weft, state: Catalog) -> None:
    state.add(f"{HOURLY}; {DAILY}")
    state.accept("daily", 7)
    state.record_plan(2, 7, {FIRST_WINDOWS: {"daily": 1_700_000_000_000_000}})
    lines = weft("queries", "--checkpoint", "state").out.splitlines()
    assert "2023-11-14 22:13:20" in lines[2] and "2023-11-14" not in lines[1]
    told = json.loads(weft("queries", "--checkpoint", "state", "--json").out)
    assert [query["first_window"] for query in told] == [None, 1_700_000_000_000_000]


def test_a_refused_successor_is_listed_beside_the_query_that_goes_on(weft: Weft, state: Catalog) -> None:
    state.add(HOURLY)
    state.accept("hourly", 7)
    state.add(HOURLY.replace("CREATE", "CREATE OR REPLACE"))
    state.refuse("hourly", "it has other columns")
    lines = [line.split() for line in weft("queries", "--checkpoint", "state").out.splitlines()[1:]]
    assert [line[:3] for line in lines] == [["hourly", "active", "7"], ["hourly", "refused", "-"]]


def test_queries_as_json_are_all_there_is_on_stdout(weft: Weft, state: Catalog) -> None:
    state.add(f"{HOURLY}; {DAILY}")
    state.drop("daily")
    told = json.loads(weft("queries", "--checkpoint", "state", "--json").out)
    assert [(query["name"], query["state"], query["sql"]) for query in told] == [
        ("hourly", "pending", HOURLY),
        ("daily", "dropped", DAILY),
    ]


def test_the_history_has_changes_and_plans(weft: Weft, state: Catalog) -> None:
    state.add(HOURLY)
    state.accept("hourly", 5)
    state.record_plan(1, 5, {"groupings": [["hourly"]]})
    out = weft("queries", "--checkpoint", "state", "--history").out
    told = [line.split() for line in out.splitlines()[1:]]
    assert [line[3:] for line in told[:2]] == [["added", "hourly", "-"], ["accepted", "hourly", "5"]]
    assert told[2][2:] == ["plan", "1", "5"]
    told = json.loads(weft("queries", "--checkpoint", "state", "--history", "--json").out)
    assert [change["action"] for change in told["changes"]] == ["added", "accepted"]
    assert told["plans"][0]["plan"] == {"groupings": [["hourly"]]}


def test_names_with_brackets_are_shown_as_they_are(weft: Weft, state: Catalog) -> None:
    state.add("-- name: [bold] x\nSELECT count(*) AS n FROM trades GROUP BY window(ts, '1 hour')")
    assert "[bold] x" in weft("queries", "--checkpoint", "state").out


def test_status_shows_the_figures_or_gives_them_as_json(weft: Weft, state: Catalog) -> None:
    assert "no job has run" in weft("status", "--checkpoint", "state").out
    assert json.loads(weft("status", "--checkpoint", "state", "--json").out) == {"running": False}
    state.put_status({"state": "running", "rows_per_second": 12345.0, "late_rows": 7})
    out = weft("status", "--checkpoint", "state").out
    assert "running" in out and "12,345/s" in out
    told = json.loads(weft("status", "--checkpoint", "state", "--json").out)
    assert (told["running"], told["late_rows"]) == (True, 7)
    assert told["heartbeat"] > 0


FIGURES: QueryFigures = {
    "answers": 1_234_567,
    "rows": 98_765,
    "seconds": 75.0,
    "state_bytes": 34_500_000,
    "lag_seconds": 12.5,
    "answered_at": 1_700_000_000.0,
}


def test_queries_and_status_show_the_figures_of_each_query(weft: Weft, state: Catalog) -> None:
    state.add(f"{HOURLY}; {DAILY}")
    state.accept("hourly", 7)
    state.put_status({"state": "running"})
    state.put_figures({"hourly": FIGURES})
    shown = ("1,234,567", "98,765", "1 min 15 s", "34.5 MB", "12.5 s", "2023-11-14 22:13:20")
    for command in ("queries", "status"):
        out = weft(command, "--checkpoint", "state").out
        assert all(figure in out for figure in shown), out
    told = {
        query["name"]: query["figures"] for query in json.loads(weft("queries", "--checkpoint", "state", "--json").out)
    }
    assert told == {"hourly": FIGURES, "daily": None}
    assert json.loads(weft("status", "--checkpoint", "state", "--json").out)["query_figures"] == {"hourly": FIGURES}


def test_the_job_is_found_through_the_settings_file(
    weft: Weft, state: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.add(HOURLY)
    Path("weft.yaml").write_text("checkpoint: state\nsource: {spec: 'kafka:t@${NOT_SET_HERE}'}\n")
    Path("deep/er").mkdir(parents=True)
    monkeypatch.chdir("deep/er")
    assert "hourly" in weft("queries").out
    monkeypatch.chdir(tmp_path)
    Path("weft.yaml").rename("other.yaml")
    assert "hourly" in weft("queries", "--config", "other.yaml").out
