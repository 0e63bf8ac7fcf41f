"""Every snippet of README and docs is run."""

from __future__ import annotations

import sys
from pathlib import Path

from services.processes import finished
from snippets import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
PROGRAM = Path(__file__).parent / "snippets.py"


def test_every_snippet_of_every_page_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), *map(str, PAGES)]
    done = finished(command, tmp_path)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.splitlines()[-1] == f"the snippets of {len(PAGES)} pages were run"
