"""Every snippet of README and docs is run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from weft.config import read_file, stream_config
from weft.query.sparksql import parse_file

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def snippets(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text())


def make_targets() -> set[str]:
    return set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def run_shell(line: str, folder: Path) -> None:
    words = shlex.split(line, comments=True)
    if not words or words[0] in {"git", "cd"}:
        return
    if words[0] == "make":
        assert set(words[1:]) <= make_targets(), line
        return
    if words[0].startswith(".venv/bin/python"):
        assert (ROOT / words[1]).exists(), line
        return
    assert words[0] == "weft", f"a snippet that the tests cannot run: {line}"
    program = str(Path(sys.executable).parent / "weft")
    # short runs: the optimising compiler would only take the cores from them
    quick = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    done = subprocess.run([program, *words[1:]], cwd=folder, capture_output=True, text=True, check=False, env=quick)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=lambda page: page.name)
def test_every_snippet_of_the_page_runs(page: Path, spark: object, tmp_path: Path) -> None:
    names: dict[str, object] = {"spark": spark}
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        for number, (language, text) in enumerate(snippets(page)):
            if language == "python":
                # Spark's own working folder is where it was started
                text = text.replace('"trades.parquet"', f'"{tmp_path}/trades.parquet"')
                exec(compile(text, f"{page.name}, snippet {number}", "exec"), names)
            elif language == "sql":
                parse_file(text)
                Path("queries.sql").write_text(text)
            elif language in {"sh", "bash", "console"}:
                for line in text.replace("\\\n", " ").splitlines():
                    run_shell(line, tmp_path)
            elif language == "yaml":
                Path("settings.yaml").write_text(text)
                stream_config(read_file(Path("settings.yaml")).filled(), {})
                if not Path("weft.yaml").exists():
                    Path("weft.yaml").write_text(text)
            else:
                assert language in {"text", "json", "mermaid", "jsonl"}, f"{page.name}: what is {language}?"
    finally:
        os.chdir(before)
