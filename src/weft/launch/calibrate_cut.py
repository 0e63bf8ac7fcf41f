"""What cutting rows costs each engine on this Spark: wide and narrow plans run by all of them, and constants fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import get_args
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from weft.launch.engine import Engine
from weft.launch.fitting import fitted
from weft.optimize.cut_choice import CutShape, CutWork
from weft.optimize.weaving import Weaving
from weft.plan.cut_engine import CutEngine
from weft.plan.model import Plan
from weft.spark.step import Totals, step
from weft.store.folder import Folder

WARM_UP = 1
TOGETHER = Weaving("shared", "two-level")
SOME, ALL = "sum(x), max(x)", "sum(x), max(x), min(x), avg(x), count(*), sum(y), max(y), min(y), max(x + y)"
PARTS = ("few", "x % 13", "y % 11", "x % 7", "y % 17")


@dataclass(frozen=True)
class CutTrial:
    """A query for each of some sets of keys, all over windows of so many seconds."""

    name: str
    keys: tuple[str, ...]
    aggregates: str = SOME
    slide: int = 600
    rows: int | None = None
    """The first so many; all if not given."""

    def sql(self) -> str:
        """Its queries."""
        return ";\n".join(
            f"SELECT {keys}, window.start, {self.aggregates} FROM calibration "
            f"GROUP BY {keys}, window(ts, '{self.slide} seconds')"
            for keys in self.keys
        )


KEY_SETS = tuple(", ".join(some) for size in (1, 2, 3) for some in combinations(PARTS, size))
CUT_TRIALS = (
    CutTrial("next to nothing", ("few",), rows=1_000),
    CutTrial("few rows of a wide plan", KEY_SETS, ALL, rows=1_000),
    CutTrial("one set of keys", ("few",)),
    CutTrial("one set of keys, many numbers", ("few",), ALL),
    CutTrial("many sets of keys", KEY_SETS),
    CutTrial("many sets of keys, many numbers", KEY_SETS, ALL),
    CutTrial("many slices", ("many",), slide=5),
    CutTrial("many slices, many numbers", ("many",), ALL, slide=5),
)


def cut_constants(
    spark: SparkSession,
    rows: DataFrame,
    folder: Folder,
    repeats: int,
    progress: Callable[[str], object],
    trials: Sequence[CutTrial] = CUT_TRIALS,
) -> tuple[dict[str, dict[str, float]], list[tuple[str, float, float]]]:
    """The constants of every engine, and each trial's name with the seconds it took and those now predicted.

    Parameters
    ----------
    rows
        In the columns of :func:`~weft.launch.calibrate.calibration_rows`.
    """
    plans = [(trial, planned(spark, rows, trial)) for trial in trials]
    seconds: dict[tuple[CutTrial, CutEngine], list[float]] = {}
    works: dict[tuple[CutTrial, CutEngine], CutWork] = {}
    for number in range(-WARM_UP, repeats):
        for trial, plan in plans:
            some = rows if trial.rows is None else rows.limit(trial.rows)
            for engine in engines():
                told = "warming up" if number < 0 else f"run {number + 1} of {repeats}"
                progress(f"{trial.name} cut by {engine}, {told}")
                totals = cut_totals(plan, some, folder, spark.sparkContext.defaultParallelism, engine)
                seconds.setdefault((trial, engine), []).append(totals.seconds)
                works[trial, engine] = CutShape.of(plan).work(engine, totals.rows_read, totals.slices)
    medians = {place: median(took[-repeats:]) for place, took in seconds.items()}
    found: dict[str, dict[str, float]] = {}
    told_of = []
    for engine in engines():
        own = [(trial, engine) for trial in trials]
        found[engine] = fitted([works[place] for place in own], [medians[place] for place in own])
        for place in own:
            told_of.append((f"{place[0].name} cut by {engine}", medians[place], works[place].seconds(found[engine])))
    return found, told_of


def engines() -> Iterator[CutEngine]:
    """All that there are."""
    yield from get_args(CutEngine)


def planned(spark: SparkSession, rows: DataFrame, trial: CutTrial) -> Plan:
    """Plan a trial; all its queries over one set of keys share slices."""
    engine = Engine(spark)
    engine.weaving = TOGETHER
    engine.stream("calibration", rows, "ts")
    engine.sql(trial.sql())
    (plan,) = engine.plans()
    return plan


def cut_totals(plan: Plan, rows: DataFrame, folder: Folder, buckets: int, engine: CutEngine) -> Totals:
    """What a step did, and how long it took; its answers are few, and thrown away."""
    answers = Folder(f"{folder.root}/{uuid4().hex}")
    try:
        return step(plan, rows, answers, buckets, engine).totals
    finally:
        answers.remove()
