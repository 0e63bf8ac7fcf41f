"""SIGINT and SIGTERM: a job ends after its batch, at the second request now; other commands end at once, tidied up."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import itertools, sys, threading, time
from weft.cli.signals import stopping

def say(text):
    print(text, flush=True)

with stopping(threading.Event(), say, itertools.count(0.0, float(sys.argv[2])).__next__) as stop:
    say("ready")
    while not stop.wait(0.05):
        pass
    if sys.argv[1] == "long batch":
        time.sleep(60)
say("committed")
"""


TIDY = """
import time
from weft.cli.signals import Ended, ending

try:
    with ending():
        try:
            print("ready", flush=True)
            time.sleep(60)
        finally:
            print("tidied up", flush=True)
except Ended as ended:
    print(ended, flush=True)
    raise SystemExit(ended.code)
"""


def started(kind: str, seconds_apart: float = 5.0) -> subprocess.Popen[str]:
    return ready(PROGRAM, kind, str(seconds_apart))


def ready(text: str, *words: str) -> subprocess.Popen[str]:
    program = subprocess.Popen([sys.executable, "-c", text, *words], stdout=subprocess.PIPE, text=True)
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


def test_a_signal_to_the_process_and_to_its_group_is_one_request() -> None:
    program = started("short batch", seconds_apart=0.1)
    program.send_signal(signal.SIGTERM)
    program.send_signal(signal.SIGTERM)
    out, _ = program.communicate(timeout=30)
    assert out == "stopping after this batch; once more to stop at once\ncommitted\n"
    assert program.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_without_batches_ends_at_once_and_tidies_up(number: signal.Signals) -> None:
    program = ready(TIDY)
    program.send_signal(number)
    program.send_signal(number)
    out, _ = program.communicate(timeout=30)
    assert out == f"tidied up\nended by {number.name}\n"
    assert program.returncode == 128 + number
