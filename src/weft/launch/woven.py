"""How queries are woven, as a user wishes and with what things cost on the Spark that runs."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from weft.launch.session import name_of
from weft.optimize.constants import Constants
from weft.optimize.entry import ModelName, capacities_of, check_optimizer
from weft.optimize.weaving import DEFAULT, Weaving


def weaving_on(
    spark: SparkSession,
    optimizer: str = DEFAULT,
    model: ModelName = "calibrated",
    nodes: int | Sequence[float] | None = None,
) -> Weaving:
    """The wishes of a user, with the constants of this Spark."""
    check_optimizer(optimizer)
    return Weaving(optimizer, model, () if nodes is None else capacities_of(nodes), Constants.load(name_of(spark)))
