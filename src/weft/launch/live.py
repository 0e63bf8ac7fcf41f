"""A live job put together: for ``Engine.start``, ``weft stream`` and whoever else starts one."""

from __future__ import annotations

import difflib
import fnmatch
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from uuid import uuid4

from tenacity import retry_if_exception_type

from weft.catalog import Catalog, create_catalog
from weft.catalog.database import CatalogAwayError
from weft.catalog.seeding import named_sql
from weft.config import StreamConfig
from weft.config.sinks import SinkBase, seconds
from weft.errors import QueriesError, WeftError
from weft.java.packages import KAFKA, spark_jars
from weft.job import outbox
from weft.job.checkpoint import Checkpoint
from weft.job.given_up import give_up_answers
from weft.job.history import History
from weft.job.lease import Lease, refuse_if_held
from weft.job.patience import Patience, Presence
from weft.job.records import CheckpointSettings
from weft.job.sink import Sink
from weft.launch.session import local_session
from weft.launch.woven import weaving_on
from weft.query.model import Query
from weft.query.sparksql import parse_file
from weft.sinks.routed import RoutedSink
from weft.sinks.specs import sink_of
from weft.sources.dead_letters import BAD
from weft.sources.source import LiveSource
from weft.sources.specs import live_source
from weft.spark.bind import Stream
from weft.spark.live.engine import LiveEngine, Pace
from weft.spark.live.job import Job
from weft.spark.live.next_plan import Wishes
from weft.spark.live.planning import bind_all

LOG = logging.getLogger("weft.stream")


def refuse_if_running(config: StreamConfig, *, take_over: bool) -> None:
    """Refuse a second job on a checkpoint, before anything is touched that belongs to the first."""
    if not take_over:
        refuse_if_held(Checkpoint(config.checkpoint))


def give_up_sinks(config: StreamConfig, names: Sequence[str]) -> None:
    """Have the job go on without what these sinks, which are gone, have yet to take."""
    for name in names:
        outbox.give_up(Checkpoint(config.checkpoint), name)


def give_up_queries(config: StreamConfig, names: Sequence[str]) -> None:
    """Have no sink be given the answers of these queries that are committed by now."""
    for name in names:
        batch = give_up_answers(Checkpoint(config.checkpoint), name)
        LOG.warning("the answers of %s up to batch %d are given up: sinks that lack them get none", name, batch)


def open_catalog(
    checkpoint: str,
    url: str | None,
    patience: Patience,
    say: Callable[[Presence], object] = lambda presence: None,
) -> Catalog:
    """The catalog of a job that starts; one that is away is waited for, and ``say`` is told."""
    presence = Presence("the catalog", "the job starts when it is back")

    def attempt() -> Catalog:
        try:
            return create_catalog(checkpoint, url)
        except CatalogAwayError as error:
            presence.lost(error)
            say(presence)
            raise

    catalog: Catalog = patience.retrying(threading.Event(), retry_if_exception_type(CatalogAwayError))(attempt)
    presence.back()
    return catalog


def sinks_of(config: StreamConfig) -> list[Sink]:
    """The sinks, not yet opened; what is plainly wrong about them is said here."""
    return [sink_of(spec) for spec in config.sink_specs()]


def patience_of(config: StreamConfig) -> Patience:
    """The patience with everything that may be away."""
    return Patience(seconds(config.patience), config.waiting_batches, config.waiting_bytes)


def own_patience(config: StreamConfig, sinks: Sequence[Sink]) -> dict[str, Patience]:
    """By a sink's name: the patience with it, as far as something was said about it."""
    general = patience_of(config)
    described = sinks[len(sinks) - len(config.sinks) :]  # the folder ``out``, if there is one, comes first
    return {sink.name: _with(sink_config, general) for sink, sink_config in zip(described, config.sinks, strict=True)}


def _with(sink: SinkBase, general: Patience) -> Patience:
    return Patience(
        general.seconds if sink.patience is None else seconds(sink.patience),
        sink.waiting_batches or general.batches,
        general.bytes if sink.waiting_bytes is None else sink.waiting_bytes,
    )


class Logged:
    """Has the log say what a start takes its time for."""

    def begin(self, phase: str) -> None:
        """A part begins."""
        LOG.info("%s", phase)

    def at(self, done: int, of: int) -> None:
        """How far it is stays unsaid."""


def live_engine(config: StreamConfig, sinks: Sequence[Sink], catalog: Catalog, *, take_over: bool) -> LiveEngine:
    """Session, source and engine, ready to start."""
    spark = local_session(
        master=config.master,
        memory=config.memory,
        config=settings_of(config),
        packages=config.packages,
        places=config.spark_places(),
        waiting=Logged(),
    )
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
    wishes = Wishes(
        config.technique,
        weaving_on(spark, config.optimizer, config.model, config.nodes),
        config.finals,
        cut=config.cut,
    )
    return assembled(
        Stream(source.name, found.rows.drop(BAD), source.event_time, config.limits.limits),
        found,
        config.checkpoint,
        source.lateness,
        sinks,
        catalog=catalog,
        wishes=wishes,
        pace=Pace(f"{config.trigger} microseconds" if config.trigger else None, config.available_now, config.drain),
        patience=patience_of(config),
        own_patience=own_patience(config, sinks),
        take_over=take_over,
    )


def assembled(
    stream: Stream,
    source: LiveSource,
    checkpoint: str,
    lateness: int,
    sinks: Sequence[Sink],
    *,
    catalog: Catalog,
    wishes: Wishes,
    pace: Pace,
    patience: Patience,
    own_patience: Mapping[str, Patience] | None = None,
    take_over: bool = False,
) -> LiveEngine:
    """A job and the stream that feeds it, ready to start: the only place that puts them together."""
    if not source.rows.isStreaming:
        raise WeftError(f"stream {stream.name} is not a streaming DataFrame: use spark.readStream, or .run()")
    place = Checkpoint(checkpoint)
    place.make()
    history = History(place)
    settings = history.settings(CheckpointSettings(uuid4().hex, stream.name, stream.event_time, lateness))
    job = Job(
        history,
        settings,
        stream,
        source,
        catalog,
        sinks,
        wishes=wishes,
        lease=Lease.take(place, take_over=take_over),
        patience=patience,
        own_patience=own_patience,
    )
    return LiveEngine(job, source, pace, patience)


def settings_of(config: StreamConfig) -> dict[str, str]:
    """The settings of the session, with the source's connector among its jars.

    One that is added to a session that runs works as well, but of its errors Spark tells nothing.
    """
    given = config.spark_options
    if not config.source.spec.startswith("kafka:"):
        return given
    own = [jar for jar in (given.get("spark.jars"),) if jar]
    return given | {"spark.jars": ",".join([*own, *map(str, spark_jars(KAFKA))])}


def first_queries(engine: LiveEngine, text: str) -> list[Query]:
    """The queries of the first file: a job does not start with one that cannot be run."""
    columns = {engine.stream.name: tuple(engine.stream.rows.columns)}
    queries = parse_file(text, columns, functions=engine.stream.functions)
    _, errors = bind_all(engine.stream, {query.name: named_sql(query) for query in queries})
    if errors:
        raise QueriesError(list(errors.values()))
    return queries


def say_idle_routes(sinks: Sequence[Sink], queries: Sequence[str]) -> None:
    """Warn of patterns that no query matches: a name may be mistyped, or its query may come later."""
    for sink in sinks:
        for pattern in sink.queries if isinstance(sink, RoutedSink) else ():
            if not fnmatch.filter(queries, pattern):
                close = difflib.get_close_matches(pattern, queries, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                LOG.warning("no query has a name like %s, which sink %s is for%s", pattern, sink.name, hint)
