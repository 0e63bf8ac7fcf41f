"""Rows become the same slices, whichever engine cuts them."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from cut_engines import differences
from oracle.generate import Workload, shape, workload
from oracle.trial import sessions

SEEDS = range(12)


def plans(spark: Any, work: Workload) -> tuple[Any, Any]:
    """The rows of a workload, and its plan."""
    spark, _ = sessions(spark, None, work.shape) if work.shape.ansi else (loose(spark), None)
    engine = weft.Engine(spark)
    rows = work.stream.frame(spark)
    engine.stream(work.stream.name, rows, event_time=work.stream.event_time)
    engine.sql(work.text)
    (plan,) = engine.plans()
    return rows, plan


def loose(spark: Any) -> Any:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    return session


@pytest.mark.parametrize("seed", SEEDS)
def test_random_workloads_have_the_same_slices(spark: Any, seed: int) -> None:
    work = workload(shape(seed, 12))
    rows, plan = plans(spark, work)
    found = list(differences(rows, plan))
    assert not found, f"{work.shape}\n{work.text}\n" + "\n".join(found)
