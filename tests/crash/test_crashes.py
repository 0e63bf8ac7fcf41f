"""``kill -9`` of the driver: no row is lost and none comes twice. The long run is ``tests/crash/crashes.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.crashes import crash_and_compare


@pytest.mark.long
def test_a_killed_driver_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    assert len(crash_and_compare(tmp_path, seed=1, kills=1)) == 1
