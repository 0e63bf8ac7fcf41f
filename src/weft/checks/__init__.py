"""Generic checks: what every aggregate, technique, kind of window and sink must do, for Weft's own and anybody's.

A package that brings one calls these in its tests: each function gives named checks, which are called with what they
need::

    @pytest.mark.parametrize("check", checks_of_aggregates(AGGREGATES), ids=str)
    def test_it_passes(check, spark):
        check(spark)
"""

from weft.checks.check import Check
from weft.checks.of_aggregates import checks_of_aggregates
from weft.checks.of_sinks import SinkPlace, checks_of_sinks
from weft.checks.of_techniques import checks_of_techniques
from weft.checks.of_windows import checks_of_windows

__all__ = [
    "Check",
    "SinkPlace",
    "checks_of_aggregates",
    "checks_of_sinks",
    "checks_of_techniques",
    "checks_of_windows",
]
