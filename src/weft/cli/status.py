"""``weft status``: how a job is, from any process."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console

from weft.catalog import is_running
from weft.catalog.status import silence
from weft.cli.checkpoint import CatalogUrl, Checkpoint, Config, catalog_at
from weft.cli.figures import span
from weft.cli.queries import busiest
from weft.cli.view import picture

BUSIEST = 5
"""So many queries are shown; weft queries shows all."""


def status_command(
    checkpoint: Checkpoint = None,
    catalog: CatalogUrl = None,
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Only JSON on stdout.")] = False,
) -> None:
    """Show how a job is: rows a second, watermark, answers, state, errors, and its busiest queries.

    Example: `weft status --checkpoint state --json`
    """
    with catalog_at(checkpoint, catalog, config) as found:
        status = found.status()
        running = is_running(status)
        figures = found.figures()
        if as_json:
            told = {} if status is None else {**status, "query_figures": figures}
            json.dump({"running": running, **told}, sys.stdout)
            sys.stdout.write("\n")
            return
        if status is None:
            typer.echo("no job has run with this checkpoint yet")
            return
        console = Console(highlight=False)
        console.print(picture(status))
        if figures:
            console.print(busiest(figures, BUSIEST))
        if not running and status.get("state") not in ("stopped", "drained", "failed"):
            typer.echo(f"not heard of for {span(silence(status))}: it is gone, or cannot reach the catalog")
