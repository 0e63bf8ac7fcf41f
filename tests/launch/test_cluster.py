"""Nothing leans on one process or one disk cache: a part of the random suite on separate executor processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "oracle" / "hunt.py"
DATASETS, QUERIES = (3, 12) if os.environ.get("WEFT_LONG") else (1, 6)


@pytest.mark.cluster
def test_random_queries_give_the_rows_of_spark_on_executors_that_are_processes_of_their_own(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        # Spark keeps its executors' logs and work folders where it is started
        command = [sys.executable, str(SCRIPT), str(DATASETS), str(QUERIES), "--master", "local-cluster[2,1,1024]"]
        status = subprocess.run(command, stdout=out, stderr=err, cwd=tmp_path, check=False, timeout=900).returncode
    said, complained = (tmp_path / "out").read_text(), (tmp_path / "err").read_text()
    assert status == 0, f"{said[-4000:]}\n{complained[-4000:]}"
    assert said.splitlines()[-1].startswith(f"EQUAL: compared with Spark: {DATASETS * QUERIES} random queries"), said
