"""Folders of processes that were ended: swept by the next one, and only those."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from weft.store.folder import Folder
from weft.store.scratch import STRANGE, _host, scratch, sweep

DEAD = """
import os, sys
from weft.store.folder import Folder
from weft.store.scratch import scratch
folder = scratch(Folder(sys.argv[1]), "writing")
folder.make("q")
print(folder.root, flush=True)
os.kill(os.getpid(), 9)
"""


def made(folder: Folder) -> Path:
    folder.make("q")
    return Path(folder.root)


def test_what_a_killed_process_left_is_swept_when_the_same_target_is_written_next(tmp_path: Path) -> None:
    target = tmp_path / "answers"
    died = subprocess.run([sys.executable, "-c", DEAD, str(target)], capture_output=True, text=True, check=False)
    left = Path(died.stdout.strip())
    assert left.is_dir()
    mine = made(scratch(Folder(str(target)), "writing"))
    assert not left.exists()
    assert mine.is_dir()


def test_folders_of_living_processes_and_of_other_targets_stay(tmp_path: Path) -> None:
    target = Folder(str(tmp_path / "answers"))
    living = tmp_path / f"answers.writing-{_host()}-{os.getppid()}-0123abcd"
    of_another_target = tmp_path / "answers2.writing-gone-1-0123abcd"
    of_another_machine = tmp_path / "answers.writing-elsewhere-1-0123abcd"
    for folder in (living, of_another_target, of_another_machine):
        folder.mkdir()
    mine = made(scratch(target, "writing"))
    assert sweep(target, "writing") == []
    assert all(folder.is_dir() for folder in (living, of_another_target, of_another_machine, mine))


def test_what_nobody_can_tell_about_is_swept_after_a_day(tmp_path: Path) -> None:
    target = Folder(str(tmp_path / "answers"))
    names = ["answers.writing-0123abcd", "answers.writing-elsewhere-1-0123abcd"]
    for name in names:
        (tmp_path / name).mkdir()
    now = (tmp_path / names[0]).stat().st_mtime
    assert sweep(target, "writing", now + STRANGE - 60) == []
    assert sorted(sweep(target, "writing", now + STRANGE + 60)) == names


def test_a_container_that_starts_again_under_the_same_number_sweeps_what_it_left(tmp_path: Path) -> None:
    target = Folder(str(tmp_path / "answers"))
    before = tmp_path / f"answers.writing-{_host()}-{os.getpid()}-0123abcd"
    before.mkdir()
    assert sweep(target, "writing") == [before.name]
