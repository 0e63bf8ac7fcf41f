"""What ``weft stream`` does once it knows all that it was told: source, engine, sinks, and people who watch."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from rich.console import Console

from weft.catalog.heartbeat import Heartbeat
from weft.cli.logs import configure, fields
from weft.cli.metrics import served
from weft.cli.run import read_queries
from weft.cli.signals import stopping
from weft.cli.view import Report, shown
from weft.config import StreamConfig
from weft.query.sparksql import parse_file
from weft.spark.bind import Stream
from weft.spark.live.engine import LiveEngine, Pace
from weft.spark.session import local_session
from weft.spark.sinks.parquet import ParquetSink
from weft.spark.sinks.sink import Sink
from weft.spark.sources_live import live_rows

LOG = logging.getLogger("weft.stream")
LOOK = 0.25
"""Seconds between two looks at how the stream is."""


def run_stream(config: StreamConfig) -> None:
    """Run the job until it ends or is told to stop."""
    configure(config.log_level, config.log_format, config.secrets())
    console = Console(stderr=True)
    text = read_queries(Path(config.queries)) if config.queries else None
    if text is not None:
        parse_file(text)  # before Spark starts, which takes seconds
    with shown(console) as report:
        report({"state": "starting"})
        engine = _engine(config)
        with stopping(threading.Event(), LOG.info) as stop:
            if text is not None:
                _seed(engine, text)
            engine.start()
            _watch(engine, config, stop, report)
    if engine.is_drained:
        LOG.info("drained: all windows are closed; new rows need a new checkpoint")


def _engine(config: StreamConfig) -> LiveEngine:
    spark = local_session(master=config.master, memory=config.memory, config=config.spark_options)
    source = config.source
    rows = live_rows(
        spark,
        source.spec,
        source.event_time,
        kind=source.format,
        schema=source.schema_,
        options=source.reader_options,
        max_files=source.max_files,
    )
    return LiveEngine(
        Stream(source.name, rows, source.event_time),
        config.checkpoint,
        source.lateness,
        _sinks(config),
        catalog_url=config.catalog_url,
        technique=config.technique,
        pace=Pace(f"{config.trigger} microseconds" if config.trigger else None, config.available_now, config.drain),
    )


def _sinks(config: StreamConfig) -> list[Sink]:
    return [ParquetSink(config.out)] if config.out else []


def _seed(engine: LiveEngine, text: str) -> None:
    columns = {engine.stream.name: tuple(engine.stream.rows.columns)}
    found = engine.catalog.seed(parse_file(text, columns))
    if found:
        LOG.warning("the catalog rules, which was changed since the file filled it: %s", found)


def _watch(engine: LiveEngine, config: StreamConfig, stop: threading.Event, report: Report) -> None:
    """Show and tell how the stream is, until it ends."""
    with (
        Heartbeat(engine.catalog, engine.status()) as heartbeat,
        served(engine.status, config.metrics_port, config.metrics_address) as port,
    ):
        if port is not None:
            LOG.info("metrics are served", extra=fields(metrics_address=config.metrics_address, metrics_port=port))
        try:
            while not engine.await_termination(LOOK):
                status = engine.status()
                if stop.is_set():
                    status["state"] = "stopping"
                heartbeat.say(status)
                report(status)
                if stop.is_set():
                    engine.stop()
                else:
                    engine.look()
        finally:
            heartbeat.say(engine.status())
            report(engine.status())
