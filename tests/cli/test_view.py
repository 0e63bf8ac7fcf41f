"""The live view rendered to text, and the log lines that take its place."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest
from rich.console import Console

from weft.catalog import Status
from weft.catalog.status import BATCH_FIGURES, Outage, Trouble
from weft.cli import logs
from weft.cli.others import OthersLog
from weft.cli.view import Lines, _figures, picture, shown

BUSY: Status = {
    "state": "running",
    "started": 1_000.0,
    "batch": 41,
    "batches": 42,
    "rows": 4_200_000,
    "batch_rows": 100_000,
    "rows_per_second": 137_254.4,
    "batch_seconds": 0.7285,
    "watermark": 1_700_000_000_000_000,
    "lag_seconds": 12.5,
    "late_rows": 3,
    "bad_rows": 2,
    "rows_without_time": 1,
    "answers": 999_999,
    "answers_per_second": 55_000.0,
    "state_bytes": 34_500_000,
    "trees": 7,
    "queries": 1_000,
    "paused": 4,
    "sinks": {
        "parquet:/answers": {"state": "ok", "batch": 41, "waiting": 0, "since": None, "error": None},
        "kafka:answers": {"state": "away", "batch": 30, "waiting": 11, "since": 1_060.0, "error": "refused"},
    },
    "errors": [{"at": 0.0, "message": "long ago"}]
    + [{"at": 3600.0 + n, "message": f"cannot [reach] broker {n}\nand a stack trace"} for n in range(3)],
}


def rendered(status: Status, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(picture(status, now=1_075.0))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_view_shows_every_figure() -> None:
    text = rendered(BUSY)
    for figure in (
        "weft running for 1 min 15 s",
        "137,254/s",
        "4,200,000 since the start",
        "728 ms",
        "batch 41, 100,000 rows",
        "2023-11-14 22:13:20",
        "lag 12.5 s",
        "2 bad, 1 without event time",
        "55,000/s",
        "34.5 MB",
        "in 7 trees, 4 paused",
        "parquet:/answers (batch 41)",
    ):
        assert figure in text, text


def test_the_view_shows_what_is_away_since_when_and_why() -> None:
    outages: list[Outage] = [{"what": "sink kafka:answers", "since": 1_060.0, "error": "refused"}]
    text = rendered({**BUSY, "state": "degraded", "outages": outages})
    assert "weft degraded for 1 min 15 s" in text
    assert "kafka:answers (batch 30, 11 waiting)" in text
    assert "00:17:40 sink kafka:answers: refused" in text


def test_the_view_shows_the_last_errors_a_line_each_as_they_are() -> None:
    text = rendered(BUSY)
    assert "01:00:02 cannot [reach] broker 2" in text
    assert "long ago" not in text
    assert "stack trace" not in text


@pytest.mark.parametrize("status", [{}, {"state": "starting"}, {"state": "running", "watermark": None, "batch": 0}])
def test_the_view_can_be_drawn_before_there_is_anything_to_tell(status: Status) -> None:
    assert "rows" in rendered(status)


def test_a_drained_stream_is_at_the_end_of_time() -> None:
    assert "end of time" in rendered({"state": "drained", "watermark": 2**63 - 1})


def test_the_view_fits_a_narrow_terminal() -> None:
    assert max(len(line) for line in rendered(BUSY, width=60).splitlines()) <= 60


def on_a_terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def drawn(console: Console) -> str:
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_on_a_terminal_the_view_is_drawn_again_and_stays_as_it_was_last() -> None:
    console = on_a_terminal()
    with shown(console) as report:
        report({"state": "running", "batches": 1, "rows": 1})
        report({"state": "stopped", "batches": 2, "rows": 777})
    assert "777 since the start" in drawn(console)
    assert drawn(console).endswith("\x1b[?25h"), "the cursor is back"


def test_nothing_is_drawn_before_there_is_something_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "human")
    console = on_a_terminal()
    with shown(console) as report:
        report({"state": "starting", "pid": 1})
        report({"state": "running", "batches": 0, "batch": -1})
        assert drawn(console) == ""
        report({"state": "running", "batches": 1, "rows": 5})
        assert "5 since the start" in drawn(console)
    told = [line[24:] for line in capsys.readouterr().err.splitlines()]
    assert [line.split()[1] for line in told] == ["starting", "running"]


def test_a_view_that_never_had_anything_to_show_leaves_nothing_behind() -> None:
    console = on_a_terminal()
    with shown(console) as report:
        report({"state": "starting"})
    assert drawn(console) == ""


def test_lines_that_are_logged_meanwhile_stand_above_the_view() -> None:
    logs.configure("info", "human")
    console = on_a_terminal()
    with shown(console) as report:
        report({"state": "running", "batches": 1, "rows": 5})
        OthersLog().take("26/01/31 10:00:00 WARN BlockManager: a block was lost")
    text = drawn(console)
    assert "BlockManager: a block was lost" in text
    assert text.rindex("5 since the start") > text.rindex("a block was lost"), "the panel is drawn again below it"


WATCHED = """
import logging, os, threading
from rich.console import Console
from weft.cli import logs, standard_error
from weft.cli.view import shown

heard = threading.Event()

class Heard(logging.Handler):
    def emit(self, record):
        heard.set()

def written_by_others(text):
    heard.clear()
    os.write(2, text)
    assert heard.wait(60)

logs.begin_log("info", "human")
logging.getLogger("weft").addHandler(Heard())
with shown(Console(file=standard_error.real(), force_terminal=True, width=100)) as report:
    report({"state": "starting"})
    written_by_others(b"the first word of Java\\n")
    report({"state": "running", "batches": 1, "rows": 5})
    written_by_others(b"the second word of Java\\n")
"""


def test_nobody_writes_over_the_view_of_a_terminal() -> None:
    terminal, end = pty.openpty()
    watched = subprocess.Popen([sys.executable, "-c", WATCHED], stderr=end)
    os.close(end)
    seen = b""
    with suppress(OSError):  # Linux says that a terminal is closed by an error
        while part := os.read(terminal, 4096):
            seen += part
    os.close(terminal)
    assert watched.wait(60) == 0, seen
    text = seen.decode()
    before, _, view = text.partition("\x1b[")
    assert "the first word of Java" in before, "there is no view before it has something to show"
    assert "the second word of Java" in view
    assert view.rindex("5 since the start") > view.rindex("the second word of Java")
    lines = [line for line in text.splitlines() if "word of Java" in line]
    assert all(" warning the " in line for line in lines), "as lines of the log, not raw"


def test_a_line_tells_of_the_batch_alone() -> None:
    told = _figures({**BUSY, "said_at": 5.0, "batch_since": 4.0})
    assert told.keys() <= BATCH_FIGURES
    assert (told["batch"], told["rows"], told["lag_seconds"]) == (41, 4_200_000, 12.5)
    assert "paused" not in told


def test_elsewhere_lines_are_logged_instead(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    with shown(Console(file=io.StringIO())) as report:
        report({"state": "starting", "pid": 1})
        report(BUSY)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["message"] for line in lines if line["level"] == "info"] == ["starting", "running"]
    assert lines[-1]["rows_per_second"] == 137_254.4
    assert "pid" not in lines[0]


def test_a_line_a_batch_but_not_more_than_one_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    now = 0.0
    lines = Lines(clock=lambda: now)
    for batch in range(31):
        now = batch * 0.25
        lines.report({"state": "running", "batch": batch})
        lines.report({"state": "running", "batch": batch})
    lines.report({"state": "stopped", "batch": 31})
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["message"] for line in told] == ["running", *["batch"] * 7, "stopped"]
    assert [line["batch"] for line in told] == [0, 4, 8, 12, 16, 20, 24, 28, 31]


def test_an_error_is_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("error", "json")
    lines = Lines()
    first: Trouble = {"at": 1.0, "message": "one"}
    second: Trouble = {"at": 2.0, "message": "two"}
    lines.report({"state": "running", "errors": [first]})
    lines.report({"state": "running", "errors": [first, second]})
    assert [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()] == ["one", "two"]
