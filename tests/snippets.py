"""Run the snippets of pages: ``python tests/snippets.py README.md docs/live.md``.

All in one process, and in a folder of their own that is emptied after each page. Spark is started once and there, so
that names of files in the snippets mean the same for Spark as for Python. ``weft`` commands are run as its program
runs them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from weft.cli.main import main as weft
from weft.config import read_file, stream_config
from weft.query.sparksql import parse_file

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = {"text", "json", "mermaid", "jsonl"}


def snippets(page: Path) -> list[tuple[str, str]]:
    """Language and text of each."""
    return FENCE.findall(page.read_text())


def run_all(pages: Sequence[Path]) -> None:
    """Run all pages; the first snippet that fails ends it."""
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        for page in pages:
            print(f"-- {page.name}", flush=True)
            run(page)
            for left in Path(folder).iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        os.chdir(ROOT)
    print(f"the snippets of {len(pages)} pages were run")


def run(page: Path) -> None:
    """Run all snippets of a page."""
    names: dict[str, object] = {}
    for number, (language, text) in enumerate(snippets(page)):
        if language == "python":
            if "spark." in text:
                names["spark"] = _session()
            exec(compile(text, f"{page.name}, snippet {number}", "exec"), names)
        elif language == "sql":
            parse_file(text)
            Path("queries.sql").write_text(text)
        elif language in {"sh", "bash", "console"}:
            for line in text.replace("\\\n", " ").splitlines():
                run_line(line)
        elif language == "yaml":
            run_settings(text)
        else:
            assert language in SHOWN, f"{page.name}: what is {language}?"


def run_settings(text: str) -> None:
    """Check settings; the first of a page are those of its commands."""
    Path("settings.yaml").write_text(text)
    stream_config(read_file(Path("settings.yaml")).filled(), {})
    if not Path("weft.yaml").exists():
        Path("weft.yaml").write_text(text)


def run_line(line: str) -> None:
    """Run a line for the shell, or check that what it names is there."""
    words = shlex.split(line, comments=True)
    if not words or words[0] in {"git", "cd"}:
        return
    if words[0] == "make":
        assert set(words[1:]) <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)), line
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(re.findall(r"\[(\w+)\]", line)) <= set(extras), line
    elif words == ["weft", "demo"]:
        return  # it takes minutes
    elif words[0].startswith(".venv/bin/python"):
        assert (ROOT / words[1]).exists(), line
    else:
        assert words[0] == "weft", f"a snippet that the tests cannot run: {line}"
        run_weft(words)


def run_weft(words: list[str]) -> None:
    """Run a ``weft`` command."""
    sys.argv = words
    try:
        weft()
    except SystemExit as end:
        assert not end.code, f"{shlex.join(words)}: exit code {end.code}"


def _session() -> object:
    from weft.launch.session import local_session

    # short runs: the optimising compiler would only take the cores from them
    return local_session(memory="1g", config={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})


if __name__ == "__main__":
    run_all([Path(page).resolve() for page in sys.argv[1:]])
