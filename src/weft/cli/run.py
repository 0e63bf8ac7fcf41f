"""``weft run``, ``weft explain`` and ``weft check``: batch queries over files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from weft.catalog import Catalog, find_catalog
from weft.cli.checkpoint import CatalogUrl
from weft.cli.logs import begin_log
from weft.cli.phases import Phases
from weft.cli.spark_options import Conf, Master, Memory, Packages, pairs, started
from weft.cli.weaving import Model, Nodes, Optimizer, Weave
from weft.errors import WeftError
from weft.optimize.weaving import DEFAULT
from weft.plan.cut_engine import CutWish
from weft.plan.explain import explain_running
from weft.plan.record import GroupingRecord
from weft.query.limits import DEFAULT as DEFAULT_LIMITS
from weft.query.limits import NAMES, Limits
from weft.query.sparksql import parse_file
from weft.query.statements import is_empty
from weft.store.folder import Folder
from weft.store.location import Location
from weft.store.private import make_private
from weft.store.scratch import scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.launch.engine import Engine
    from weft.spark.answers import Answers

Queries = Annotated[Path, typer.Argument(metavar="QUERIES.sql", help="A file of Spark SQL or CQL window queries.")]
Source = Annotated[
    list[str],
    typer.Option(metavar="NAME=PATH", help="A stream's name and the file, folder or URL that holds its rows."),
]
EventTime = Annotated[str, typer.Option(metavar="COL", help="The column that holds the event time.")]
Format = Annotated[
    str | None, typer.Option(help="parquet, csv, json, orc, ... as Spark names it; by the file's ending if not given.")
]
Options = Annotated[list[str] | None, typer.Option("--option", metavar="K=V", help="An option for Spark's reader.")]
Technique = Annotated[str, typer.Option(help="How answers are built from slices; auto chooses for each aggregate.")]
Cut = Annotated[
    CutWish,
    typer.Option(help="Who cuts rows into slices: Spark's aggregation, kernels in workers or the driver, or the best."),
]
Out = Annotated[str, typer.Option(metavar="DIR", help="The folder for the answers, a path or a URL.")]
Limit = Annotated[
    list[str] | None, typer.Option(metavar="K=N", help="What one query may cause: answers, keys or value_bytes.")
]


def run_command(
    queries: Queries,
    source: Source,
    event_time: EventTime,
    out: Out,
    format: Format = None,
    option: Options = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace DIR if it is there.")] = False,
    technique: Technique = "auto",
    optimizer: Optimizer = DEFAULT,
    model: Model = "calibrated",
    nodes: Nodes = None,
    cut: Cut = "auto",
    limit: Limit = None,
    master: Master = None,
    memory: Memory = None,
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Answer all queries in one pass and write DIR/query=NAME/*.parquet.

    Example: `weft run queries.sql --source trades=trades.parquet --event-time ts --out answers`
    """
    target = Folder(out)
    if target.exists() and not overwrite:
        raise typer.BadParameter(f"{out} is there already; give another folder or say --overwrite", param_hint="--out")
    asked = RunRequest(
        read_queries(queries), source, event_time, format, option, technique, Weave(optimizer, model, nodes), cut
    )
    asked.limits = limits_of(limit or ())
    from weft.spark.progress import watched

    begin_log("warning")
    with Phases() as phases:
        places = [*asked.places, target.location]
        engine = asked.engine(started(phases, master, memory, conf, packages, places), phases)
        phases.begin(f"answering {len(engine.queries)} queries")
        staging = make_private(scratch(target, "staging"))
        try:
            with watched(engine.spark, phases.at):
                answers = engine.run(staging.root)
            phases.begin(f"writing the answers of {len(answers)} queries")
            answers.write(target.root, overwrite=overwrite, progress=phases.at)
        finally:
            staging.remove()
    _report(Console(), answers, out)
    if answers.failures:
        raise WeftError("\n".join(str(failure) for failure in answers.failures.values()))


def explain_command(
    queries: Annotated[
        Path | None, typer.Argument(metavar="[QUERIES.sql]", help="A file of Spark SQL or CQL window queries.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PATH", help="A stream's name and the file, folder or URL that holds its rows."),
    ] = None,
    event_time: Annotated[str | None, typer.Option(metavar="COL", help="The column that holds the event time.")] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Show the plan that a live job runs, not that of a file."),
    ] = None,
    catalog: CatalogUrl = None,
    format: Format = None,
    option: Options = None,
    technique: Technique = "auto",
    optimizer: Optimizer = DEFAULT,
    model: Model = "calibrated",
    nodes: Nodes = None,
    cut: Cut = "auto",
    master: Master = None,
    memory: Memory = None,
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Show what the queries share, without answering them; or what those of a live job share.

    Example: `weft explain queries.sql --source trades=trades.parquet --event-time ts`,
    `weft explain --checkpoint state`
    """
    if checkpoint is not None:
        with find_catalog(checkpoint, catalog) as known:
            typer.echo(running_plan(known))
        return
    if queries is None or not source or event_time is None:
        raise typer.BadParameter("say QUERIES.sql, --source and --event-time, or the --checkpoint of a live job")
    asked = RunRequest(
        read_queries(queries), source, event_time, format, option, technique, Weave(optimizer, model, nodes), cut
    )
    begin_log("warning")
    with Phases() as phases:
        engine = asked.engine(started(phases, master, memory, conf, packages, asked.places), phases)
        phases.begin(f"planning {len(engine.queries)} queries")
        told = engine.explain()
    typer.echo(told)


def running_plan(catalog: Catalog) -> str:
    """The plan that a job ran last, in words."""
    plans = catalog.plans()
    if not plans:
        return "the job has made no plan yet: its first batch will"
    last = plans[-1]
    groupings = [GroupingRecord.of(one) for one in last.plan["groupings"]]
    queries = {name: parse_file(text)[0] for name, text in last.plan["queries"].items()}
    return f"plan {last.version}, since batch {last.batch}\n{explain_running(groupings, queries)}"


def check_command(queries: Queries) -> None:
    """Check the queries' text, without data and without Spark.

    Example: `weft check queries.sql`
    """
    text = read_queries(queries)
    with Phases() as phases:
        phases.begin("checking the queries")
        found = parse_file(text, progress=phases.at)
    streams = sorted({query.stream for query in found})
    typer.echo(f"{len(found)} queries over {', '.join(streams)} are fine")


def read_queries(path: Path, parameter: str = "QUERIES.sql") -> str:
    """The text of a query file; one without a query is a mistake."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}", param_hint=parameter) from None
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path} is not UTF-8 text: {error}", param_hint=parameter) from None
    if is_empty(text):
        raise typer.BadParameter(f"there is no query in {path}", param_hint=parameter)
    return text


class RunRequest:
    """Queries and the files that they are asked about; what cannot be is refused before Spark starts."""

    def __init__(
        self,
        text: str,
        source: list[str],
        event_time: str,
        format: str | None,
        option: list[str] | None,
        technique: str,
        weave: Weave,
        cut: CutWish,
    ) -> None:
        parse_file(text)
        self.text, self.event_time, self.format, self.technique, self.weave = text, event_time, format, technique, weave
        self.cut: CutWish = cut
        self.sources = pairs(source, "--source", "NAME=PATH")
        self.options = pairs(option, "--option")
        self.limits = DEFAULT_LIMITS
        for name, path in self.sources.items():
            if not path:
                raise typer.BadParameter(f"{name}= is not of the form NAME=PATH", param_hint="--source")
        self.places = [Location.of(path) for path in self.sources.values()]

    def engine(self, spark: SparkSession, phases: Phases) -> Engine:
        """An engine that has read the queries."""
        from weft.launch.engine import Engine
        from weft.sources.batch_files import read_files

        engine = Engine(
            spark,
            technique=self.technique,
            optimizer=self.weave.optimizer,
            model=self.weave.model,
            nodes=self.weave.capacities,
            limits=self.limits,
            cut=self.cut,
        )
        phases.begin("reading queries")
        for name, path in self.sources.items():
            rows = read_files(spark, path, self.event_time, self.format, self.options)
            engine.stream(name, rows, self.event_time)
        engine.sql(self.text)
        return engine


def limits_of(given: Sequence[str]) -> Limits:
    """Limits as they are written on the command line.

    Examples
    --------
    >>> limits_of(["answers=1000"]).answers
    1000
    """
    found: dict[str, int] = {}
    for name, value in pairs(list(given), "--limit", "K=N").items():
        if name not in NAMES:
            raise typer.BadParameter(f"there is no limit {name}; there is {', '.join(NAMES)}", param_hint="--limit")
        if not value.isdecimal():
            raise typer.BadParameter(f"{name}: {value} is no whole number", param_hint="--limit")
        found[name] = int(value)
    return Limits(**found)


def _report(console: Console, answers: Answers, out: str) -> None:
    table = Table("query", title=f"answers in {out}", title_justify="left")
    table.add_column("windows", justify="right")
    table.add_column("rows", justify="right")
    for name in answers:
        outcome = answers.outcome(name)
        if outcome.failure:
            table.add_row(name, "-", "failed", style="red")
        else:
            table.add_row(name, f"{outcome.windows:,}", f"{outcome.rows:,}")
    console.print(table)
    totals = answers.totals
    console.print(
        f"{totals.rows_read:,} rows read, {totals.slices:,} slices, {totals.answers:,} answers, "
        f"{totals.seconds:.1f} seconds",
        highlight=False,
    )
    if totals.rows_without_time:
        console.print(f"{totals.rows_without_time:,} rows without event time were left out", highlight=False)
