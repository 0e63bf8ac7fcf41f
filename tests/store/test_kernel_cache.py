"""Where compiled kernels are kept: beside their sources, and elsewhere where nobody may write there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from weft.store.cache import KERNELS, place_kernels

COMPILE = """
import numpy as np
from weft.evaluate.bulk import widest
from weft.spark.warm import _mark
assert widest(np.array([0]), np.array([3])) == 3
print(_mark().parent)
"""


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(KERNELS, "")
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.modules", {name: module for name, module in sys.modules.items() if name != "numba"})


def package(folder: Path, *, writable: bool) -> Path:
    (folder / "package").mkdir()
    if not writable:  # root may write anywhere: a file in the way stops everybody
        (folder / "package" / "__pycache__").touch()
    return folder / "package"


def test_kernels_are_kept_beside_their_sources(tmp_path: Path) -> None:
    place_kernels(package(tmp_path, writable=True))
    assert not os.environ[KERNELS]


def test_kernels_of_a_package_that_cannot_be_written_to_are_among_our_caches(tmp_path: Path) -> None:
    place_kernels(package(tmp_path, writable=False))
    assert os.environ[KERNELS] == str(tmp_path / "cache" / "kernels")


def test_where_no_cache_can_be_written_to_either_kernels_are_temporary(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    place_kernels(package(tmp_path, writable=False))
    assert "weft-kernels-" in os.environ[KERNELS]


def test_what_the_user_says_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KERNELS, str(tmp_path / "mine"))
    place_kernels(package(tmp_path, writable=False))
    assert os.environ[KERNELS] == str(tmp_path / "mine")


def test_an_installed_package_that_cannot_be_written_to_compiles_and_keeps_kernels(tmp_path: Path) -> None:
    installed = tmp_path / "site" / "weft"
    shutil.copytree(Path(weft.__file__).parent, installed, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [installed, *(path for path in installed.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    command = [sys.executable, "-c", COMPILE]
    told = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True, cwd=tmp_path
    )
    assert told.returncode == 0, told.stderr
    assert Path(told.stdout.strip()) == tmp_path / "cache" / "kernels"
    assert list((tmp_path / "cache" / "kernels").rglob("*widest*.nbc"))
