"""Starting a server for the tests, waiting until it answers, and ending it whatever happens; programs that end."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
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
