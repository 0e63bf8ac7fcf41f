"""The ``weft`` command in this process, and a job without Spark that answers through the catalog."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from weft.catalog import Catalog, Heartbeat, create_catalog
from weft.cli import logs
from weft.cli.main import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A log that one test configures is not another's."""
    yield
    logs.forget()


@pytest.fixture
def weft(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Outcome]:
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_CATALOG", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")

    def run(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["weft", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Catalog]:
    """The catalog of a checkpoint ``state`` in the folder that commands run in."""
    with create_catalog(str(tmp_path / "state")) as catalog:
        yield catalog


@pytest.fixture
def job(state: Catalog) -> Iterator[Catalog]:
    """A job that looks at the catalog as the real one does: it knows the stream ``trades`` only."""
    stop = threading.Event()

    def work() -> None:
        seen, batch = -1, 0
        with Heartbeat(state, {"state": "running", "batch": 0, "rows": 0}, every=0.05) as heart:
            while not stop.wait(0.02):
                batch += 1
                heart.say({"state": "running", "batch": batch, "rows": 10 * batch, "queries": 1})
                version = state.version()
                if version != seen:
                    seen = version
                    for entry in state.entries("pending"):
                        if "FROM trades" in entry.sql:
                            state.accept(entry.name, batch, id=entry.id)
                        else:
                            state.refuse(entry.name, f"query {entry.name}: there is no such stream", id=entry.id)

    thread = threading.Thread(target=work)
    thread.start()
    yield state
    stop.set()
    thread.join()
