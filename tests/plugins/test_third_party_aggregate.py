"""The example package, installed as anybody would, is known to SQL in another process, and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party_aggregate"
ASKING = """
from pyspark.sql import SparkSession
import weft
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.sql("SELECT timestamp_seconds(id) AS ts, id + 1D AS x FROM range(4)")
engine = weft.Engine(spark).stream("s", rows, event_time="ts")
engine.sql('''
-- name: mean
SELECT geometric_mean(x) AS m, geometric_mean(x) FILTER (WHERE x > 2) * 2 AS f FROM s GROUP BY window(ts, '4 seconds');
''')
[(mean, filtered)] = engine.run()["mean"].collect()
print(f"{mean:.9f} {filtered:.9f}")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that has the package."""
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)], check=True, timeout=120)
    return {**os.environ, "PYTHONPATH": str(target), "PYSPARK_PYTHON": sys.executable}


def test_sql_knows_the_aggregate_of_an_installed_package(installed: dict[str, str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ASKING], env=installed, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.stdout.split() == [f"{24 ** (1 / 4):.9f}", f"{2 * 12**0.5:.9f}"], ran.stderr[-3000:]


@pytest.mark.long
def test_the_package_passes_its_own_tests(installed: dict[str, str], tmp_path: Path) -> None:
    test = tmp_path / "test_weft_geometric_mean.py"
    test.write_text((EXAMPLE / "test_weft_geometric_mean.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    ran = subprocess.run(command, env=installed, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout[-3000:]
