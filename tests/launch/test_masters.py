"""Masters other than this machine's threads: each ends with answers or with the reason, in a bounded time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from services.processes import finished
from services.standalone import Standalone

WEFT = (sys.executable, "-c", "from weft.cli.main import main; main()")
ROWS = "ts,n\n2024-01-01 00:10:00,1\n2024-01-01 00:20:00,2\n2024-01-01 03:00:00,4\n"
ASK = "CREATE VIEW total AS SELECT sum(n) AS total FROM t GROUP BY window(ts, '1 hour')"
SMALL = ("--memory", "600m", "--conf", "spark.executor.memory=600m")
IMPATIENT = (*SMALL, "--conf", "spark.weft.executorTimeout=4s")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master without workers."""
    cluster = Standalone.start(tmp_path_factory.mktemp("standalone"))
    yield cluster
    cluster.stop()


def run(folder: Path, command: str, master: Standalone, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "queries.sql").write_text(ASK)
    (folder / "rows").mkdir(exist_ok=True)
    (folder / "rows" / "rows.csv").write_text(ROWS)
    asked = (command, "queries.sql", "--source", "t=rows", "--event-time", "ts", "--out", "answers")
    return finished([*WEFT, *asked, "--master", master.url, *words], folder, 200)


def totals(folder: Path) -> list[int]:
    return sorted(pq.read_table(folder / "answers" / "query=total", partitioning=None)["total"].to_pylist())


def test_a_master_without_workers_is_given_up_with_the_reason(master: Standalone, tmp_path: Path) -> None:
    done = run(tmp_path, "run", master, *IMPATIENT)
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert f"{master.url} had no executor for 4 s: are there workers" in told and "executorTimeout" in told
    assert f"starting Spark on {master.url}" in done.stderr
    assert not (tmp_path / "answers").exists()


@pytest.mark.long
def test_executors_that_end_as_they_begin_are_given_up_with_the_reason(master: Standalone, tmp_path: Path) -> None:
    with master.worker(home=str(tmp_path)):
        done = run(tmp_path, "run", master, *SMALL)
    assert done.returncode == 1
    assert "executors ended as soon as they began, again and again" in done.stderr.splitlines()[-1]


@pytest.mark.long
def test_batch_and_live_run_on_a_master_with_a_worker(master: Standalone, tmp_path: Path) -> None:
    with master.worker():
        batch = run(tmp_path, "run", master, *SMALL)
        assert batch.returncode == 0, batch.stderr
        assert totals(tmp_path) == [3, 4]
        (tmp_path / "answers").rename(tmp_path / "batch")
        live = run(tmp_path, "stream", master, *SMALL, "--checkpoint", "state", "--available-now", "--drain")
        assert live.returncode == 0, live.stderr
        assert totals(tmp_path) == [3, 4]


@pytest.mark.long
def test_a_job_whose_workers_go_for_good_ends_with_the_reason(master: Standalone, tmp_path: Path) -> None:
    with master.worker():
        process = start_job(tmp_path, master)
    assert process.wait(120) == 1
    assert "had no executor for 4 s" in (tmp_path / "err").read_text()


def start_job(folder: Path, master: Standalone) -> subprocess.Popen[bytes]:
    """A live job that has answered its first batch."""
    (folder / "queries.sql").write_text("SELECT count(*) AS c FROM t GROUP BY window(timestamp, '1 second')")
    words = ("--source", "t=rate:10", "--event-time", "timestamp", "--out", "answers", "--checkpoint", "state")
    with (folder / "err").open("w") as err:
        process = subprocess.Popen(
            [*WEFT, "stream", "queries.sql", *words, "--master", master.url, *IMPATIENT], cwd=folder, stderr=err
        )
    while not list(folder.glob("answers/query=*/*.parquet")):
        assert process.poll() is None, (folder / "err").read_text()[-2000:]
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
    return process
