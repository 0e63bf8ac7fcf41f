"""The ``weft`` command."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from weft._version import __version__
from weft.cli import logs, standard_error
from weft.cli.calibrate import calibrate_command
from weft.cli.demo import demo_command
from weft.cli.failures import told_in_short
from weft.cli.init import init_command
from weft.cli.plan import plan_command
from weft.cli.queries import add_command, drop_command, pause_command, queries_command, resume_command
from weft.cli.run import check_command, explain_command, run_command
from weft.cli.signals import Ended, ending
from weft.cli.status import status_command
from weft.cli.stream import stream_command
from weft.cli.workload import workload_command
from weft.errors import QueriesError, QueryError, UseError, WeftError

LOG = logging.getLogger("weft.cli")
BAD_USE = 2
FAILED = 1
DEBUG = "WEFT_DEBUG"
"""Set in the environment, or by --debug: failures are shown with their traces."""
_UsageError = typer.BadParameter.__mro__[1]
"""What is wrong with the words of a command."""


def _plain(parameters: list[Any]) -> list[Any]:
    """Flags without a type behind them: there is nothing to write after one."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command whose help shows flags as they are written."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options and arguments."""
        return _plain(super().get_params(ctx))


class Commands(TyperGroup):
    """All commands, in the same manner."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options."""
        return _plain(super().get_params(ctx))


app = typer.Typer(
    name="weft",
    cls=Commands,
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


app.command("run", cls=Command)(run_command)
app.command("explain", cls=Command)(explain_command)
app.command("check", cls=Command)(check_command)
app.command("plan", cls=Command)(plan_command)
app.command("calibrate", cls=Command)(calibrate_command)
app.command("demo", cls=Command)(demo_command)
app.command("workload", cls=Command)(workload_command)
app.command("init", cls=Command)(init_command)
app.command("stream", cls=Command)(stream_command)
app.command("add", cls=Command)(add_command)
app.command("drop", cls=Command)(drop_command)
app.command("pause", cls=Command)(pause_command)
app.command("resume", cls=Command)(resume_command)
app.command("queries", cls=Command)(queries_command)
app.command("status", cls=Command)(status_command)


def main() -> None:
    """Run the command: 0 done, 2 bad use or bad query, 1 failure, 128 and its number if a signal ended it."""
    logs.begin_anew()
    if _wants_json(sys.argv[1:]):
        logs.begin_log("info", "json")
    try:
        with ending(), told_in_short():
            # in a log of JSON, bad use is a line as any other
            if code := app(prog_name="weft", standalone_mode=not logs.is_json()):
                sys.exit(code)
    except WeftError as error:
        _tell(_message(error), error)
        sys.exit(BAD_USE if isinstance(error, QueryError | QueriesError | UseError) else FAILED)
    except Ended as ended:
        _tell(f"weft: {ended}")
        sys.exit(ended.code)
    except Exception as error:
        if not logs.is_json():
            raise
        if isinstance(error, _UsageError):
            _tell(getattr(error, "format_message")())  # noqa: B009  typer does not say what it is
            sys.exit(BAD_USE)
        LOG.critical("weft failed: %s", error, exc_info=True)
        sys.exit(FAILED)


def _wants_json(words: Sequence[str]) -> bool:
    """Whether the log is to be JSON: asked before anything else, as what is wrong with other options is logged, too."""
    return any(f"{one}={two}".startswith("--log-format=json") for one, two in pairwise([*words, ""]))


def _message(error: WeftError) -> str:
    return str(error) if isinstance(error, QueryError | QueriesError) else f"weft: {error}"


def _tell(message: str, error: BaseException | None = None) -> None:
    trace = error if os.environ.get(DEBUG) else None
    if logs.is_json():
        LOG.error("%s", message.removeprefix("weft: "), exc_info=trace)
        return
    if trace is not None:
        traceback.print_exception(trace, file=standard_error.real())
    console = Console(file=standard_error.real(), highlight=False)
    console.print(message, style="red", markup=False, soft_wrap=True)
