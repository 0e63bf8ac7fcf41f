"""What ``weft stream`` does once it knows all that it was told: source, engine, sinks, and people who watch."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from weft.catalog import Heartbeat, Status
from weft.catalog.database import CatalogError
from weft.catalog.entries import LIVE
from weft.catalog.seeding import Differences
from weft.catalog.status import Trouble
from weft.cli import standard_error
from weft.cli.logs import fields
from weft.cli.metrics import served
from weft.cli.run import read_queries
from weft.cli.signals import stopping
from weft.cli.view import Report, shown
from weft.config import StreamConfig
from weft.config.secrets import without
from weft.job.patience import Presence
from weft.launch.live import (
    first_queries,
    live_engine,
    open_catalog,
    patience_of,
    say_idle_routes,
    sinks_of,
)
from weft.query.sparksql import parse_file
from weft.spark.failures import spark_failure
from weft.spark.live.engine import LiveEngine

LOG = logging.getLogger("weft.stream")
LOOK = 0.25
"""Seconds between two looks at how the stream is."""


def run_stream(config: StreamConfig, *, take_over: bool = False) -> None:
    """Run the job until it ends or is told to stop."""
    with_view = config.log_format == "human" and standard_error.real().isatty()
    console = Console(file=standard_error.real(), force_terminal=with_view)
    text = read_queries(Path(config.queries)) if config.queries else None
    queries = None if text is None else parse_file(text)
    sinks = sinks_of(config)
    first: Status = {"state": "starting", "pid": os.getpid(), "host": socket.gethostname(), "started": time.time()}
    with shown(console) as report:
        report(first)

        def say_away(catalog: Presence) -> None:
            report({**first, "outages": [] if catalog.outage is None else [catalog.outage]})

        with open_catalog(config.checkpoint, config.catalog_url, patience_of(config), say_away) as catalog:
            # what can be said before Spark starts is said before, as that takes seconds
            if queries is not None and catalog.is_seeded():
                _say_changed(catalog.seed(queries))
            with Heartbeat(catalog, first) as heartbeat, _measured(config, heartbeat):
                engine = live_engine(config, sinks, catalog, take_over=take_over)
                heartbeat.tell_of(engine.query_figures)
                if text is not None and not catalog.is_seeded():
                    catalog.seed(first_queries(engine, text))
                if not catalog.entries("pending", "active"):
                    LOG.warning("there are no queries to answer: add some with weft add")
                say_idle_routes(sinks, [entry.name for entry in catalog.entries(*LIVE)])
                with stopping(threading.Event(), LOG.info) as stop:
                    engine.start()
                    _watch(engine, stop, (heartbeat.say, report), config.secrets())
    if engine.is_drained:
        LOG.info("drained: all windows are closed; new rows need a new checkpoint")


def _say_changed(found: Differences) -> None:
    if found:
        LOG.warning("the catalog rules, which was changed since the file filled it: %s", found)


@contextmanager
def _measured(config: StreamConfig, heartbeat: Heartbeat) -> Iterator[None]:
    """Serve metrics, if they were asked for."""
    with served(
        lambda: heartbeat.status,
        config.metrics_port,
        config.metrics_address,
        queries=lambda: heartbeat.figures,
        most=config.metrics_queries,
        stuck_after=config.stuck_after / 1e6,
    ) as port:
        if port is not None:
            LOG.info("metrics are served", extra=fields(metrics_address=config.metrics_address, metrics_port=port))
        yield


def _watch(engine: LiveEngine, stop: threading.Event, listeners: Sequence[Report], secrets: Sequence[str] = ()) -> None:
    """Tell how the stream is, until it ends."""
    paused = 0

    def tell(status: Status) -> None:
        for listener in listeners:
            listener(status)

    try:
        while not engine.await_termination(LOOK):
            if stop.is_set():
                tell({**engine.status(), "state": "stopping"})
                engine.stop()
                continue
            tell({**engine.status(), "paused": paused})
            # a catalog that is away for a while is told of by the heartbeat
            with suppress(CatalogError):
                engine.look()
                paused = len(engine.catalog.entries("paused"))
    except Exception as error:
        status = engine.status()
        message = without(spark_failure(error) or str(error), secrets)
        reason: Trouble = {"at": time.time(), "message": message}
        tell({**status, "paused": paused, "state": "failed", "errors": [*status.get("errors", []), reason]})
        raise
    tell({**engine.status(), "paused": paused})
