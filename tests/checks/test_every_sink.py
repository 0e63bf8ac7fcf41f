"""Every kind of sink passes the generic checks, against the real thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.sink_places import NOT_READ_BACK, PLACES
from weft.checks import Check, SinkPlace, checks_of_sinks
from weft.sinks.specs import FORMS


def test_every_kind_of_sink_has_a_place() -> None:
    assert PLACES.keys() | NOT_READ_BACK == FORMS.keys()


@pytest.mark.parametrize("check", [check for kind in PLACES for check in checks_of_sinks(kind)], ids=str)
def test_every_sink(check: Check[[SinkPlace]], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    check(PLACES[check.subject](request, tmp_path))
