"""What people see of a running job: a live view on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from weft.catalog import Status
from weft.catalog.status import BATCH_FIGURES, SinkStatus
from weft.cli.figures import count, instant, size, span
from weft.cli.logs import fields

LOG = logging.getLogger("weft.stream")

Report = Callable[[Status], None]
"""Told the job's status, after every batch and in between."""

_COLOURS = {"running": "green", "starting": "cyan", "degraded": "yellow", "stopping": "yellow", "failed": "red"}
_SHOWN_ERRORS = 3
_LINE_EVERY = 1.0
_ENDS = ("stopped", "drained", "failed")


@contextmanager
def shown(console: Console) -> Iterator[Report]:
    """Show the statuses that are reported while the block runs: a view on a terminal, else lines."""
    if not console.is_terminal:
        yield Lines().report
        return
    with View(console) as view:
        yield view.report


class View:
    """Lines until there is something to look at, and then a panel below all lines, drawn again and again."""

    def __init__(self, console: Console) -> None:
        self._lines = Lines()
        self._latest: Status = {}
        self._live = Live(get_renderable=lambda: picture(self._latest), console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def report(self, status: Status) -> None:
        """Show this from now on."""
        self._latest = status
        if not self._live.is_started:
            if not status.get("batches"):
                self._lines.report(status)
                return
            self._live.start(refresh=True)
        elif status.get("state") in _ENDS:
            self._live.refresh()


class Lines:
    """A log line a batch, but not more than one a second, and one for every new error and state."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._state: str | None = None
        self._batch: int | None = None
        self._error_at = 0.0
        self._said_at = float("-inf")

    def report(self, status: Status) -> None:
        """Say what is new."""
        for trouble in status.get("errors", []):
            if trouble["at"] > self._error_at:
                self._error_at = trouble["at"]
                LOG.error("%s", trouble["message"])
        state = status.get("state")
        if state != self._state:
            LOG.info("%s", state, extra=fields(**_figures(status)))
            self._state, self._batch, self._said_at = state, status.get("batch"), self._clock()
        elif status.get("batch") != self._batch and self._clock() - self._said_at >= _LINE_EVERY:
            LOG.info("batch", extra=fields(**_figures(status)))
            self._batch, self._said_at = status.get("batch"), self._clock()


def _figures(status: Status) -> dict[str, object]:
    """What the last batch tells: all of it as it was when that batch was committed, and nothing that came since."""
    return {key: value for key, value in status.items() if key in BATCH_FIGURES and value is not None}


def picture(status: Status, now: float | None = None) -> RenderableType:
    """The status as a panel."""
    state = status.get("state", "starting")
    colour = _COLOURS.get(state, "dim")
    started = status.get("started")
    running = f" for {span((time.time() if now is None else now) - started)}" if started else ""
    if state in _ENDS:
        running = ""
    parts: list[RenderableType] = [_figures_table(status)]
    if status.get("sinks"):
        sinks = ", ".join(f"{name} ({_delivered(sink)})" for name, sink in status["sinks"].items())
        parts.append(Text(f"delivered to {sinks}", style="dim"))
    parts += [_trouble(outage["since"], f"{outage['what']}: {outage['error']}") for outage in status.get("outages", [])]
    parts += [_trouble(trouble["at"], trouble["message"]) for trouble in status.get("errors", [])[-_SHOWN_ERRORS:]]
    title = Text.assemble(("weft ", "bold"), (state, colour), running)
    return Panel(Group(*parts), title=title, title_align="left", border_style=colour, expand=False)


def _delivered(sink: SinkStatus) -> str:
    waiting = f", {sink['waiting']:,} waiting" if sink["state"] != "ok" else ""
    return f"batch {sink['batch']:,}{waiting}"


def _figures_table(status: Status) -> Table:
    table = Table.grid(padding=(0, 2))
    for style in ("dim", "bold", ""):
        table.add_column(style=style)
    rows, answers = status.get("rows_per_second"), status.get("answers_per_second")
    table.add_row("rows", f"{count(rows)}/s", f"{count(status.get('rows'))} since the start")
    batch = f"batch {count(status.get('batch'))}, {count(status.get('batch_rows'))} rows"
    table.add_row("batch", span(status.get("batch_seconds")), batch)
    table.add_row("watermark", instant(status.get("watermark")), f"lag {span(status.get('lag_seconds'))}")
    lost = f"{count(status.get('bad_rows', 0))} bad, {count(status.get('rows_without_time', 0))} without event time"
    table.add_row("late rows", count(status.get("late_rows", 0)), lost)
    table.add_row("answers", f"{count(answers)}/s", f"{count(status.get('answers'))} since the start")
    trees = "1 tree" if status.get("trees") == 1 else f"{count(status.get('trees'))} trees"
    paused = f", {status['paused']:,} paused" if status.get("paused") else ""
    table.add_row("queries", count(status.get("queries")), f"in {trees}{paused}")
    buckets = status.get("buckets")
    table.add_row("state", size(status.get("state_bytes")), f"in {buckets} buckets on the executors" if buckets else "")
    return table


def _trouble(at: float, message: str) -> Text:
    first = message.strip().splitlines()[0] if message.strip() else ""
    return Text(f"{datetime.fromtimestamp(at, UTC):%H:%M:%S} {first}", style="red", overflow="ellipsis", no_wrap=True)
