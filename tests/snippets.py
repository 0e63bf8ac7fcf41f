"""Run the snippets of a page, in its own folder and in one process: ``python tests/snippets.py README.md``.

One process a page, and one Spark session in it that starts where the page's files are: names of files in the snippets
mean the same for Spark as for Python. ``weft`` commands are run as its program runs them.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from weft.cli.main import main as weft
from weft.config import read_file, stream_config
from weft.query.sparksql import parse_file

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = {"text", "json", "mermaid", "jsonl"}


def snippets(page: Path) -> list[tuple[str, str]]:
    """Language and text of each."""
    return FENCE.findall(page.read_text())


def run(page: Path) -> None:
    """Run all of a page; the first that fails ends it."""
    found = snippets(page)
    names: dict[str, object] = {"spark": _session()} if any(_needs_spark(*one) for one in found) else {}
    for number, (language, text) in enumerate(found):
        if language == "python":
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


def _needs_spark(language: str, text: str) -> bool:
    return language == "python" and "spark." in text


def _session() -> object:
    from weft.spark.session import local_session

    # short runs: the optimising compiler would only take the cores from them
    return local_session(memory="1g", config={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})


if __name__ == "__main__":
    run(Path(sys.argv[1]))
