"""``kill -9`` of the driver: no row is lost and none comes twice. The long run is ``tests/crash/crashes.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.answers import write_source
from crash.crashes import SETTINGS, Services, calm_rows, crash_and_compare
from crash.killed_driver import Life
from services.kafka import Broker
from services.postgres import Server


@pytest.mark.long
def test_kills_lose_nothing_and_repeat_nothing(tmp_path: Path, kafka: Broker, postgres: Server) -> None:
    source = tmp_path / "source"
    write_source(source, 1, files=8)
    calm = calm_rows(source, tmp_path / "calm")
    life = Life(source, tmp_path / "crashed")
    crashes, rows = crash_and_compare(Services(kafka, postgres), calm, life, SETTINGS["local"], "1", kills=2)
    assert crashes.kills
    assert rows
