"""The archive of Java's classes: used if it is there, passed over if it does not fit, and written whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.java.classes import archive_options, class_archive
from weft.java.home import java


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run_java(*options: str) -> subprocess.CompletedProcess[str]:
    """What Java does with some options."""
    return subprocess.run([java(), *options, "-version"], capture_output=True, text=True, timeout=60, check=False)


def test_without_an_archive_java_is_told_nothing() -> None:
    """As on a machine where nothing was prepared."""
    assert archive_options() == ()


def test_an_archive_that_does_not_fit_is_passed_over_without_a_word() -> None:
    """Spark and Java change under it."""
    archive = class_archive()
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"of another Java" * 1000)
    options = archive_options()
    assert any(str(archive) in option for option in options)
    told = run_java(*options)
    assert told.returncode == 0
    # but for whether classes are shared, which the last line ends with
    assert told.stderr.splitlines()[:2] == run_java().stderr.splitlines()[:2]
    assert len(told.stderr.splitlines()) == 3
    assert told.stdout == ""


def test_a_path_with_spaces_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark parts options at spaces."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "my cache"))
    archive = class_archive()
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert archive_options() == ()


@pytest.mark.long
@pytest.mark.spark
def test_an_archive_is_written_once_and_holds_the_classes_of_spark() -> None:
    """A session is run for it, in a process of its own."""
    command = [sys.executable, "-m", "weft.launch.class_archive"]
    for _ in range(2):
        subprocess.run(command, check=True, timeout=300, capture_output=True, env=os.environ)
    (archive,) = class_archive().parent.iterdir()
    assert archive == class_archive()
    assert archive.stat().st_size > 10_000_000
