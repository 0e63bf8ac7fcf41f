"""SIGINT and SIGTERM: once for after the batch, twice for now."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading, time
from weft.cli.signals import stopping

def say(text):
    print(text, flush=True)

with stopping(threading.Event(), say) as stop:
    say("ready")
    while not stop.wait(0.05):
        pass
    if sys.argv[1] == "long batch":
        time.sleep(60)
say("committed")
"""


def started(kind: str) -> subprocess.Popen[str]:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, kind], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    return program


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_the_batch_end(number: signal.Signals) -> None:
    program = started("short batch")
    program.send_signal(number)
    out, _ = program.communicate(timeout=30)
    assert out == "stopping after this batch; once more to stop at once\ncommitted\n"
    assert program.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_stops_at_once(number: signal.Signals) -> None:
    program = started("long batch")
    program.send_signal(number)
    assert program.stdout is not None
    assert program.stdout.readline().startswith("stopping after")
    program.send_signal(number)
    out, _ = program.communicate(timeout=30)
    assert out == "stopped at once; the batch that was under way will be run again\n"
    assert program.returncode == 128 + number
