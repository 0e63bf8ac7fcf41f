"""``weft init``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.config import read_file, stream_config

Weft = Callable[..., Any]


def test_init_writes_settings_that_are_right(weft: Weft) -> None:
    done = weft("init")
    assert (done.code, done.out) == (0, "wrote weft.yaml\n")
    assert stream_config(read_file(Path("weft.yaml")), {}).source.name == "trades"


def test_init_makes_a_folder(weft: Weft) -> None:
    assert weft("init", "new/project").code == 0
    assert Path("new/project/weft.yaml").exists()


def test_init_never_overwrites(weft: Weft) -> None:
    Path("weft.yaml").write_text("mine")
    done = weft("init")
    assert done.code == 2
    assert "is there already" in done.err
    assert Path("weft.yaml").read_text() == "mine"
