"""Real jobs, ended from outside as systemd, Kubernetes, ``timeout`` and terminals do it: no trace, nothing lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.processes import finished

WEFT = str(Path(sys.executable).parent / "weft")
PATIENCE = 240.0
HOUR = 3_600_000_000
FILES = 20
QUERIES = """
CREATE VIEW hourly AS SELECT window.start AS s, count(*) AS n FROM trades GROUP BY window(ts, '1 hour');
CREATE VIEW doubled AS SELECT window.start AS s, 2 * sum(v) AS v FROM trades GROUP BY window(ts, '1 hour');
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Twenty hours of rows in as many files, of which a batch takes one: there is a batch under way all the time."""
    (tmp_path / "incoming").mkdir()
    for number in range(FILES):
        times = [HOUR * number + 60_000_000 * minute for minute in range(60)]
        table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "v": pa.array(range(60), pa.int64())})
        file = tmp_path / "incoming" / f"{number:03}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_700_000_000 + number,) * 2)  # Spark takes the oldest first
    (tmp_path / "queries.sql").write_text(QUERIES)
    (tmp_path / "weft.yaml").write_text(
        "queries: queries.sql\nsource: {name: trades, spec: incoming, event_time: ts, max_files: 1}\n"
        "checkpoint: state\nout: answers\nlog_format: json\nmemory: 1g\nfinals: executors\n"
        "spark: {spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1'}\n"
    )
    return tmp_path


@contextmanager
def started(project: Path, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a group of its own, which is killed if a test leaves it behind."""
    with (project / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=project, stdout=log, stderr=log, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def family(pid: int) -> list[int]:
    """A process, and all that it or they have started."""
    lines = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[int]] = {}
    for line in lines.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def log_lines(project: Path) -> list[dict[str, Any]]:
    """Every line, which has to be a JSON object each."""
    lines = [json.loads(line) for line in (project / "log").read_text().splitlines()]
    assert all(isinstance(line, dict) for line in lines)
    return lines


def wait_for_batch(project: Path, process: subprocess.Popen[bytes], at_least: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, (project / "log").read_text()
        batches = [int(number) for number in re.findall(r'"batch": (\d+)', (project / "log").read_text())]
        if max(batches, default=-1) >= at_least:
            return
        time.sleep(0.1)
    raise AssertionError((project / "log").read_text())


def assert_ended_in_peace(project: Path, code: int) -> int:
    """No trace, no error, and the last word is that it was stopped; gives the last batch."""
    lines = log_lines(project)
    assert code == 0, lines
    assert [line for line in lines if line["level"] in ("warning", "error", "critical")] == []
    assert "stopping after this batch; once more to stop at once" in [line["message"] for line in lines]
    assert lines[-1]["message"] == "stopped"
    assert not any("Traceback" in line["message"] or "\tat " in line["message"] for line in lines)
    return int(lines[-1]["batch"])


def answers(project: Path, query: str, column: str) -> Counter[tuple[int, int]]:
    return Counter(
        (row["s"].timestamp() // 3600, row[column])
        for file in (project / "answers" / f"query={query}").glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    )


def assert_all_is_answered(project: Path) -> None:
    """Once each, by one who goes on where the last one was."""
    rest = finished([WEFT, "stream", "--available-now", "--drain", "--take-over"], project, PATIENCE)
    assert rest.returncode == 0, rest.stderr
    assert answers(project, "hourly", "n") == Counter((hour, 60) for hour in range(FILES))
    assert answers(project, "doubled", "v") == Counter((hour, 2 * sum(range(60))) for hour in range(FILES))


def test_a_signal_to_all_of_its_processes_ends_a_job_after_its_batch(project: Path) -> None:
    # as systemd does it
    with started(project, [WEFT, "stream"]) as job:
        wait_for_batch(project, job, 1)
        everyone = family(job.pid)
        assert len(everyone) > 3, "the job, Java, the workers' daemon and workers"
        for pid in everyone:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        code = job.wait(PATIENCE)
    assert 0 < assert_ended_in_peace(project, code) < FILES - 1
    assert_all_is_answered(project)


@pytest.mark.long
def test_a_signal_to_its_group_ends_a_job_after_its_batch_and_its_death_ends_all_others(project: Path) -> None:
    # as when its time is up: `timeout` tells its child, and then all of its group
    with started(project, ["timeout", "--preserve-status", "600", WEFT, "stream"]) as job:
        wait_for_batch(project, job, 1)
        job.send_signal(signal.SIGTERM)
        code = job.wait(PATIENCE)
    first = assert_ended_in_peace(project, code)
    # as a terminal does it
    with started(project, [WEFT, "stream"]) as job:
        wait_for_batch(project, job, first + 2)
        os.killpg(job.pid, signal.SIGINT)
        code = job.wait(PATIENCE)
    second = assert_ended_in_peace(project, code)
    assert first < second < FILES - 1
    with started(project, [WEFT, "stream"]) as job:
        wait_for_batch(project, job, second + 1)
        everyone = family(job.pid)
        job.kill()
        deadline = time.monotonic() + PATIENCE
        while any(map(is_there, everyone[1:])):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert_all_is_answered(project)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_run_that_is_ended_says_so_in_one_line_and_leaves_nothing_behind(
    project: Path, number: signal.Signals
) -> None:
    command = [WEFT, "run", "queries.sql", "--source", "trades=incoming", "--event-time", "ts", "--out", "batch"]
    with started(project, command) as run:
        deadline = time.monotonic() + PATIENCE
        while not list(project.glob("batch.staging-*")):
            assert run.poll() is None and time.monotonic() < deadline, (project / "log").read_text()
            time.sleep(0.02)
        os.killpg(run.pid, number)
        code = run.wait(PATIENCE)
    *before, last = (project / "log").read_text().splitlines()
    assert last == f"weft: ended by {number.name}"
    assert all(re.fullmatch(r"(compiling|starting|reading|answering) .*( \.\.\.| s)", line) for line in before), before
    assert code == 128 + number
    assert sorted(path.name for path in project.iterdir()) == ["incoming", "log", "queries.sql", "weft.yaml"]
