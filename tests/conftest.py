"""One Spark session for the whole run, and `oracle` on the path of every test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

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
        # as weft's own sessions have it: who runs out of memory fails its task, and not the JVM of all
        .config("spark.executor.killOnFatalError.depth", "0")
        # a machine that sleeps for a while must not cost the context
        .config("spark.network.timeout", "7200s")
        .config("spark.executor.heartbeatInterval", "3600s")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what shares the session: ``make test`` has it in one process and the rest in another."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was compared with Spark: a suite that compared nothing must not look green."""
    if totals.queries:
        terminalreporter.write_line(totals.sentence())
