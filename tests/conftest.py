"""One Spark session for the whole run, in one process of it, and `oracle` on the path of every test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hypothesis import settings

from oracle import totals
from services.fixtures import kafka, postgres  # noqa: F401

settings.register_profile("weft", derandomize=True, deadline=None, database=None)
settings.load_profile("weft")


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The session that Weft runs on: two cores, UTC, small shuffles."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("weft tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        # much code that runs a few times: the optimising compiler would only take the cores from it
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        # a machine that sleeps for a while must not cost the context
        .config("spark.network.timeout", "7200s")
        .config("spark.executor.heartbeatInterval", "3600s")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For two processes (``make test``): what needs the session stays in one of them, and so does every file."""
    for item in items:
        group = "spark" if "spark" in getattr(item, "fixturenames", ()) else item.path.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In one of several processes: hand on how much it compared with Spark."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["compared"] = totals.counts()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take it from a process that is done."""
    totals.add_counts(getattr(node, "workeroutput", {}).get("compared", (0, 0, 0, 0)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was compared with Spark: a suite that compared nothing must not look green."""
    if totals.queries:
        terminalreporter.write_line(totals.sentence())
