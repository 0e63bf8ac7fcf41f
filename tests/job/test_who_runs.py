"""Who runs on a checkpoint: one job that lives is enough; one that is dead keeps nobody waiting."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from live.test_live_engine import SUMS, Folders, wait
from weft.errors import UseError
from weft.job import lease
from weft.job.checkpoint import Checkpoint
from weft.job.lease import FencedError, Lease, refuse_if_held

HOLDING = """
import sys, time
from weft.job.checkpoint import Checkpoint
from weft.job.lease import Lease
lease = Lease.take(Checkpoint(sys.argv[1]), take_over=False)
lease.keep()
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(str(tmp_path / "state"))


def holder(checkpoint: Checkpoint) -> subprocess.Popen[bytes]:
    """Another process that holds the checkpoint."""
    process = subprocess.Popen([sys.executable, "-c", HOLDING, checkpoint.root], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_second_job_is_refused_with_host_pid_and_heartbeat_and_taken_on_purpose(checkpoint: Checkpoint) -> None:
    process = holder(checkpoint)
    try:
        with pytest.raises(UseError) as refused:
            Lease.take(checkpoint, take_over=False)
        said = rf"pid {process.pid} on host {re.escape(socket.gethostname())}, whose heart beat \d\.\d s ago"
        assert re.search(said, str(refused.value))
        assert "--take-over" in str(refused.value)
        taken = Lease.take(checkpoint, take_over=True)
        taken.check()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("reaped", [True, False])
def test_after_kill_9_on_the_same_machine_the_next_job_starts_at_once(checkpoint: Checkpoint, reaped: bool) -> None:
    process = holder(checkpoint)
    process.kill()
    if reaped:
        process.wait()
    else:
        wait(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    began = time.monotonic()
    Lease.take(checkpoint, take_over=False)
    assert time.monotonic() - began < 1
    process.wait()


def test_a_later_process_of_the_same_number_is_not_taken_for_the_holder(checkpoint: Checkpoint) -> None:
    Lease.take(checkpoint).keep()
    change_holder(checkpoint, born="1")
    refuse_if_held(checkpoint)


def test_a_job_that_ended_in_peace_keeps_nobody_waiting(checkpoint: Checkpoint) -> None:
    held = Lease.take(checkpoint)
    held.keep()
    with pytest.raises(UseError, match="this very process"):
        Lease.take(checkpoint, take_over=False)
    held.release()
    Lease.take(checkpoint, take_over=False)


def change_holder(checkpoint: Checkpoint, **fields: object) -> None:
    record = f"lease/{lease.newest(checkpoint):010}.json"
    data = checkpoint.read(record)
    assert data is not None
    checkpoint.put(record, json.dumps({**json.loads(data), **fields}).encode())


def test_a_job_on_another_machine_lives_as_long_as_its_heart_beats(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Lease.take(checkpoint)
    held.keep()
    change_holder(checkpoint, host="elsewhere", pid=4711)
    with pytest.raises(UseError, match="pid 4711 on host elsewhere, whose heart beat"):
        Lease.take(checkpoint, take_over=False)
    held._released.set()  # it dies without a word
    assert held._heart is not None
    held._heart.join()
    monkeypatch.setattr(lease, "STILL", 1.0)
    began = time.monotonic()
    Lease.take(checkpoint, take_over=False)
    assert 0.9 < time.monotonic() - began < 5


def test_a_job_that_was_taken_over_notices_it_by_itself(checkpoint: Checkpoint) -> None:
    held = Lease.take(checkpoint)
    held.keep()
    Lease.take(checkpoint)
    wait(lambda: held.lost is not None)
    with pytest.raises(FencedError):
        held.check()


def test_a_second_engine_on_a_running_one_is_refused_and_can_take_over(spark: object, tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.write(0)
    first = folders.start(spark, SUMS)
    wait(lambda: first.status()["batch"] == 0)
    with pytest.raises(UseError, match=r"a job runs on .*checkpoint already: this very process"):
        folders.start(spark, None)
    second = folders.start(spark, None, take_over=True)
    with pytest.raises(FencedError, match="taken over"):
        first.await_termination(60)
    assert first.status()["state"] == "failed"
    folders.write(1)
    wait(lambda: second.status()["batch"] == 1)
    second.stop()
    assert folders.start(spark, None, available_now=True).await_termination(), f"pid {os.getpid()} let go"
