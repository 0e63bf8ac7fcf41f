"""``weft add``, ``drop``, ``pause``, ``resume`` and ``queries``: the queries of a job, while it runs or before."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from heapq import nlargest
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.catalog import Catalog, Entry, is_running
from weft.catalog.status import QueryFigures, silence
from weft.cli.checkpoint import CatalogUrl, Checkpoint, Config, catalog_at
from weft.cli.figures import NONE, count, instant, size, span
from weft.cli.run import read_queries
from weft.errors import UseError, WeftError
from weft.query.durations import cql_duration
from weft.query.sparksql import parse_file

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="The queries' names.")]
All = Annotated[bool, typer.Option("--all", help="All queries.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the running job has decided.")]
Timeout = Annotated[
    str, typer.Option(metavar="DURATION", help="How long to wait: '20 seconds', '2 min', or a number of seconds.")
]

_LOOK_EVERY = 0.1
_FIGURES = ("answers", "rows", "time", "state", "lag", "last answer (UTC)")
_STYLES = {"active": "green", "refused": "red", "paused": "yellow", "pending": "cyan"}


def add_command(
    text: Annotated[str, typer.Argument(metavar="FILE_OR_SQL", help="A file of queries, or a query; - reads stdin.")],
    checkpoint: Checkpoint = None,
    catalog: CatalogUrl = None,
    config: Config = None,
    wait: Wait = True,
    timeout: Timeout = "2 minutes",
) -> None:
    """Add queries to a job: it answers them from its next batch on, or says why not.

    Example: `weft add "SELECT max(price) FROM trades GROUP BY window(ts, '1 hour')" --checkpoint state`
    """
    sql = _sql(text)
    queries = parse_file(sql)
    if not queries:
        raise typer.BadParameter("there is no query in it", param_hint="FILE_OR_SQL")
    patience = _seconds(timeout)
    with catalog_at(checkpoint, catalog, config) as found:
        added = found.add(sql)
        places = {entry.id: query.at for entry, query in zip(added, queries, strict=True)}
        _follow(
            found, added, patience if wait else None, lambda entry: in_own_text(_reason(entry), sql, places[entry.id])
        )


def drop_command(
    names: Names = None,
    checkpoint: Checkpoint = None,
    catalog: CatalogUrl = None,
    config: Config = None,
) -> None:
    """Drop queries from a job, from its next batch on; what was answered stays.

    Example: `weft drop hourly --checkpoint state`
    """
    with catalog_at(checkpoint, catalog, config) as found:
        _say_changed(found, found.drop(*_wanted(names)), "dropped")


def pause_command(
    names: Names = None,
    every: All = False,
    checkpoint: Checkpoint = None,
    catalog: CatalogUrl = None,
    config: Config = None,
) -> None:
    """Have queries not answered for a while.

    Example: `weft pause hourly --checkpoint state`
    """
    with catalog_at(checkpoint, catalog, config) as found:
        chosen = _all(found.entries("pending", "active")) if every else _wanted(names)
        _say_changed(found, found.pause(*chosen), "paused")


def resume_command(
    names: Names = None,
    every: All = False,
    checkpoint: Checkpoint = None,
    catalog: CatalogUrl = None,
    config: Config = None,
    wait: Wait = True,
    timeout: Timeout = "2 minutes",
) -> None:
    """Have paused queries answered again, as if they had just been added.

    Example: `weft resume hourly --checkpoint state`
    """
    patience = _seconds(timeout)
    with catalog_at(checkpoint, catalog, config) as found:
        chosen = _all(found.entries("paused")) if every else _wanted(names)
        _follow(found, found.resume(*chosen), patience if wait else None)


def queries_command(
    checkpoint: Checkpoint = None,
    catalog: CatalogUrl = None,
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Only JSON on stdout.")] = False,
    history: Annotated[bool, typer.Option("--history", help="Everything that happened, and the plans.")] = False,
) -> None:
    """List the queries of a job with their states and figures; times are UTC.

    Figures are those of the job's last start: answers, rows of the batches that a query took part in, its share of
    their time and of the state, how long after its end its last window was answered, and when.

    Example: `weft queries --checkpoint state`
    """
    with catalog_at(checkpoint, catalog, config) as found:
        if as_json:
            json.dump(_as_json(found, history), sys.stdout, default=lambda value: value.isoformat())
            sys.stdout.write("\n")
            return
        console = Console(highlight=False)
        console.print(
            _history_table(found) if history else _table(found.entries(), found.first_windows(), found.figures())
        )


def _sql(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    # a query has white space, and so may a file's name
    is_file = len(text) < 4096 and "\n" not in text and Path(text).is_file()
    if is_file or not any(letter.isspace() for letter in text):
        return read_queries(Path(text), "FILE_OR_SQL")
    return text


def _seconds(timeout: str) -> float:
    """How long to wait, in seconds.

    Examples
    --------
    >>> _seconds("20"), _seconds("1.5"), _seconds("2 minutes"), _seconds("250 ms")
    (20.0, 1.5, 120.0, 0.25)
    """
    if re.fullmatch(r"\d+(\.\d*)?", timeout.strip()):
        return float(timeout)
    try:
        return cql_duration(timeout) / 1e6
    except ValueError as error:
        message = f"{error}; write a number of seconds, such as 20, or a duration with its unit, such as '2 minutes'"
        raise typer.BadParameter(message, param_hint="--timeout") from None


def _wanted(names: list[str] | None) -> list[str]:
    if not names:
        raise typer.BadParameter("say which queries; weft queries lists them", param_hint="NAME...")
    return list(dict.fromkeys(names))


def _all(entries: Sequence[Entry]) -> list[str]:
    return [entry.name for entry in entries]


def _say_changed(catalog: Catalog, entries: Sequence[Entry], what: str) -> None:
    when = "from the next batch on" if is_running(catalog.status()) else "when a job starts: none is running"
    typer.echo(f"{', '.join(entry.name for entry in entries) or 'no query'} {what}, {when}")


def in_own_text(reason: str, sql: str, at: int) -> str:
    """Why a query was refused, with line and column as they count in the text of which it is a part, from ``at`` on."""

    def moved(found: re.Match[str]) -> str:
        line, column = int(found[1]), int(found[2])
        beside = at - (sql.rfind("\n", 0, at) + 1) if line == 1 else 0
        return f"  line {line + sql[:at].count(chr(10))}, column {column + beside}:"

    return re.sub(r"^  line (\d+), column (\d+):$", moved, reason, count=1, flags=re.MULTILINE)


def _reason(entry: Entry) -> str:
    return entry.reason or f"query {entry.name} was refused"


def _follow(
    catalog: Catalog, entries: Sequence[Entry], patience: float | None, reason: Callable[[Entry], str] = _reason
) -> None:
    """Say what the running job decides; whoever does not wait, or waits in vain, learns what happens next."""
    names = ", ".join(entry.name for entry in entries)
    if patience is None:
        typer.echo(f"{names or 'no query'} pending, until a job's next batch")
        return
    decided = _decided(catalog, entries, time.monotonic() + patience)
    firsts = catalog.first_windows()
    for entry in decided:
        if entry.state == "active":
            window = f", its first window starts at {instant(firsts[entry.id])}" if entry.id in firsts else ""
            typer.echo(f"{entry.name} is answered from batch {entry.batch} on{window}")
        elif entry.state in ("paused", "dropped"):
            typer.echo(f"{entry.name} was {entry.state} meanwhile")
    refused = [reason(entry) for entry in decided if entry.state == "refused"]
    waiting = ", ".join(entry.name for entry in decided if entry.state == "pending")
    if waiting:
        _say_waiting(catalog, waiting, patience)
    if refused:
        raise UseError("\n\n".join(refused))


def _decided(catalog: Catalog, entries: Sequence[Entry], deadline: float) -> list[Entry]:
    """The entries when none is pending any more, no job runs any more, or time is up."""
    ids = {entry.id for entry in entries}
    while True:
        # in this order: what a job decided before it ended counts
        alive = is_running(catalog.status())
        found = [entry for entry in catalog.entries() if entry.id in ids]
        if not alive or time.monotonic() > deadline or all(entry.state != "pending" for entry in found):
            return found
        time.sleep(_LOOK_EVERY)


def _say_waiting(catalog: Catalog, names: str, patience: float) -> None:
    status = catalog.status()
    if is_running(status):
        raise WeftError(
            f"the running job has not decided about {names} within {span(patience)}: its batch may be a long one; "
            "weft queries tells how it goes on"
        )
    heard = f"; the last one was heard of {span(silence(status))} ago" if status else ""
    typer.echo(f"no job is running with this checkpoint{heard}: pending for the next start: {names}")


def _table(entries: Sequence[Entry], firsts: Mapping[int, int], figures: Mapping[str, QueryFigures]) -> Table:
    """The queries that are live, or were refused and not added again."""
    latest = {entry.name.lower(): entry.id for entry in entries}
    table = Table("query", "state", "from batch", "first window (UTC)", box=None, header_style="dim")
    for column in _FIGURES:
        table.add_column(column, justify="right")
    table.add_column("added (UTC)")
    table.add_column("why")
    for entry in entries:
        if entry.live or (entry.state == "refused" and entry.id == latest[entry.name.lower()]):
            state = Text(entry.state, style=_STYLES[entry.state])
            batch = NONE if entry.batch is None else f"{entry.batch:,}"
            first = instant(firsts.get(entry.id))
            told = shown_figures(figures.get(entry.name) if entry.state == "active" else None)
            why = _first_line(entry.reason)
            table.add_row(Text(entry.name), state, batch, first, *told, _moment(entry.added_at), why)
    return table


def shown_figures(figures: QueryFigures | None) -> tuple[str, ...]:
    """The figures of a query, in the order of their columns."""
    if figures is None:
        return (NONE,) * len(_FIGURES)
    answered = figures["answered_at"]
    return (
        count(figures["answers"]),
        count(figures["rows"]),
        span(figures["seconds"]),
        size(figures["state_bytes"]),
        span(figures["lag_seconds"]),
        instant(None if answered is None else int(answered * 1e6)),
    )


def busiest(figures: Mapping[str, QueryFigures], most: int) -> Table:
    """The queries that take most time."""
    table = Table("query", box=None, header_style="dim")
    for column in _FIGURES:
        table.add_column(column, justify="right")
    for name in nlargest(most, figures, key=lambda name: figures[name]["seconds"]):
        table.add_row(Text(name), *shown_figures(figures[name]))
    return table


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _first_line(text: str | None) -> Text:
    """As it is: names and messages may hold brackets, which are no markup."""
    return Text(text.splitlines()[0] if text else "")


def _history_table(catalog: Catalog) -> Table:
    table = Table("version", "at (UTC)", "what", "query", "batch", "", box=None, header_style="dim")
    lines: list[tuple[datetime, str, str, str, int | None, str | None]] = [
        (change.at, f"{change.version}", change.action, change.name, change.batch, change.note)
        for change in catalog.changes()
    ]
    lines += [(plan.recorded_at, "", f"plan {plan.version}", "", plan.batch, None) for plan in catalog.plans()]
    for at, version, what, name, batch, note in sorted(lines, key=lambda line: line[0]):
        number = NONE if batch is None else f"{batch:,}"
        table.add_row(version, _moment(at), what, Text(name), number, _first_line(note))
    return table


def _as_json(catalog: Catalog, history: bool) -> object:
    firsts, figures = catalog.first_windows(), catalog.figures()
    entries = [
        {
            **asdict(entry),
            "first_window": firsts.get(entry.id),
            "figures": figures.get(entry.name) if entry.state == "active" else None,
        }
        for entry in catalog.entries()
    ]
    if not history:
        return entries
    changes = [asdict(change) for change in catalog.changes()]
    return {"queries": entries, "changes": changes, "plans": [asdict(plan) for plan in catalog.plans()]}
