"""Logs: a line each, for people or as JSON, without secrets."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from weft.cli import logs
from weft.cli.others import OthersLog

LOG = logging.getLogger("weft.test")


def test_human_lines_have_time_level_message_and_fields(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "human")
    LOG.info("batch", extra=logs.fields(rows=5, seconds=0.123456789, sink="parquet: x"))
    LOG.debug("not this")
    (line,) = capsys.readouterr().err.splitlines()
    assert line[23:] == ' info    batch  rows=5 seconds=0.123457 sink="parquet: x"'


def test_json_lines_hold_one_object_each(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("debug", "json")
    LOG.debug("two\nlines", extra=logs.fields(rows=5))
    try:
        raise ValueError("why")
    except ValueError:
        LOG.exception("failed")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["level"], first["message"], first["rows"], first["logger"]) == ("debug", "two\nlines", 5, "weft.test")
    assert "ValueError: why" in second["error"]


@pytest.mark.parametrize("form", ["human", "json"])
def test_no_secret_is_logged_wherever_it_stands(capsys: pytest.CaptureFixture[str], form: str) -> None:
    logs.configure("info", form, ["engine", "engineer"])  # type: ignore[arg-type]
    LOG.info("login with %s", "engine", extra=logs.fields(url="postgresql://ada:engineer@db"))
    try:
        raise ValueError("bad password engine")
    except ValueError:
        LOG.exception("failed")
    err = capsys.readouterr().err
    assert "engine" not in err
    assert "ada:***@db" in err


def test_what_others_say_again_and_again_is_logged_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    now = 0.0
    others = OthersLog(clock=lambda: now)
    for second in range(100):
        now = float(second)
        others.take(f"%3|{second}.5|FAIL|rdkafka#producer-1| refused (after {second}ms in state CONNECT)")
        others.take("who knows")
    told = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert told.count("who knows") == 100
    assert [message for message in told if message != "who knows"] == [
        "FAIL: refused (after 0ms in state CONNECT)",
        *[f"FAIL: refused (after {second}ms in state CONNECT) (and 29 times before)" for second in (30, 60, 90)],
    ]


def test_lines_go_to_what_standard_error_is_at_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    logs.configure("info", "human")
    elsewhere = io.StringIO()
    monkeypatch.setattr(sys, "stderr", elsewhere)
    LOG.info("here")
    assert elsewhere.getvalue().endswith("here\n")
