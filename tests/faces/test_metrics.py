"""Metrics, scraped over HTTP as Prometheus does."""

from __future__ import annotations

import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from weft.catalog import Status
from weft.cli.metrics import served
from weft.errors import WeftError


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
            "lag_seconds": None,
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
    assert ("weft_lag_seconds", "") not in told


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
