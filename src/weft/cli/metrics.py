"""The job's status over HTTP: ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz`` for whoever runs the job."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from heapq import nlargest
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from weft.catalog import Status
from weft.catalog.status import QueryFigures
from weft.cli.health import Health, alive, ready
from weft.errors import WeftError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Queries = Callable[[], Mapping[str, QueryFigures]]
STUCK_AFTER = 1800.0
MOST_QUERIES = 1000
"""Of so many queries there are metrics: of those that take most time, as Prometheus keeps a series for each."""

_COUNTERS = {
    "batches": "Batches that were committed.",
    "rows": "Rows that were read.",
    "late_rows": "Rows that no open window wanted.",
    "bad_rows": "Records that could not be read.",
    "rows_without_time": "Rows without event time.",
    "answers": "Answers that were committed.",
}
_GAUGES = {
    "rows_per_second": "Rows read a second, in the last batch.",
    "answers_per_second": "Answers a second, in the last batch.",
    "batch_seconds": "How long the last batch took.",
    "batch_rows": "Rows of the last batch.",
    "batch": "The last committed batch.",
    "state_bytes": "Bytes of state.",
    "trees": "Trees of the plan.",
    "queries": "Queries that are answered.",
    "paused": "Queries that are paused.",
    "catalog_version": "The version of the catalog that the plan follows.",
    "heartbeat": "When the job last said something, in seconds since the epoch.",
}
_STATES = ("starting", "running", "degraded", "stopping", "stopped", "drained", "failed")


_OF_QUERIES: dict[str, tuple[type[Metric], str]] = {
    "answers": (CounterMetricFamily, "Answers of a query that were committed."),
    "rows": (CounterMetricFamily, "Rows of the batches that a query took part in."),
    "seconds": (CounterMetricFamily, "A query's share of the time of batches, an estimate."),
    "state_bytes": (GaugeMetricFamily, "A query's share of the state."),
    "lag_seconds": (GaugeMetricFamily, "How long after its end a query's last window was answered."),
    "answered_at": (GaugeMetricFamily, "When a query last had an answer, in seconds since the epoch."),
}


class StatusCollector(Collector):
    """Turns the status of the moment into metrics, whenever they are asked for."""

    def __init__(self, status: Callable[[], Status], queries: Queries = dict, most: int = MOST_QUERIES) -> None:
        self._status = status
        self._queries = queries
        self._most = most

    def collect(self) -> Iterator[Metric]:
        """Every figure that the job has told so far."""
        status = self._status()
        for name, help in _COUNTERS.items():
            if (value := status.get(name)) is not None:
                yield CounterMetricFamily(f"weft_{name}", help, value=_number(value))
        for name, help in _GAUGES.items():
            if (value := status.get(name)) is not None:
                yield GaugeMetricFamily(f"weft_{name}", help, value=_number(value))
        if (watermark := status.get("watermark")) is not None:
            yield GaugeMetricFamily("weft_watermark_seconds", "The watermark, since the epoch.", value=watermark / 1e6)
            lag = time.time() - watermark / 1e6
            yield GaugeMetricFamily("weft_lag_seconds", "How far the watermark is behind the clock.", value=lag)
        if "batch_since" in status:
            since = status["batch_since"]
            lasts = 0.0 if since is None else time.time() - since
            yield GaugeMetricFamily("weft_batch_running_seconds", "How long a batch has been under way.", value=lasts)
        yield self._states(status)
        yield from self._sinks(status)
        yield from self._of_queries()

    def _states(self, status: Status) -> Metric:
        family = GaugeMetricFamily("weft_state", "1 for the state that the job is in.", labels=["state"])
        for state in _STATES:
            family.add_metric([state], float(status.get("state") == state))
        return family

    def _sinks(self, status: Status) -> Iterator[Metric]:
        batch = GaugeMetricFamily("weft_sink_batch", "Up to which batch a sink has delivered.", labels=["sink"])
        waiting = GaugeMetricFamily("weft_sink_waiting", "Batches that a sink has yet to take.", labels=["sink"])
        away = GaugeMetricFamily("weft_sink_away", "1 for a sink that fails or does not answer.", labels=["sink"])
        for name, sink in status.get("sinks", {}).items():
            batch.add_metric([name], sink["batch"])
            waiting.add_metric([name], sink["waiting"])
            away.add_metric([name], float(sink["state"] != "ok"))
        yield from (batch, waiting, away)

    def _of_queries(self) -> Iterator[Metric]:
        figures = self._queries()
        names = nlargest(self._most, figures, key=lambda name: figures[name]["seconds"])
        for figure, (kind, help) in _OF_QUERIES.items():
            family = kind(f"weft_query_{figure}", help, labels=["query"])  # type: ignore[call-arg]
            for name in names:
                value = figures[name][figure]  # type: ignore[literal-required]
                if value is not None:
                    family.add_metric([name], value)  # type: ignore[attr-defined]
            yield family


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


@contextmanager
def served(
    status: Callable[[], Status],
    port: int | None,
    address: str = "127.0.0.1",
    *,
    queries: Queries = dict,
    most: int = MOST_QUERIES,
    stuck_after: float = STUCK_AFTER,
) -> Iterator[int | None]:
    """Serve them while the block runs, on a free port if ``port`` is 0, not at all if it is None."""
    if port is None:
        yield None
        return
    pages = Pages(status, StatusCollector(status, queries, most), stuck_after)
    try:
        server = make_server(address, port, pages, _server_class(address, port), _Quiet)
    except OSError as error:
        raise WeftError(
            f"cannot serve metrics at {address}:{port}: {error.strerror}; choose another with --metrics-port"
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="weft-metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Pages:
    """What is served, by its path."""

    def __init__(self, status: Callable[[], Status], collector: Collector, stuck_after: float) -> None:
        registry = CollectorRegistry()
        registry.register(collector)
        self._metrics = make_wsgi_app(registry)
        self._probes: dict[str, Callable[[], Health]] = {
            "/healthz": lambda: alive(status(), stuck_after),
            "/readyz": lambda: ready(status(), stuck_after),
        }

    def __call__(self, environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        path = environment.get("PATH_INFO", "")
        if path in self._probes:
            return _told(self._probes[path](), start)
        if path in ("/", "/metrics"):
            answer: Iterable[bytes] = self._metrics(environment, start)
            return answer
        start("404 Not Found", [("Content-Type", "text/plain")])
        return [b"there are /metrics, /healthz and /readyz\n"]


def _told(health: Health, start: StartResponse) -> list[bytes]:
    start("200 OK" if health.is_fine else "503 Service Unavailable", [("Content-Type", "application/json")])
    return [json.dumps({"state": health.state, "reasons": list(health.reasons)}).encode() + b"\n"]


class _Server(ThreadingMixIn, WSGIServer):
    """A slow client holds up no probe."""

    daemon_threads = True


def _server_class(address: str, port: int) -> type[_Server]:
    family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
    return type("_ServerOfFamily", (_Server,), {"address_family": family})


class _Quiet(WSGIRequestHandler):
    """Requests are no news."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
