"""The samples of ``deploy/``: well formed, and about metrics and options that there are."""

from __future__ import annotations

import re
import shlex
import urllib.request
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from cli.deployed import DEPLOY, dashboard, expressions, metrics_in_use, rules
from weft.catalog import Status
from weft.catalog.status import QueryFigures
from weft.cli.metrics import _COUNTERS, _GAUGES, served

FUNCTIONS = {"rate", "increase", "predict_linear", "time", "topk", "label_values"}
LABELS = {"state", "sink", "query", "instance", "job"}


def test_everything_that_they_ask_for_is_served() -> None:
    figures = QueryFigures(answers=1, rows=1, seconds=1.0, state_bytes=1, lag_seconds=1.0, answered_at=1.0)
    status: Any = {
        **dict.fromkeys((*_COUNTERS, *_GAUGES), 1),
        "state": "running",
        "watermark": 1,
        "batch_since": None,
        "sinks": {"console": {"state": "ok", "batch": 1, "waiting": 0, "since": None, "error": None}},
    }
    told: Status = status
    with (
        served(lambda: told, 0, queries=lambda: {"q": figures}) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer,
    ):
        families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
    assert metrics_in_use() <= families.keys()
    counters = {name for name, family in families.items() if family.type == "counter"}
    for text in expressions():
        for name in re.findall(r"\bweft_\w+", text):
            assert name.endswith("_total") == (name.removesuffix("_total") in counters), text


def test_expressions_are_balanced_and_use_known_functions_and_labels() -> None:
    for text in expressions():
        for opening, closing in ("()", "[]", "{}"):
            assert text.count(opening) == text.count(closing), text
        assert set(re.findall(r"(\w+)\(", text)) <= FUNCTIONS, text
        assert set(re.findall(r"(\w+)=~?\"", text)) <= LABELS, text


def test_rules_have_the_form_that_prometheus_wants() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) >= 10
    for rule in rules():
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[A-Za-z]\w*", rule["alert"])
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "0s"))
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}


def test_the_dashboard_has_panels_that_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    found = dashboard()
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    for panel in found["panels"]:
        place = panel["gridPos"]
        assert panel["title"] and panel["targets"] and panel["datasource"]["type"] == "prometheus"
        own = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not own & cells and max(x for x, _ in own) < 24
        cells |= own


def test_the_unit_runs_a_command_that_there_is(weft: Callable[..., Any]) -> None:
    unit = (DEPLOY / "systemd" / "weft@.service").read_text()
    command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert command is not None
    _, verb, *words = shlex.split(command[1])
    helped = weft(verb, "--help").out
    assert all(word in helped for word in words if word.startswith("--"))
    sections = re.findall(r"^\[(\w+)\]$", unit, re.MULTILINE)
    assert sections == ["Unit", "Service", "Install"]
