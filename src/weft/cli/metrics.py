"""The job's status for Prometheus, at ``http://ADDRESS:PORT/metrics``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from weft.catalog import Status
from weft.errors import WeftError

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
    "lag_seconds": "How far the watermark is behind the clock.",
    "state_bytes": "Bytes of state.",
    "trees": "Trees of the plan.",
    "queries": "Queries that are answered.",
    "paused": "Queries that are paused.",
    "catalog_version": "The version of the catalog that the plan follows.",
    "heartbeat": "When the job last said something, in seconds since the epoch.",
}
_STATES = ("starting", "running", "degraded", "stopping", "stopped", "drained", "failed")


class StatusCollector(Collector):
    """Turns the status of the moment into metrics, whenever they are asked for."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

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
        yield self._states(status)
        yield from self._sinks(status)

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


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


@contextmanager
def served(status: Callable[[], Status], port: int | None, address: str = "127.0.0.1") -> Iterator[int | None]:
    """Serve the metrics while the block runs, on a free port if ``port`` is 0, not at all if it is None."""
    if port is None:
        yield None
        return
    registry = CollectorRegistry()
    registry.register(StatusCollector(status))
    try:
        server, thread = start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        raise WeftError(
            f"cannot serve metrics at {address}:{port}: {error.strerror}; choose another with --metrics-port"
        ) from None
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
