"""What Weft asks of every aggregate, asked of this one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from weft_geometric_mean import AGGREGATES

from weft.checks import Check, checks_of_aggregates


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()


@pytest.mark.parametrize("check", checks_of_aggregates(AGGREGATES), ids=str)
def test_it_passes(check: Check, spark: SparkSession) -> None:
    check(spark)
