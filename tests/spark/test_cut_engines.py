"""Rows become the same slices, whichever engine cuts them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import weft
from oracle.generate import Workload, shape, workload
from spark.cut_engines import by_here, by_workers, differences, own_tables
from weft.errors import WeftError
from weft.plan.model import Plan
from weft.spark.fetching import brought
from weft.spark.kernel_cut import cut_into_buckets, engine_for, left_to_jvm
from weft.spark.step import tuned
from weft.step.cutting import Counts, Cutter

SEEDS = range(12 if os.environ.get("WEFT_LONG") else 3)
QUERIES = """
CREATE VIEW b AS SELECT k, window, sum(1 / v) AS s, max_by(k, ts) AS m FROM rows GROUP BY k, window(ts, '10 seconds');
CREATE VIEW c AS SELECT window, sum(1 / w) AS s FROM rows WHERE w > 0 GROUP BY window(ts, '9 seconds', '3 seconds');
"""


def planned(spark: Any, work: Workload) -> tuple[Any, Plan]:
    """The rows of a workload, and its plan; some in another time zone, some without shards."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(work.shape.ansi).lower())
    if work.shape.seed % 3 == 0:
        session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    engine = weft.Engine(session)
    rows = work.stream.frame(session)
    engine.stream(work.stream.name, rows, event_time=work.stream.event_time)
    engine.sql(work.text)
    (plan,) = engine.plans()
    if work.shape.seed % 2:
        plan = replace(plan, groupings=tuple(replace(grouping, conditional=True) for grouping in plan.groupings))
    return rows, plan


@pytest.mark.parametrize("seed", SEEDS)
def test_random_workloads_have_the_same_slices(spark: Any, seed: int) -> None:
    work = workload(shape(seed, 12))
    rows, plan = planned(spark, work)
    found = list(differences(rows, plan))
    assert not found, f"{work.shape}\n{work.text}\n" + "\n".join(found)


@pytest.fixture
def rows(spark: Any) -> Any:
    """Rows without time and rows that could not be read, which would raise errors if anything looked at them."""
    return spark.range(0, 2000, 1, 3).selectExpr(
        "CASE WHEN id % 50 <> 7 THEN timestamp_micros(id * 90000) END AS ts",
        "CASE WHEN id % 5 < 4 THEN concat('k', id % 5) END AS k",
        "CASE WHEN id % 50 IN (7, 8) THEN 0 ELSE id % 9 + 1 END AS v",
        "id % 3 AS w",
        "CASE WHEN id % 50 = 8 THEN 'unreadable' END AS mark",
    )


@pytest.fixture
def plan(spark: Any, rows: Any) -> Plan:
    engine = weft.Engine(spark)
    engine.stream("rows", rows, event_time="ts")
    engine.sql(QUERIES)
    (plan,) = engine.plans()
    return plan


EXPECTED = Counts(rows=1960, without_time=40, bad=40, smallest=0, largest=1999 * 90_000)


def test_what_cannot_be_read_is_counted_and_evaluated_for_nobody(rows: Any, plan: Plan) -> None:
    here = by_here(rows, plan, "mark")
    assert here.counts == EXPECTED
    tables, counts = by_workers(rows, plan, "mark")
    assert counts == EXPECTED
    good = list(differences(rows.where("mark IS NULL").drop("mark"), plan))
    assert not good, good
    assert tables.keys() == here.tables.keys()


def test_bundles_hold_the_slices_of_all_tasks(rows: Any, plan: Plan) -> None:
    good = rows.where("mark IS NULL")
    with tuned(rows.sparkSession):
        frame, arrival = cut_into_buckets(good, plan, 3, "counted")
        bundles = brought(frame.repartitionById(3, F.col("bucket")))
    assert set(bundles.column("bucket").to_pylist()) <= {0, 1, 2}
    tables = [table for batch in bundles.to_batches() for table in arrival.tables(bytes(batch.serialize()))]
    found = own_tables(plan, pa.concat_tables(tables))
    here, cutter = by_here(good, plan), Cutter(plan)
    for number, table in found.items():
        merged = cutter.merged(number, [table, table.slice(0, 0)])
        assert len(merged) == len(here.tables[number])
        assert merged.schema.equals(here.tables[number].schema)


@pytest.mark.parametrize(
    ("key", "call", "reason"),
    [
        ("v", "count(*)", None),
        ("v", "sum(d)", "may be too large"),
        ("named_struct('s', CAST(v AS STRING) COLLATE UTF8_LCASE)", "count(*)", "collation"),
    ],
)
def test_what_goes_to_the_jvm_is_said(spark: Any, key: str, call: str, reason: str | None) -> None:
    rows = spark.sql("SELECT timestamp_micros(id) AS ts, CAST(id AS DECIMAL(38, 6)) AS d, id AS v FROM range(3)")
    engine = weft.Engine(spark)
    engine.stream("rows", rows, event_time="ts")
    engine.sql(f"SELECT window, {call} AS n FROM rows GROUP BY window(ts, '1 second'), {key}")
    (plan,) = engine.plans()
    left = left_to_jvm(plan, rows)
    assert engine_for(plan, rows, "workers") == ("workers" if reason is None else "jvm")
    assert list(left) == ([] if reason is None else [0])
    assert reason is None or reason in left[0]
    engine.cut = "workers"
    told = engine.explain()
    assert ("by compiled kernels" in told) == (reason is None)
    assert reason is None or reason in told


@pytest.mark.parametrize("cut", ["workers", "driver"])
def test_a_value_that_stops_a_query_costs_no_other_one_its_answers(spark: Any, rows: Any, cut: Any) -> None:
    engine = weft.Engine(spark, cut=cut)
    engine.stream("rows", rows.where("mark IS NULL").drop("mark"), event_time="ts")
    engine.sql(QUERIES)
    engine.sql("CREATE VIEW broken AS SELECT window, sum(1 / w) AS s FROM rows GROUP BY window(ts, '10 seconds')")
    answers = engine.run()
    assert list(answers.failures) == ["broken"]
    assert "DIVIDE_BY_ZERO" in str(answers.failures["broken"])
    assert (answers.totals.rows_read, answers.totals.rows_without_time) == (1960, 40)
    assert answers["b"].count() == 5 * 18
    ids = [id for id in range(2000) if id % 50 not in (7, 8) and id % 3]
    (total,) = answers["c"].selectExpr("sum(s)").first()
    assert total == pytest.approx(3 * sum(1 / (id % 3) for id in ids))


def test_what_is_no_engine_is_refused(spark: Any) -> None:
    with pytest.raises(WeftError, match="jvm, workers, driver"):
        weft.Engine(spark, cut="gpu")  # type: ignore[arg-type]
