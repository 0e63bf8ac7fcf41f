"""Every aggregate that is registered passes the generic checks."""

from __future__ import annotations

from typing import Any

import pytest

from weft.checks import Check, checks_of_aggregates


@pytest.mark.parametrize("check", checks_of_aggregates(), ids=str)
def test_every_aggregate(check: Check[[Any]], spark: Any) -> None:
    check(spark)
