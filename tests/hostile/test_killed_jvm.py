"""The JVM dies of one query: the next starts find it, and all others lose nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hostile.neighbours import near
from hostile.victim import DEADLY, GOOD, write_source
from weft.catalog import create_catalog
from weft.job.trials import REASON

VICTIM = Path(__file__).with_name("victim.py")


def starts_until_done(folder: Path, *added: str) -> int:
    """Start processes until one ends well; how many there were."""
    for number in range(1, 13):
        done = subprocess.run([sys.executable, VICTIM, folder, *added], capture_output=True, text=True, timeout=900)
        if done.returncode == 0:
            return number
        assert "JVM that Spark runs in died" in done.stderr, done.stderr[-3000:]
    raise AssertionError("it never ends well")


def answers(folder: Path) -> dict[str, object]:
    """What readers see of the good queries."""
    found = {}
    for number in range(GOOD):
        files = sorted((folder / "answers" / f"query=good{number}").glob("*.parquet"))
        rows = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
        found[f"good{number}"] = near([list(row.values()) for row in rows])
    return found


@pytest.mark.long
def test_a_query_that_kills_the_jvm_is_found_by_the_next_starts(tmp_path: Path) -> None:
    for name, added in (("alone", ()), ("beside", (DEADLY,))):
        write_source(tmp_path / name / "source", 3)
        starts = starts_until_done(tmp_path / name, *added)
        assert starts == 1 if not added else starts <= 7
    (entry,) = create_catalog(str(tmp_path / "beside" / "checkpoint")).entries("refused")
    assert entry.name == "deadly" and REASON in (entry.reason or "")
    assert answers(tmp_path / "beside") == answers(tmp_path / "alone")


@pytest.mark.long
def test_a_run_whose_jvm_dies_ends_with_what_to_do(tmp_path: Path) -> None:
    write_source(tmp_path / "source", 1)
    command = [sys.executable, VICTIM, tmp_path, "run", DEADLY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 1
    assert "died while the queries were computed" in done.stderr, done.stderr[-3000:]
