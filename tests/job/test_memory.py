"""Free memory goes back to the system."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from weft.job import memory
from weft.job.memory import Memory

MEGABYTES = 1 << 20


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_what_is_free_goes_back_though_something_above_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SECONDS", 0)
    # blocks too small for pages of their own: freed from under the last one, C's allocator holds on to them
    blocks = [bytearray(1000) for _ in range(200_000)]
    last = blocks[-1]
    with_blocks = resident()
    blocks.clear()
    assert Memory().give_back()
    assert resident() < with_blocks - 150 * MEGABYTES
    assert len(last) == 1000


def test_not_oftener_than_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Memory()
    assert not kept.give_back()
    monkeypatch.setattr(memory, "SECONDS", 0)
    assert kept.give_back()
