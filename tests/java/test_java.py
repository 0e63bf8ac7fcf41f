"""The Java that comes with the package starts as Spark starts it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from weft.java.home import java, use_java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with a shell and nothing else."""
    (tmp_path / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("JAVA_HOME", "WEFT_JAVA"):
        monkeypatch.setenv(name, "")  # so that what is set in between does not outlive the test
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_java")
def test_without_a_java_of_the_machine_the_packaged_one_starts_with_the_options_of_spark() -> None:
    use_java()
    options = ["--add-modules=jdk.incubator.vector", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
    told = subprocess.run([java(), *options, "-version"], capture_output=True, text=True, check=True)
    assert "version" in told.stderr
    assert Path(os.environ["JAVA_HOME"], "bin", "java") == java()
