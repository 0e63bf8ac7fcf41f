"""Metrics, scraped over HTTP as Prometheus does."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from weft.catalog import Status
from weft.catalog.status import QueryFigures
from weft.cli.metrics import served
from weft.errors import WeftError


def figures(seconds: float, answers: int = 0) -> QueryFigures:
    return QueryFigures(
        answers=answers, rows=10, seconds=seconds, state_bytes=5, lag_seconds=None, answered_at=1_700_000_000.0
    )


def probed(port: int | None, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def scraped(port: int | None) -> dict[tuple[str, str], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_tells_the_status_of_the_moment() -> None:
    status: Status = {"state": "starting"}
    with served(lambda: status, 0) as port:
        assert scraped(port) == {
            ("weft_state", state): float(state == "starting")
            for state in ("starting", "running", "degraded", "stopping", "stopped", "drained", "failed")
        }
        status = {
            "state": "running",
            "rows": 42,
            "late_rows": 0,
            "batch_seconds": 0.5,
            "watermark": 1_700_000_000_500_000,
            "sinks": {
                "kafka:answers": {"state": "full", "batch": 7, "waiting": 5, "since": 1.0, "error": "refused"},
                "console": {"state": "ok", "batch": 12, "waiting": 0, "since": None, "error": None},
            },
        }
        told = scraped(port)
    assert told["weft_rows_total", ""] == 42
    assert told["weft_late_rows_total", ""] == 0
    assert told["weft_batch_seconds", ""] == 0.5
    assert told["weft_watermark_seconds", ""] == 1_700_000_000.5
    assert told["weft_sink_batch", "kafka:answers"] == 7
    assert (told["weft_sink_waiting", "kafka:answers"], told["weft_sink_away", "kafka:answers"]) == (5, 1)
    assert told["weft_sink_away", "console"] == 0
    assert (told["weft_state", "running"], told["weft_state", "starting"]) == (1, 0)
    assert told["weft_lag_seconds", ""] == pytest.approx(time.time() - 1_700_000_000.5, abs=60)


def test_queries_have_metrics_and_those_that_take_most_time_if_they_are_too_many() -> None:
    queries = {"slow": figures(3.0, answers=7), "slower": figures(5.0), "quick": figures(0.1)}
    with served(dict, 0, queries=lambda: queries, most=2) as port:
        told = scraped(port)
    assert told["weft_query_answers_total", "slow"] == 7
    assert told["weft_query_seconds_total", "slower"] == 5.0
    assert told["weft_query_rows_total", "slow"] == 10
    assert told["weft_query_state_bytes", "slow"] == 5
    assert told["weft_query_answered_at", "slow"] == 1_700_000_000
    assert ("weft_query_lag_seconds", "slow") not in told
    assert not any(label == "quick" for _, label in told)


def test_probes_tell_whether_the_job_lives_and_whether_it_is_ready() -> None:
    now = time.time()
    status: Status = {"state": "starting", "started": now}
    with served(lambda: status, 0, stuck_after=60) as port:
        assert probed(port, "/healthz") == (200, {"state": "starting", "reasons": []})
        assert probed(port, "/readyz") == (503, {"state": "starting", "reasons": ["it is starting"]})
        status = {"state": "running", "said_at": now, "batch_since": now - 1}
        assert probed(port, "/healthz") == probed(port, "/readyz") == (200, {"state": "running", "reasons": []})
        status = {**status, "outages": [{"what": "sink kafka", "since": now, "error": "refused"}]}
        assert probed(port, "/healthz")[0] == 200, "a restart brings back no broker"
        assert probed(port, "/readyz") == (503, {"state": "running", "reasons": ["sink kafka: refused"]})
        status = {"state": "running", "said_at": now, "batch_since": now - 3600}
        code, told = probed(port, "/healthz")
        assert (code, told["reasons"]) == (503, ["its batch has been under way for 1 h 0 min"])
        assert probed(port, "/readyz")[0] == 503
        status = {"state": "running", "said_at": now - 120}
        assert probed(port, "/healthz")[0] == 503
        status = {"state": "failed", "said_at": now}
        assert (probed(port, "/healthz")[0], probed(port, "/readyz")[0]) == (503, 503)


def test_other_paths_are_not_there() -> None:
    with served(dict, 0) as port, pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/queries", timeout=10)


def test_the_port_is_free_again_afterwards() -> None:
    with served(dict, 0) as port:
        pass
    with served(dict, port) as again:
        assert again == port


def test_nothing_is_served_unless_it_is_asked_for() -> None:
    with served(dict, None) as port:
        assert port is None


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with (
            pytest.raises(WeftError, match=f"127.0.0.1:{taken}: .*choose another with --metrics-port"),
            served(dict, taken),
        ):
            pass
