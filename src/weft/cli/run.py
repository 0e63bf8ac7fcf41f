"""``weft run``, ``weft explain`` and ``weft check``: batch queries over files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from weft.cli.weaving import Model, Nodes, Optimizer, Weave
from weft.errors import WeftError
from weft.optimize.weaving import DEFAULT
from weft.query.sparksql import parse_file
from weft.query.statements import is_empty

if TYPE_CHECKING:
    from weft.launch.engine import Engine
    from weft.spark.answers import Answers

Queries = Annotated[Path, typer.Argument(metavar="QUERIES.sql", help="A file of Spark SQL or CQL window queries.")]
Source = Annotated[
    list[str], typer.Option(metavar="NAME=PATH", help="A stream's name and the file or folder that holds its rows.")
]
EventTime = Annotated[str, typer.Option(metavar="COL", help="The column that holds the event time.")]
Format = Annotated[
    str | None, typer.Option(help="parquet, csv, json, orc, ... as Spark names it; by the file's ending if not given.")
]
Options = Annotated[list[str] | None, typer.Option("--option", metavar="K=V", help="An option for Spark's reader.")]
Technique = Annotated[str, typer.Option(help="How answers are built from slices; auto chooses for each aggregate.")]
Master = Annotated[str | None, typer.Option(help="The Spark master; this machine's cores if not given.")]
Memory = Annotated[str, typer.Option(help="Memory of the Spark driver.")]


def run_command(
    queries: Queries,
    source: Source,
    event_time: EventTime,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the answers.")],
    format: Format = None,
    option: Options = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace DIR if it is there.")] = False,
    technique: Technique = "auto",
    optimizer: Optimizer = DEFAULT,
    model: Model = "calibrated",
    nodes: Nodes = None,
    master: Master = None,
    memory: Memory = "3g",
) -> None:
    """Answer all queries in one pass and write DIR/query=NAME/*.parquet.

    Example: `weft run queries.sql --source trades=trades.parquet --event-time ts --out answers`
    """
    if out.exists() and not overwrite:
        raise typer.BadParameter(f"{out} is there already; give another folder or say --overwrite", param_hint="--out")
    text = read_queries(queries)
    parse_file(text)
    from weft.spark.progress import watched
    from weft.store.folder import Folder
    from weft.store.private import make_private
    from weft.store.scratch import scratch

    console = Console()
    with _progress(console) as progress:
        task = progress.add_task("starting Spark", total=None)
        engine = _engine(
            text, source, event_time, format, option, technique, master, memory, Weave(optimizer, model, nodes)
        )
        progress.update(task, description=f"answering {len(engine.queries)} queries")
        staging = make_private(scratch(Folder(str(out)), "staging"))
        try:
            with watched(engine.spark, lambda done, of: progress.update(task, completed=done, total=of or None)):
                answers = engine.run(staging.root)
            progress.update(task, description="writing", completed=0, total=len(answers))
            answers.write(
                str(out), overwrite=overwrite, progress=lambda done, of: progress.update(task, completed=done, total=of)
            )
        finally:
            staging.remove()
    _report(console, answers, out)
    if answers.failures:
        raise WeftError("\n".join(str(failure) for failure in answers.failures.values()))


def explain_command(
    queries: Queries,
    source: Source,
    event_time: EventTime,
    format: Format = None,
    option: Options = None,
    technique: Technique = "auto",
    optimizer: Optimizer = DEFAULT,
    model: Model = "calibrated",
    nodes: Nodes = None,
    master: Master = None,
    memory: Memory = "3g",
) -> None:
    """Show what the queries share, without answering them.

    Example: `weft explain queries.sql --source trades=trades.parquet --event-time ts`
    """
    text = read_queries(queries)
    typer.echo(
        _engine(
            text, source, event_time, format, option, technique, master, memory, Weave(optimizer, model, nodes)
        ).explain()
    )


def check_command(queries: Queries) -> None:
    """Check the queries' text, without data and without Spark.

    Example: `weft check queries.sql`
    """
    found = parse_file(read_queries(queries))
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


def _engine(
    text: str,
    source: list[str],
    event_time: str,
    format: str | None,
    option: list[str] | None,
    technique: str,
    master: str | None,
    memory: str,
    weave: Weave,
) -> Engine:
    sources = _pairs(source, "--source", "NAME=PATH")
    options = _pairs(option or [], "--option", "K=V")
    from weft.cli.logs import begin_log
    from weft.launch.engine import Engine
    from weft.launch.session import local_session
    from weft.sources.batch_files import read_files

    begin_log("warning")
    engine = Engine(
        local_session(master=master, memory=memory),
        technique=technique,
        optimizer=weave.optimizer,
        model=weave.model,
        nodes=weave.capacities,
    )
    for name, path in sources.items():
        engine.stream(name, read_files(engine.spark, path, event_time, format, options), event_time)
    engine.sql(text)
    return engine


def _pairs(given: list[str], parameter: str, form: str) -> dict[str, str]:
    pairs = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not (name and equals and value):
            raise typer.BadParameter(f"{item} is not of the form {form}", param_hint=parameter)
        pairs[name] = value
    return pairs


def _progress(console: Console) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def _report(console: Console, answers: Answers, out: Path) -> None:
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
