"""An ``Engine`` on a session that the user built, in a script whose environment is not activated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pyspark.sql import SparkSession
import weft

spark = (
    SparkSession.builder.master({master!r}).config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.sql.session.timeZone", "UTC").getOrCreate()
)
engine = weft.Engine(spark)
engine.stream("t", spark.sql("SELECT timestamp_seconds(id) AS ts, id AS n FROM range(100)"), "ts")
(name,) = engine.sql("SELECT sum(n) AS n FROM t GROUP BY window(ts, '1 hour')")
try:
    print("answers:", [row.n for row in engine.run()[name].collect()])
except weft.WeftError as error:
    print("told:", error)
"""


def machine(tmp_path: Path, **more: str) -> dict[str, str]:
    """What a shell has where no environment is active: another Python comes first, which has no Weft."""
    other = tmp_path / "python3"
    # as a system's Python: isolated from this one's packages, with Spark's own alone
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    other.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "WEFT"))}
    return {**kept, "PATH": f"{tmp_path}:{os.environ['PATH']}", **more}


def run(tmp_path: Path, master: str, environment: dict[str, str]) -> str:
    (tmp_path / "script.py").write_text(SCRIPT.format(master=master))
    command = [sys.executable, "script.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_on_this_machine_workers_run_the_python_of_the_script(tmp_path: Path) -> None:
    assert "answers: [4950]" in run(tmp_path, "local[1]", machine(tmp_path))


@pytest.mark.parametrize("master", ["local[1]", pytest.param("local-cluster[1,1,1024]", marks=pytest.mark.long)])
def test_a_python_that_the_user_named_and_that_lacks_weft_is_told_in_a_sentence(tmp_path: Path, master: str) -> None:
    told = run(tmp_path, master, machine(tmp_path, PYSPARK_PYTHON=str(tmp_path / "python3")))
    assert "told: the workers' Python" in told and "lacks the package" in told and "PYSPARK_PYTHON" in told
    assert len(told.splitlines()) == 1
