"""Every snippet of README and docs is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from snippets import ROOT, snippets

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
PROGRAM = Path(__file__).parent / "snippets.py"


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=lambda page: page.name)
def test_every_snippet_of_the_page_runs(page: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), str(page)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
