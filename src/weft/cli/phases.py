"""How far a command is: a bar on a terminal, elsewhere a line when a part begins and now and then while it lasts."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from weft.cli import standard_error

EVERY = 10.0
"""Seconds after which a part that lasts is told of again."""


class Phases:
    """The parts of a command, one after another.

    Examples
    --------
    >>> import sys
    >>> with Phases(Console(file=sys.stdout, force_terminal=False)) as phases:
    ...     phases.begin("writing")
    ...     phases.at(1, 2)
    writing ...
    """

    def __init__(self, console: Console | None = None, every: float = EVERY) -> None:
        self.console = console or Console(file=standard_error.real(), highlight=False)
        self.every = every
        self._ended = threading.Event()
        self._phase, self._done, self._of, self._since = "", 0, 0, 0.0
        self._progress: Progress | None = None
        if self.console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            # what goes to a file goes there, also while there is a bar
            apart = sys.stdout.isatty()
            self._progress = Progress(
                *columns, TimeElapsedColumn(), console=self.console, transient=True, redirect_stdout=apart
            )
            self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Phases:
        if self._progress is not None:
            self._progress.start()
        else:
            self._ended.clear()
            threading.Thread(target=self._tell, name="weft-phases", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._progress is not None:
            self._progress.stop()

    def begin(self, phase: str) -> None:
        """A new part; nobody knows yet how much there is to do."""
        self._phase, self._done, self._of, self._since = phase, 0, 0, time.monotonic()
        if self._progress is not None:
            self._progress.reset(self._task, description=phase, total=None)
        else:
            self.console.print(f"{phase} ...", markup=False)

    def at(self, done: int, of: int) -> None:
        """So much of the part is done."""
        self._done, self._of = done, of
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=of or None)

    def _tell(self) -> None:
        while not self._ended.wait(self.every):
            if self._phase and time.monotonic() - self._since >= self.every / 2:
                far = f"{self._done:,} of {self._of:,}, " if self._of else ""
                self.console.print(f"{self._phase}: {far}{time.monotonic() - self._since:.0f} s", markup=False)
