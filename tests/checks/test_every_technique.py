"""Every technique that is registered passes the generic checks."""

from __future__ import annotations

import pytest

from weft.checks import Check, checks_of_techniques


@pytest.mark.parametrize("check", checks_of_techniques(), ids=str)
def test_every_technique(check: Check[[]]) -> None:
    check()
