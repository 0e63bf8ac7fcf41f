"""A driver of the crash tests from outside: what it says, the processes around it, and their ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from crash.killed_driver import Life, live

TESTS = str(Path(__file__).parents[1])
FORKS = multiprocessing.get_context("forkserver")
# imports take longer than the rest of a short life: the server has done them, and is told where they are
FORKS.set_forkserver_preload(["crash.killed_driver"])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (TESTS, os.environ.get("PYTHONPATH"))))

EXECUTOR = "CoarseGrainedExecutorBackend"
PYTHON_WORKER = "pyspark.daemon"
JVM = "SparkSubmit"
PATIENCE = 3600.0
"""Seconds after which a driver that does not end hangs."""


class Driver:
    """A driver that runs; it leads a session, to which its JVM, executors and Python workers belong."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self._hearing, telling = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=live, args=(life, telling))
        self._process.start()
        telling.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def hear(self, seconds: float = PATIENCE) -> object:
        """The next thing that it says: it is ready, is frozen, has delivered a batch; None if it has ended."""
        try:
            return self._hearing.recv() if self._hearing.poll(seconds) else None
        except (EOFError, ConnectionResetError):
            return None

    def hear_batches(self, count: int) -> bool:
        """Wait until it is ready and has delivered so many batches; False if it ended before."""
        return all(self.hear() is not None for _ in range(1 + count))

    def processes(self, kind: str) -> list[int]:
        """The processes around it whose command has ``kind`` in it."""
        return [pid for pid, command in around(self.pid) if kind in command and pid != self.pid]

    def kill(self, pid: int) -> bool:
        """End a process as ``kill -9`` does; False if it was gone."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def wake(self) -> None:
        """Have it go on."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def end(self) -> int:
        """Wait for its end; its exit code, negative if a signal ended it."""
        self._process.join(PATIENCE)
        code = self._process.exitcode
        assert code is not None, f"the driver {self.pid} hangs; its log is {self.life.folder / 'driver.log'}"
        self._hearing.close()
        return int(code)

    def sweep(self) -> None:
        """End all that is left around it."""
        for pid, _ in around(self.pid):
            self.kill(pid)


def around(session: int) -> Iterator[tuple[int, str]]:
    """The processes of a session and their commands."""
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    yield int(place.name), (place / "cmdline").read_text().replace("\0", " ")
