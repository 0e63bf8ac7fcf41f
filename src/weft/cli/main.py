"""The ``weft`` command."""

from __future__ import annotations

import os
import sys
import traceback

import typer
from rich.console import Console

from weft._version import __version__
from weft.cli.calibrate import calibrate_command
from weft.cli.failures import told_in_short
from weft.cli.init import init_command
from weft.cli.plan import plan_command
from weft.cli.queries import add_command, drop_command, pause_command, queries_command, resume_command
from weft.cli.run import check_command, explain_command, run_command
from weft.cli.status import status_command
from weft.cli.stream import stream_command
from weft.cli.workload import workload_command
from weft.errors import QueriesError, QueryError, UseError, WeftError

BAD_USE = 2
FAILED = 1
DEBUG = "WEFT_DEBUG"
"""Set in the environment, or by --debug: failures are shown with their traces."""

app = typer.Typer(
    name="weft",
    help="Answers thousands of Spark SQL window queries over one stream in one shared pass.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
    debug: bool = typer.Option(False, "--debug", help="Show the whole trace of a failure: weft --debug stream ..."),
) -> None:
    if debug:
        os.environ[DEBUG] = "1"


app.command("run")(run_command)
app.command("explain")(explain_command)
app.command("check")(check_command)
app.command("plan")(plan_command)
app.command("calibrate")(calibrate_command)
app.command("workload")(workload_command)
app.command("init")(init_command)
app.command("stream")(stream_command)
app.command("add")(add_command)
app.command("drop")(drop_command)
app.command("pause")(pause_command)
app.command("resume")(resume_command)
app.command("queries")(queries_command)
app.command("status")(status_command)


def main() -> None:
    """Run the command: 0 done, 2 bad use or bad query, 1 failure."""
    errors = Console(stderr=True, highlight=False)
    try:
        with told_in_short():
            app(prog_name="weft")
    except WeftError as error:
        if os.environ.get(DEBUG):
            traceback.print_exception(error)
        told = str(error) if isinstance(error, QueryError | QueriesError) else f"weft: {error}"
        errors.print(told, style="red", markup=False, soft_wrap=True)
        sys.exit(BAD_USE if isinstance(error, QueryError | QueriesError | UseError) else FAILED)
