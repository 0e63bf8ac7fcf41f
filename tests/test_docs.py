"""Every snippet of README and docs is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from snippets import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
PROGRAM = Path(__file__).parent / "snippets.py"


def test_every_snippet_of_every_page_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), *map(str, PAGES)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.splitlines()[-1] == f"the snippets of {len(PAGES)} pages were run"
