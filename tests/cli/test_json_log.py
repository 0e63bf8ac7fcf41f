"""With ``--log-format json`` every line is a JSON object, whoever wrote it and however the process ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.processes import free_ports

WEFT = str(Path(sys.executable).parent / "weft")
PATIENCE = 240.0
QUERIES = "CREATE VIEW hourly AS SELECT window.start AS s, count(*) AS n FROM trades GROUP BY window(ts, '1 hour');\n"

OTHERS = """
import logging, os, subprocess, sys, threading, warnings
from weft.cli import logs

logs.begin_log("info", "json", ["hunter2"])
os.write(2, b"written by a C library, with hunter2\\n")
os.write(2, b"%3|1700000000.1|FAIL|rdkafka#producer-1| [thrd:x]: refused\\n")
subprocess.run(["sh", "-c", "echo '26/01/31 10:00:00 WARN TaskSetManager: Lost task' >&2"], check=True)
subprocess.run(["sh", "-c", "echo 'WARNING: Using incubator modules: jdk.incubator.vector' >&2"], check=True)
warnings.warn("a warning of Python")
logging.getLogger("some.library").warning("a warning of a library")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
print("printed to standard error", file=sys.stderr)
logging.getLogger("weft.test").info("ours")
os.write(2, b"without an end of the line")
"""


def objects(text: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in text.splitlines()]
    assert all({"at", "level", "logger", "message"} <= line.keys() for line in lines)
    return lines


def test_whatever_is_written_to_standard_error_becomes_a_line_of_the_log() -> None:
    done = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    found = {(line["logger"], line["level"], line["message"].splitlines()[0]) for line in objects(done.stderr)}
    assert found >= {
        ("weft.stderr", "warning", "written by a C library, with ***"),
        ("weft.kafka", "error", "FAIL: [thrd:x]: refused"),
        ("weft.spark", "warning", "TaskSetManager: Lost task"),
        ("some.library", "warning", "a warning of a library"),
        ("weft.stderr", "warning", "printed to standard error"),
        ("weft.test", "info", "ours"),
        ("weft.stderr", "warning", "without an end of the line"),
    }
    assert any(logger == "py.warnings" and "a warning of Python" in message for logger, _, message in found)
    assert any("ZeroDivisionError" in line["message"] for line in objects(done.stderr))
    assert "incubator" not in done.stderr, "what Java says at every start is no news"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--nonsense",), 2, "No such option: --nonsense"),
        (("--source", "trades"), 2, "trades is not of the form NAME=SPEC"),
        (("--checkpoint", "state"), 2, "source"),
    ],
)
def test_bad_use_is_a_line_as_any_other(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    command = [WEFT, "stream", "--log-format", "json", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code
    (line,) = objects(done.stderr)
    assert line["level"] == "error" and said in line["message"]


def test_bad_settings_are_lines_too_where_the_settings_ask_for_json(tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text("log_format: json\nsource: {name: trades}\ncheckpoint: state\nnonsense: 1\n")
    done = subprocess.run([WEFT, "stream"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = objects(done.stderr)
    assert line["level"] == "error" and "nonsense" in line["message"]


def test_a_broker_that_is_away_is_told_of_in_lines_of_json(tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    times = pa.array([3_600_000_000 * hour for hour in range(5)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": times}), tmp_path / "incoming" / "1.parquet")
    (tmp_path / "queries.sql").write_text(QUERIES)
    command = [WEFT, "stream", "queries.sql", "--source", "trades=incoming", "--event-time", "ts", "--memory", "1g"]
    command += ["--checkpoint", "state", "--sink", f"kafka:answers@127.0.0.1:{free_ports(1)[0]}"]
    command += ["--log-format", "json", "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"]
    with (tmp_path / "log").open("wb") as log:
        job = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + PATIENCE
        while " is away: " not in (tmp_path / "log").read_text():
            assert job.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.1)
        os.killpg(job.pid, signal.SIGTERM)
        code = job.wait(PATIENCE)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    lines = objects((tmp_path / "log").read_text())
    assert code == 0, lines
    told = [line["message"] for line in lines if line["level"] == "warning"]
    assert any("the broker does not answer" in message for message in told), lines
    assert lines[-1]["message"] == "stopped"
