"""A broker and a database that are away for a while in a running job: nothing is lost, and none comes twice.

The long run, with every server apart and for minutes, is ``tests/outages/outages.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from outages.outages import FILES, KAFKA, POSTGRES, Places, live_through
from services.kafka import Broker
from services.postgres import Server

IMPATIENT = {
    "kafka.request.timeout.ms": "3000",
    "kafka.default.api.timeout.ms": "4000",
    "fetchOffset.numRetries": "1",
    "kafkaConsumer.pollTimeoutMs": "4000",
}
"""Options of the source with which an outage of seconds ends Spark's query, as one of a minute does without them."""


def test_sinks_source_and_catalog_come_back_and_nothing_is_lost_or_repeated(
    tmp_path: Path, kafka: Broker, postgres: Server
) -> None:
    places = Places(kafka, kafka, postgres, postgres)
    away = {"database, catalog": postgres.service.stopped, "source, topic": kafka.service.stopped}
    database, broker = live_through(tmp_path, places, away, 4.0, IMPATIENT)
    assert database.waiting > 2 and database.batches > 2, "batches went on, and their answers waited"
    assert database.lags[POSTGRES][1] > 3
    assert max(database.lags[FILES][1], database.lags[KAFKA][1]) < 3, "nobody else was delayed"
    assert broker.noticed < 15


@pytest.mark.long
def test_servers_that_stand_still_instead_of_refusing_are_waited_for_too(
    tmp_path: Path, kafka: Broker, postgres: Server
) -> None:
    places = Places(kafka, kafka, postgres, postgres)
    away = {"database, catalog": postgres.service.frozen, "source, topic": kafka.service.frozen}
    database, _ = live_through(tmp_path, places, away, 40.0, IMPATIENT)
    assert max(database.lags[FILES][1], database.lags[KAFKA][1]) < 15
