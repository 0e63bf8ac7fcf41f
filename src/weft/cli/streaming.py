"""What ``weft stream`` does once it knows all that it was told: source, engine, sinks, and people who watch."""

from __future__ import annotations

import difflib
import fnmatch
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from weft.catalog import Heartbeat, Status, create_catalog
from weft.catalog.database import CatalogError
from weft.catalog.entries import LIVE
from weft.catalog.seeding import Differences, named_sql
from weft.catalog.status import Trouble
from weft.cli import standard_error
from weft.cli.logs import begin_log, fields
from weft.cli.metrics import served
from weft.cli.run import read_queries
from weft.cli.signals import stopping
from weft.cli.view import Report, shown
from weft.config import StreamConfig
from weft.config.secrets import without
from weft.errors import QueriesError
from weft.java.packages import CARRIED, resolve
from weft.job import outbox
from weft.job.checkpoint import Checkpoint
from weft.job.sink import Sink
from weft.launch.session import local_session
from weft.query.model import Query
from weft.query.sparksql import parse_file
from weft.sinks.routed import RoutedSink
from weft.sinks.specs import sink_of
from weft.sources.dead_letters import BAD
from weft.sources.specs import live_source
from weft.spark.bind import Stream
from weft.spark.failures import spark_failure
from weft.spark.live.engine import LiveEngine, Pace
from weft.spark.live.planning import bind_all

LOG = logging.getLogger("weft.stream")
LOOK = 0.25
"""Seconds between two looks at how the stream is."""


def give_up_sinks(config: StreamConfig, names: Sequence[str]) -> None:
    """Have the job go on without what these sinks, which are gone, have yet to take."""
    for name in names:
        outbox.give_up(Checkpoint(config.checkpoint), name)


def run_stream(config: StreamConfig) -> None:
    """Run the job until it ends or is told to stop."""
    console = _console(config)
    text = read_queries(Path(config.queries)) if config.queries else None
    queries = None if text is None else parse_file(text)
    with create_catalog(config.checkpoint, config.catalog_url) as catalog, shown(console) as report:
        # what can be said before Spark starts is said before, as that takes seconds
        if queries is not None and catalog.is_seeded():
            _say_changed(catalog.seed(queries))
        sinks = [sink_of(spec) for spec in config.sink_specs()]
        first: Status = {"state": "starting", "pid": os.getpid(), "host": socket.gethostname(), "started": time.time()}
        report(first)
        with Heartbeat(catalog, first) as heartbeat:
            engine = _engine(config, sinks)
            if text is not None and not catalog.is_seeded():
                catalog.seed(_bound(engine, text))
            if not catalog.entries("pending", "active"):
                LOG.warning("there are no queries to answer: add some with weft add")
            say_idle_routes(sinks, [entry.name for entry in catalog.entries(*LIVE)])
            with stopping(threading.Event(), LOG.info) as stop:
                engine.start()
                with _measured(config, heartbeat):
                    _watch(engine, stop, (heartbeat.say, report), config.secrets())
    if engine.is_drained:
        LOG.info("drained: all windows are closed; new rows need a new checkpoint")


def _console(config: StreamConfig) -> Console:
    """Where people look: with JSON there is no view, only lines."""
    begin_log(config.log_level, config.log_format, config.secrets())
    with_view = config.log_format == "human" and standard_error.real().isatty()
    return Console(file=standard_error.real(), force_terminal=with_view)


def say_idle_routes(sinks: Sequence[Sink], queries: Sequence[str]) -> None:
    """Warn of patterns that no query matches: a name may be mistyped, or its query may come later."""
    for sink in sinks:
        for pattern in sink.queries if isinstance(sink, RoutedSink) else ():
            if not fnmatch.filter(queries, pattern):
                close = difflib.get_close_matches(pattern, queries, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                LOG.warning("no query has a name like %s, which sink %s is for%s", pattern, sink.name, hint)


def _engine(config: StreamConfig, sinks: Sequence[Sink]) -> LiveEngine:
    jars = {"spark.jars": ",".join(map(str, resolve(config.packages, without=CARRIED)))} if config.packages else {}
    spark = local_session(master=config.master, memory=config.memory, config=jars | config.spark_options)
    source = config.source
    found = live_source(
        spark,
        source.spec,
        source.event_time,
        format=source.format,
        schema=source.schema_,
        options=source.reader_options,
        max_files=source.max_files,
        dead=config.bad_records_folder,
    )
    return LiveEngine(
        Stream(source.name, found.rows.drop(BAD), source.event_time),
        found,
        config.checkpoint,
        source.lateness,
        sinks,
        catalog_url=config.catalog_url,
        technique=config.technique,
        finals=config.finals,
        pace=Pace(f"{config.trigger} microseconds" if config.trigger else None, config.available_now, config.drain),
    )


def _say_changed(found: Differences) -> None:
    if found:
        LOG.warning("the catalog rules, which was changed since the file filled it: %s", found)


def _bound(engine: LiveEngine, text: str) -> list[Query]:
    """The queries of the first file: a job does not start with one that cannot be run."""
    queries = parse_file(text, {engine.stream.name: tuple(engine.stream.rows.columns)})
    _, errors = bind_all(engine.stream, {query.name: named_sql(query) for query in queries})
    if errors:
        raise QueriesError(list(errors.values()))
    return queries


@contextmanager
def _measured(config: StreamConfig, heartbeat: Heartbeat) -> Iterator[None]:
    """Serve metrics, if they were asked for."""
    with served(lambda: heartbeat.status, config.metrics_port, config.metrics_address) as port:
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
