"""``weft run``: what can be refused is refused before Spark starts, and help is plain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Weft = Callable[..., Any]
ASK = "SELECT sum(n) AS total FROM t GROUP BY window(ts, '1 hour')"


@pytest.fixture
def queries(tmp_path: Path) -> str:
    (tmp_path / "queries.sql").write_text(ASK)
    (tmp_path / "rows.csv").write_text("ts,n\n2024-01-01,1\n")
    return "queries.sql"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which starting Spark would be the mistake."""
    monkeypatch.setattr("weft.launch.session._opened", lambda *_: pytest.fail("Spark was started"))


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("ftp://host/x", "cannot write to ftp://; give a folder, or a URL that begins with s3://, s3a://"),
        ("s3a:/bucket/x", "write s3a://bucket/x"),
        ("s3://me:hush@bucket/x", "holds a password"),
    ],
)
def test_answers_cannot_go_to_what_is_no_place_for_them(
    weft: Weft, queries: str, tmp_path: Path, out: str, told: str
) -> None:
    done = weft("run", queries, "--source", "t=rows.csv", "--event-time", "ts", "--out", out)
    assert (done.code, told in done.err) == (2, True), done.err
    assert "hush" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queries.sql", "rows.csv"]


def test_rows_in_a_store_that_this_spark_lacks_are_refused_with_the_package_to_give(weft: Weft, queries: str) -> None:
    words = ("run", queries, "--source", "t=s3a://bucket/rows", "--event-time", "ts", "--out", "answers")
    done = weft(*words)
    assert done.code == 2
    assert "s3a://bucket/rows: Spark cannot reach s3a://" in done.err
    assert "say --packages org.apache.hadoop:hadoop-aws:3." in done.err


@pytest.mark.parametrize("where", ["--checkpoint", "--out", "--dead-letter"])
def test_a_live_job_says_before_spark_which_place_cannot_be(
    weft: Weft, queries: str, tmp_path: Path, where: str
) -> None:
    given = {"--checkpoint": "state", "--out": "answers", "--dead-letter": "bad"} | {where: "ftp://host/x"}
    words = [word for pair in given.items() for word in pair]
    (tmp_path / "rows").mkdir()
    done = weft("stream", queries, "--source", "t=rows", "--event-time", "ts", *words)
    assert done.code == 2
    assert f"{where}: ftp://host/x: Weft cannot write to ftp://" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queries.sql", "rows", "rows.csv"]


def test_a_checkpoint_that_spark_cannot_reach_is_refused_before_it_starts(
    weft: Weft, queries: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows").mkdir()
    done = weft(
        *("stream", queries, "--source", "t=s3://bucket/rows", "--event-time", "ts"),
        *("--checkpoint", "state", "--out", "answers"),
    )
    assert done.code == 2
    assert "s3://bucket/rows: Spark cannot reach s3a://" in done.err


def test_a_master_that_does_not_answer_is_told_at_once(weft: Weft, queries: str) -> None:
    words = ("--source", "t=rows.csv", "--event-time", "ts", "--out", "answers")
    done = weft("run", queries, *words, "--master", "spark://127.0.0.1:9")
    assert done.code == 1
    assert "no Spark master answers at spark://127.0.0.1:9" in done.err and "Connection refused" in done.err
    bad = weft("run", queries, *words, "--master", "spark://host")
    assert "write spark://HOST:PORT" in bad.err


def test_the_demo_says_which_extra_it_lacks(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cli.demo.NEEDED", ("weft_no_such_package",))
    done = weft("demo")
    assert done.code == 2
    assert "pip install 'weft[demo]'" in done.err


@pytest.mark.parametrize("command", ["run", "stream", "plan", "queries", "calibrate", "--help"])
def test_flags_are_shown_without_a_type(weft: Weft, command: str) -> None:
    done = weft(*([command] if command == "--help" else [command, "--help"]))
    assert "--help" in done.out and "<bool>" not in done.out


@pytest.mark.parametrize("command", ["run", "explain", "stream", "calibrate"])
def test_every_command_on_spark_has_the_same_options_for_it(weft: Weft, command: str) -> None:
    done = weft(command, "--help")
    assert {"--master", "--memory", "--conf", "--packages"} <= set(done.out.split())
