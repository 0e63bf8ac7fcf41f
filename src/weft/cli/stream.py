"""``weft stream``: everything that it can be told, by options over ``weft.yaml``."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import typer

from weft.cli.checkpoint import CatalogUrl, Config, settings_of
from weft.cli.failures import told_in_short
from weft.cli.logs import begin_log
from weft.cli.signals import Ended
from weft.cli.spark_options import Conf, Master, Memory, Packages, pairs, separated
from weft.config import stream_config
from weft.config.secrets import kept_from
from weft.config.settings import Place

LOG = logging.getLogger("weft.stream")

Given = dict[Place, tuple[str, Any]]


def stream_command(
    queries: Annotated[
        str | None, typer.Argument(metavar="[QUERIES.sql]", help="Fills the catalog the first time.")
    ] = None,
    config: Config = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=SPEC",
            help="A stream: its name, and a folder of files, kafka:TOPIC@HOST:PORT, rate:ROWS or socket:HOST:PORT.",
        ),
    ] = None,
    event_time: Annotated[str | None, typer.Option(metavar="COL", help="The column that holds the event time.")] = None,
    lateness: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How late rows may be: '10 seconds'.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="parquet, json, csv, avro, ... of files or payloads.")] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="DDL", help="The columns: 'ts TIMESTAMP, price DOUBLE'.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="K=V", help="An option for Spark's reader.")] = None,
    max_files: Annotated[int | None, typer.Option(metavar="N", help="Files that one batch takes at most.")] = None,
    bad_records: Annotated[
        str | None, typer.Option(metavar="dead-letter|stop", help="What to do with what cannot be read.")
    ] = None,
    dead_letter: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where what cannot be read goes; into the checkpoint by default.")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="What the job remembers; started again it goes on from there.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="The folder for the answers.")] = None,
    sink: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="kafka:TOPIC@HOST:PORT, postgresql://USER@HOST/DB, parquet:DIR, delta:DIR, console; "
            "'hourly,max*=SPEC' for the queries of these names only.",
        ),
    ] = None,
    give_up: Annotated[
        list[str] | None,
        typer.Option(metavar="SINK", help="Do without what this sink, now gone, has yet to take; by its name."),
    ] = None,
    patience: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="So long a sink, the catalog or the source that is away is waited for; for ever if not given.",
        ),
    ] = None,
    waiting_batches: Annotated[
        int | None, typer.Option(metavar="N", help="The stream holds when so many batches wait for a sink.")
    ] = None,
    waiting_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The same for their answers: '10 GB'.")
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the checkpoint over from a job that runs on it, which then ends.")
    ] = False,
    give_up_answers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUERY", help="Do without the answers of this query that some sink has yet to take and never can."
        ),
    ] = None,
    trigger: Annotated[str | None, typer.Option(metavar="DURATION", help="A batch begins so often.")] = None,
    available_now: Annotated[
        bool | None, typer.Option("--available-now/--continuous", help="Take what is there, then stop.")
    ] = None,
    drain: Annotated[bool | None, typer.Option("--drain/--no-drain", help="Then close all windows.")] = None,
    catalog: CatalogUrl = None,
    metrics_port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Serve /metrics for Prometheus, /healthz and /readyz.")
    ] = None,
    metrics_address: Annotated[str | None, typer.Option(metavar="HOST", help="On this address only.")] = None,
    metrics_queries: Annotated[
        int | None, typer.Option(metavar="N", help="Metrics of so many queries, of those that take most time; 1000.")
    ] = None,
    stuck_after: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="A batch that takes longer is unhealthy to /healthz; '30 minutes'."),
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="human or json.")] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="K=N", help="What one query may cause: answers, keys, slices or value_bytes."),
    ] = None,
    technique: Annotated[str | None, typer.Option(help="How answers are built from slices.")] = None,
    optimizer: Annotated[str | None, typer.Option(metavar="NAME", help="Which queries share slices: weft, ...")] = None,
    model: Annotated[
        str | None, typer.Option(help="What the optimizer goes by: calibrated, two-level or three-level.")
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(metavar="N[,CAPACITIES]", help="Over how many nodes trees of queries are spread.")
    ] = None,
    finals: Annotated[
        str | None, typer.Option(help="Where slices become answers: auto, driver or executors; for a new checkpoint.")
    ] = None,
    cut: Annotated[
        str | None, typer.Option(help="Who cuts rows into slices: jvm, workers, driver, or auto: the fastest.")
    ] = None,
    master: Master = None,
    memory: Memory = None,
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Answer the queries on a live stream, each window when the watermark has passed its end.

    Started again with the same checkpoint it goes on where it was. SIGINT or SIGTERM stops it after the batch.

    Example: `weft stream queries.sql --source trades=incoming --event-time ts --lateness '10 seconds'
    --checkpoint state --out answers`
    """
    given: Given = {
        ("queries",): ("QUERIES.sql", queries),
        ("source", "event_time"): ("--event-time", event_time),
        ("source", "lateness"): ("--lateness", lateness),
        ("source", "format"): ("--format", format),
        ("source", "schema"): ("--schema", schema),
        ("source", "max_files"): ("--max-files", max_files),
        ("source", "bad_records"): ("--bad-records", bad_records),
        ("source", "dead_letter"): ("--dead-letter", dead_letter),
        ("checkpoint",): ("--checkpoint", checkpoint),
        ("out",): ("--out", out),
        ("sinks",): ("--sink", sink),
        ("patience",): ("--patience", patience),
        ("waiting_batches",): ("--waiting-batches", waiting_batches),
        ("waiting_bytes",): ("--waiting-bytes", waiting_bytes),
        ("trigger",): ("--trigger", trigger),
        ("available_now",): ("--available-now", available_now),
        ("drain",): ("--drain", drain),
        ("catalog",): ("--catalog", catalog),
        ("metrics_port",): ("--metrics-port", metrics_port),
        ("metrics_address",): ("--metrics-address", metrics_address),
        ("metrics_queries",): ("--metrics-queries", metrics_queries),
        ("stuck_after",): ("--stuck-after", stuck_after),
        ("log_level",): ("--log-level", log_level),
        ("log_format",): ("--log-format", log_format),
        ("technique",): ("--technique", technique),
        ("optimizer",): ("--optimizer", optimizer),
        ("model",): ("--model", model),
        ("nodes",): ("--nodes", nodes),
        ("finals",): ("--finals", finals),
        ("cut",): ("--cut", cut),
        ("master",): ("--master", master),
        ("memory",): ("--memory", memory),
        ("packages",): ("--packages", separated(packages)),
        **_source(source),
        **_each(option, "--option", ("source", "options")),
        **_each(limit, "--limit", ("limits",)),
        **_each(conf, "--conf", ("spark",)),
    }
    said = {at: value for at, value in given.items() if value[1] is not None}
    from weft.cli.streaming import run_stream
    from weft.launch.live import give_up_queries, give_up_sinks, refuse_if_running

    read = settings_of(config)
    if (log_format or read.values.get("log_format")) == "json":
        begin_log("info", "json")  # what is wrong with other settings is logged, too
    settings = stream_config(read.filled(), said)
    begin_log(settings.log_level, settings.log_format, settings.secrets())
    where = f" in the stream {settings.source.name} from {settings.source.spec}"
    with kept_from(settings.secrets()), told_in_short(where):
        refuse_if_running(settings, take_over=take_over)
        give_up_sinks(settings, give_up or ())
        give_up_queries(settings, give_up_answers or ())
        try:
            run_stream(settings, take_over=take_over)
        except Ended as ended:
            LOG.info("%s before its first batch", ended)


def _source(source: str | None) -> Given:
    if source is None:
        return {}
    name, equals, spec = source.partition("=")
    if not (name and equals and spec):
        raise typer.BadParameter(f"{source} is not of the form NAME=SPEC", param_hint="--source")
    return {("source", "name"): ("--source", name), ("source", "spec"): ("--source", spec)}


def _each(given: list[str] | None, option: str, at: Place) -> Given:
    return {(*at, name): (option, value) for name, value in pairs(given, option).items()}
