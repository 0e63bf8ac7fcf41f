"""Starting a server for the tests, waiting until it answers, and ending it whatever happens; programs that end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any


class ServiceError(Exception):
    """A service did not start; the message holds what it said."""


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def start(
    command: Sequence[str], log: Path, answers: Callable[[], object], seconds: float = 90, **how: Any
) -> subprocess.Popen[bytes]:
    """Start a server and wait until ``answers`` raises no error."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **how)
    end = time.monotonic() + seconds
    why: object = ""
    while process.poll() is None and time.monotonic() < end:
        try:
            answers()
        except Exception as error:
            why = error
            time.sleep(0.1)
        else:
            return process
    stop(process)
    said = log.read_text(errors="replace")[-3000:]
    raise ServiceError(f"{command[0]} did not start (status {process.returncode}, {why}); it said:\n{said}")


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                found += [int(place.name)] if parent == pid else []
    return found


@dataclass
class Service:
    """A server that can be away for a while, and come back with its data."""

    command: Sequence[str]
    log: Path
    answers: Callable[[], object]
    """Raises no error when the server answers."""
    how: dict[str, Any] = field(default_factory=dict)
    by: signal.Signals = signal.SIGTERM
    """How it is ended."""
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start it, or start it again."""
        self.process = start(self.command, self.log, self.answers, **self.how)

    def stop(self) -> None:
        """End it; its data stay."""
        stop(self.process, by=self.by)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """It is ended, and started again afterwards: it refuses connections meanwhile."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It stands still with all its processes: it takes connections, and answers nobody."""
        pids = [self.process.pid, *children(self.process.pid)]
        try:
            send(pids, signal.SIGSTOP)
            yield
        finally:
            send(pids, signal.SIGCONT)


def send(pids: Iterable[int], what: signal.Signals) -> None:
    """Tell processes, those that are gone by now aside: a database ends a connection's process when that closes."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, what)


def stop(process: subprocess.Popen[bytes], *, by: signal.Signals = signal.SIGTERM) -> None:
    """End a server, with force if it does not go."""
    with suppress(ProcessLookupError):
        process.send_signal(by)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def finished(command: Sequence[str], folder: Path, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; for what it leaves behind, as Spark its Java for a moment, nobody waits."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        ended = subprocess.run(command, cwd=folder, stdout=out, stderr=err, check=False, timeout=seconds)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, ended.returncode, out.read(), err.read())
