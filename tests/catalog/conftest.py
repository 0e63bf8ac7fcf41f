"""A fresh catalog for each test, in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.catalog import Catalog


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    database: str = request.getfixturevalue("postgres").database()
    return database


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as found:
        yield found
