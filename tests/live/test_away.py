"""Databases and folders that are away, stand still and come back."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from live.batches import committed
from live.test_live_engine import SUMS, Folders, wait
from services.postgres import Server
from weft.catalog import Catalog, create_catalog, database
from weft.catalog.database import CatalogAwayError, CatalogError
from weft.errors import WeftError
from weft.job.patience import Patience, Presence
from weft.launch.live import open_catalog
from weft.sinks.postgres import PostgresSink


def test_a_job_that_starts_waits_for_its_catalog_and_says_so(tmp_path: Path, postgres: Server) -> None:
    url = postgres.database()
    create_catalog(str(tmp_path), url).close()
    opened: list[Catalog] = []
    told: list[Presence] = []
    with postgres.service.stopped():
        start = threading.Thread(
            target=lambda: opened.append(open_catalog(str(tmp_path), url, Patience(), told.append))
        )
        start.start()
        wait(lambda: len(told) > 1)
        assert told[0].outage is not None and "refused" in told[0].outage["error"]
        assert not opened
    start.join()
    assert opened[0].version() == 0
    opened[0].close()


def test_patience_with_a_catalog_comes_to_an_end_and_a_wrong_password_needs_none(
    tmp_path: Path, postgres: Server
) -> None:
    url = postgres.database()
    with postgres.service.stopped(), pytest.raises(CatalogAwayError, match="refused"):
        open_catalog(str(tmp_path), url, Patience(0.5))
    wrong = url.replace("weft:", "weft:not-").replace("@", "@", 1)
    with pytest.raises(CatalogError, match="authentication failed"):
        open_catalog(str(tmp_path), wrong, Patience())


def test_a_catalog_that_stands_still_is_away_after_a_while_and_then_back(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SILENCE", 1.0)
    with create_catalog(str(tmp_path), postgres.database()) as catalog:
        version = catalog.version()
        with postgres.service.frozen():
            began = time.monotonic()
            with pytest.raises(CatalogAwayError, match=r"has not answered for 1 seconds|timeout"):
                catalog.version()
            assert time.monotonic() - began < 10
        assert catalog.version() == version


def test_a_sink_that_stands_still_fails_in_time_and_takes_the_batch_when_it_is_back(
    tmp_path: Path, postgres: Server
) -> None:
    sink = PostgresSink(postgres.database(), timeout=1.0)
    sink.open()
    sink.deliver(committed(tmp_path, 0))
    with postgres.service.frozen(), pytest.raises(WeftError, match="batch 1 was not taken"):
        sink.deliver(committed(tmp_path, 1))
    sink.deliver(committed(tmp_path, 1))
    sink.close()


def test_a_folder_that_vanishes_for_a_while_is_read_on_when_it_is_back(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.write(0)
    live = folders.start(spark, SUMS)
    wait(lambda: live.status()["batch"] == 0)
    away = tmp_path / "away"
    folders.source.rename(away)
    time.sleep(1.0)
    assert live.is_active
    away.rename(folders.source)
    for number in (1, 2):
        folders.write(number)
        wait(lambda number=number: live.status()["batch"] >= number)
    assert live.await_delivered(60)
    live.stop()
    assert len(folders.answers("sums")) == 4, "two windows that have ended, of two keys each"
