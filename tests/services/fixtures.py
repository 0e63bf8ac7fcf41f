"""Fixtures for the whole session: services start when the first test asks for them.

A service that cannot start fails the tests that need it, with the reason. Only ``WEFT_OFFLINE=1`` leaves them out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


def _leave_out_if_offline() -> None:
    if os.environ.get("WEFT_OFFLINE") == "1":
        pytest.skip("WEFT_OFFLINE=1 leaves out what needs a broker or a database")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A Kafka broker."""
    _leave_out_if_offline()
    from services.kafka import Broker

    broker = Broker.start(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[object]:
    """A PostgreSQL server."""
    _leave_out_if_offline()
    from services.postgres import Server

    server = Server.start()
    yield server
    server.stop()
