"""A real job, told and watched from other processes: added to, dropped from, scraped, stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cli.deployed import metrics_in_use
from services.processes import finished

WEFT = str(Path(sys.executable).parent / "weft")
QUERIES = "CREATE VIEW hourly AS SELECT window.start AS s, count(*) AS n FROM trades GROUP BY window(ts, '1 hour');\n"
DAILY = "CREATE VIEW daily AS SELECT window.start AS s, sum(v) AS v FROM trades GROUP BY window(ts, '1 day')"
ELSEWHERE = "CREATE VIEW other AS SELECT count(*) AS n FROM quotes GROUP BY window(ts, '1 day')"
HOUR = 3_600_000_000
PATIENCE = 240.0


def put_rows(folder: Path, number: int) -> None:
    """A file with two hours of rows, a minute apart."""
    times = [2 * HOUR * number + 60_000_000 * minute for minute in range(120)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "v": pa.array(range(120), pa.int64())})
    pq.write_table(table, folder / f".{number}.parquet")
    (folder / f".{number}.parquet").rename(folder / f"{number}.parquet")


def weft_program(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return finished([WEFT, *words], folder, PATIENCE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "incoming").mkdir()
    put_rows(tmp_path / "incoming", 0)
    (tmp_path / "queries.sql").write_text(QUERIES)
    (tmp_path / "weft.yaml").write_text(
        "queries: queries.sql\nsource: {name: trades, spec: incoming, event_time: ts}\ncheckpoint: state\n"
        "out: answers\ntrigger: 300 ms\nlog_format: json\nmetrics_port: 0\nmemory: 1g\n"
        "spark: {spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1'}\n"
    )
    return tmp_path


@pytest.fixture
def job(project: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (project / "log").open("wb") as log:
        process = subprocess.Popen([WEFT, "stream"], cwd=project, stdout=log, stderr=log)
        yield process
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


def status(weft: Callable[..., Any]) -> dict[str, object]:
    done = weft("status", "--json")
    return json.loads(done.out) if done.code == 0 else {}


def wait_for(project: Path, weft: Callable[..., Any], job: subprocess.Popen[bytes], batch: int) -> dict[str, object]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert job.poll() is None, (project / "log").read_text()
        told = status(weft)
        if told.get("running") and isinstance(told.get("batch"), int) and int(str(told["batch"])) >= batch:
            return told
        time.sleep(0.2)
    raise AssertionError((project / "log").read_text())


def test_a_running_job_is_changed_watched_and_stopped_from_outside(
    project: Path, weft: Callable[..., Any], job: subprocess.Popen[bytes]
) -> None:
    told = wait_for(project, weft, job, 0)
    assert (told["state"], told["queries"], told["rows"], told["pid"]) == ("running", 1, 120, job.pid)

    second = weft_program(project, "stream")
    assert second.returncode == 2
    assert re.search(rf"a job runs on .*state already: pid {job.pid} on host .*, whose heart beat \d", second.stderr)

    adding = subprocess.Popen([WEFT, "add", DAILY], cwd=project, stdout=subprocess.PIPE, text=True)
    put_rows(project / "incoming", 1)
    out, _ = adding.communicate(timeout=PATIENCE)
    assert re.fullmatch(r"daily is answered from batch \d+ on\n", out)

    refused = subprocess.Popen([WEFT, "add", ELSEWHERE], cwd=project, stderr=subprocess.PIPE, text=True)
    put_rows(project / "incoming", 2)
    _, err = refused.communicate(timeout=PATIENCE)
    assert refused.returncode == 2
    assert "there is no stream quotes" in err

    port = re.search(r'"metrics_port": (\d+)', (project / "log").read_text())
    assert port is not None
    with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/metrics", timeout=10) as answer:
        metrics = answer.read().decode()
    assert "weft_queries 2.0" in metrics
    assert 'weft_query_answers_total{query="hourly"}' in metrics
    with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/readyz", timeout=10) as answer:
        assert json.loads(answer.read()) == {"state": "running", "reasons": []}
    assert metrics_in_use() <= {family.name for family in text_string_to_metric_families(metrics)}

    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=PATIENCE) == 0, (project / "log").read_text()
    ended = status(weft)
    assert (ended["running"], ended["state"]) == (False, "stopped")
    lines = [json.loads(line) for line in (project / "log").read_text().splitlines()]
    assert lines[-1]["message"] == "stopped"

    assert "no job is running" in weft("add", QUERIES.replace("hourly", "more")).out
    states = {query["name"]: query["state"] for query in json.loads(weft("queries", "--json").out)}
    assert states == {"hourly": "active", "daily": "active", "other": "refused", "more": "pending"}

    again = weft_program(project, "stream", "--available-now", "--drain")
    assert again.returncode == 0, again.stderr
    assert "the catalog rules" in again.stderr
    answers = {
        row["s"].hour: row["n"]
        for file in sorted((project / "answers" / "query=hourly").glob("*.parquet"))
        for row in pq.read_table(file).to_pylist()
    }
    assert answers == dict.fromkeys(range(6), 60)

    (project / "queries.sql").write_text(QUERIES.replace("1 hour", "2 hours"))
    edited = weft_program(project, "stream", "--available-now")
    assert edited.returncode == 2
    assert "missing in the file: daily, more; changed in the file: hourly" in edited.stderr


def test_a_job_does_not_begin_with_a_query_that_cannot_be_run(project: Path, weft: Callable[..., Any]) -> None:
    bad = "SELECT sum(weight) AS w FROM trades GROUP BY window(ts, '1 hour');\n"
    (project / "queries.sql").write_text(QUERIES + bad + ELSEWHERE)
    done = weft_program(project, "stream", "--available-now")
    assert done.returncode == 2
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines[-1]["level"] == "error"
    assert "weight" in lines[-1]["message"] and "^^^^^^" in lines[-1]["message"]
    assert json.loads(weft("queries", "--json").out) == []
    assert status(weft)["state"] == "failed"


@pytest.mark.long
def test_a_password_is_used_and_seen_nowhere(project: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    database: str = postgres.database()
    password = urlsplit(database).password
    assert password
    monkeypatch.setenv("DATABASE", database)
    monkeypatch.setenv("OTHER", database.replace(password, "not-the-password"))
    settings = (project / "weft.yaml").read_text()
    (project / "weft.yaml").write_text(
        settings + "catalog: ${DATABASE}\nsinks: [{type: postgresql, url: '${OTHER}'}]\n"
    )
    refused = weft_program(project, "stream", "--available-now", "--drain", "--patience", "2 seconds")
    assert refused.returncode == 1
    assert "password authentication failed" in refused.stderr
    (project / "weft.yaml").write_text(
        settings + "catalog: ${DATABASE}\nsinks: [{type: postgresql, url: '${DATABASE}'}]\n"
    )
    done = weft_program(project, "stream", "--available-now", "--drain", "--log-level", "debug")
    assert done.returncode == 0, done.stderr
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT sum(n) FROM hourly").fetchone() == (120,)
        assert connection.execute("SELECT state FROM weft_queries").fetchall() == [("active",)]
    told = (
        weft_program(project, "queries", "--history", "--json"),
        weft_program(project, "status", "--json"),
        refused,
        done,
    )
    for one in told:
        assert password not in one.stdout + one.stderr
        assert "not-the-password" not in one.stdout + one.stderr
    for file in (file for file in project.rglob("*") if file.is_file()):
        assert password.encode() not in file.read_bytes(), file
