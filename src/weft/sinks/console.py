"""Answers printed as tables, for a look at a running stream.

**Exactly once** is not to be had from a terminal: a batch that is delivered again after a crash is printed again, under
the same number. Within one process none is.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from weft.job.sink import CommittedBatch, QueryAnswers
from weft.sinks import json_values

ROWS = 20


class ConsoleSink:
    """Prints the first answers of each query in a batch, and how many more there are.

    Parameters
    ----------
    rows
        How many rows of a query are printed.
    """

    def __init__(self, *, rows: int = ROWS, console: Console | None = None, name: str = "console") -> None:
        self.name = name
        self.rows = rows
        self._console = console or Console()
        self._last = -1

    def open(self) -> None:
        """Nothing to do."""

    def deliver(self, batch: CommittedBatch) -> None:
        """Print a batch."""
        if batch.number <= self._last:
            return
        for answers in batch.answers:
            if answers.files:
                self._console.print(self._table(batch.number, answers))
        self._last = batch.number

    def close(self) -> None:
        """Nothing to do."""

    def _table(self, batch: int, answers: QueryAnswers) -> Table:
        table = Table(*answers.schema.names, title=f"{answers.query}, batch {batch}", title_justify="left")
        count = 0
        for part in answers.tables():
            for row in part.slice(0, max(self.rows - count, 0)).to_pylist():
                table.add_row(*("NULL" if value is None else str(json_values.plain(value)) for value in row.values()))
            count += len(part)
        if count > self.rows:
            table.caption = f"and {count - self.rows:,} more"
        return table
