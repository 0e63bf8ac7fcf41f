"""What things cost on this Spark: runs that differ in what they do most of, and the constants that explain their times.

Each run goes through the engine as any other. How many rows it cuts, slices it hands over, numbers it merges and
answers it emits follows from its plan (:mod:`weft.optimize.work`); the constants are those that come nearest to the
times of all runs, in relative error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from weft.algebra.monoids import add_int, max_int
from weft.evaluate.registry import TECHNIQUES
from weft.evaluate.sliding import slide
from weft.launch.calibrate_cut import CUT_TRIALS, CutTrial, cut_constants
from weft.launch.engine import Engine
from weft.launch.fitting import fitted
from weft.optimize.constants import Constants
from weft.optimize.omega import TechniqueCode, overlap
from weft.optimize.weaving import Weaving
from weft.optimize.work import Rows, Work, work_of_run
from weft.plan.model import Plan
from weft.spark.step import step
from weft.store.folder import Folder

ROWS = 600_000
SECONDS = 3_600
FEW_KEYS, MANY_KEYS = 20, 1_000
ITEMS, RANGE = 200_000, 64
WARM_UP = 2
KERNEL_RUNS = 5
"""The first of them compiles."""
TOGETHER, APART = Weaving("shared", "two-level"), Weaving("no-share", "two-level")
IN_TREES = Weaving("random", "three-level")
A_LARGE_PRIME = 1_000_003
SOME, ALL = "sum(x), max(x)", "sum(x), max(x), min(x), avg(x), count(*), sum(y), max(y), min(y)"


@dataclass(frozen=True)
class Probe:
    """Queries to run: windows in seconds as (range, slide), the column to group by, and how they are woven."""

    name: str
    by: str
    windows: tuple[tuple[int, int], ...]
    weaving: Weaving = TOGETHER
    rows: int = ROWS
    aggregates: str = SOME
    ordered: bool = True

    @property
    def keys(self) -> int:
        """How many different keys there are."""
        return MANY_KEYS if self.by == "many" else FEW_KEYS

    def sql(self) -> str:
        """Its queries."""
        return ";\n".join(
            f"SELECT {self.by}, window.start, {self.aggregates} FROM calibration "
            f"GROUP BY {self.by}, window(ts, '{length} seconds', '{slide} seconds')"
            for length, slide in self.windows
        )


def tumbling(*slides: int) -> tuple[tuple[int, int], ...]:
    """Windows as long as they slide."""
    return tuple((slide, slide) for slide in slides)


COPRIME = (61, 67, 71, 73, 77, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131)
TRIALS = (
    Probe("next to nothing", "few", ((SECONDS, SECONDS),), rows=1_000),
    Probe("rows", "few", tumbling(60)),
    Probe("rows with many numbers", "few", tumbling(60), aggregates=ALL),
    Probe("rows cut four times", "few", tumbling(60, 70, 110, 130), APART),
    Probe("rows cut twelve times", "few", tumbling(*COPRIME[:12]), APART),
    Probe("edges", "few", tumbling(*COPRIME)),
    Probe("edges by the hundred", "few", tumbling(*range(301, 421))),
    Probe("slices", "many", tumbling(5)),
    Probe("slices with many numbers", "many", tumbling(5), aggregates=ALL),
    Probe("slices in no order", "many", tumbling(5), ordered=False),
    Probe("slices with many numbers in no order", "few", tumbling(1), aggregates=ALL, ordered=False),
    Probe("answers", "few", tuple((2 * length, 2) for length in range(1, 51))),
    Probe("answers with many aggregates", "few", tuple((2 * length, 2) for length in range(1, 21)), aggregates=ALL),
    Probe("merges", "many", ((1, 1), *tumbling(*range(301, 361)))),
    Probe("merges of many numbers", "many", ((1, 1), *tumbling(*range(301, 341))), aggregates=ALL),
    Probe("merges in trees", "many", tumbling(*range(61, 101)), IN_TREES),
    Probe("queries", "few", tuple((60 * length, 60 * slide) for length in range(1, 76) for slide in (1, 2, 3, 4))),
    Probe("queries over nothing", "few", tuple((60 * length, 60) for length in range(1, 201)), rows=1_000),
    Probe("queries of different slides", "few", tumbling(*range(150, 300)), IN_TREES),
)


def calibrate(
    spark: SparkSession,
    folder: Folder,
    repeats: int = 5,
    progress: Callable[[str], object] = lambda what: None,
    trials: Sequence[Probe] = TRIALS,
    cut_trials: Sequence[CutTrial] = CUT_TRIALS,
) -> tuple[Constants, list[tuple[str, float, float]]]:
    """Measure; returns the constants, and each trial's name with the seconds it took and those now predicted.

    Rows and answers are written to ``folder``, which all workers must reach, and removed again. Trials take turns, so
    that a slow minute hits all alike; the first rounds, in which Java and Spark compile, are not counted.
    """
    try:
        kinds = {(trial.rows, trial.ordered) for trial in trials}
        frames = {kind: calibration_rows(spark, folder, *kind) for kind in kinds}
        runs = [prepared(spark, frames[trial.rows, trial.ordered], trial) for trial in trials]
        seconds: list[list[float]] = [[] for _ in trials]
        for number in range(-WARM_UP, repeats):
            for took, run in zip(seconds, runs, strict=True):
                progress(f"{run.trial.name}, {'warming up' if number < 0 else f'run {number + 1} of {repeats}'}")
                took.append(run_plan(run.engine, run.plan, run.rows, folder))
        rows = frames[max(kinds)]
        cut, told_of_cuts = cut_constants(spark, rows, folder, repeats, progress, cut_trials)
    finally:
        folder.remove()
    progress("kernels")
    medians = [median(took[WARM_UP:]) for took in seconds]
    found: dict[str, Any] = {**fitted([run.work for run in runs], medians)}
    cores = spark.sparkContext.defaultParallelism
    constants = Constants(**found, kernel=kernels(), cut=cut, cores=cores)
    told = [(run.trial.name, took, run.work.seconds(constants)) for run, took in zip(runs, medians, strict=True)]
    return constants, told + told_of_cuts


@dataclass(frozen=True)
class Prepared:
    """A trial that is ready to run, and what it will do."""

    trial: Probe
    engine: Engine
    plan: Plan
    rows: DataFrame
    work: Work


def prepared(spark: SparkSession, rows: DataFrame, trial: Probe) -> Prepared:
    """Plan a trial."""
    engine = Engine(spark)
    engine.weaving = trial.weaving
    engine.stream("calibration", rows, "ts")
    engine.sql(trial.sql())
    (plan,) = engine.plans()
    return Prepared(trial, engine, plan, rows, work_of_plan(engine, plan, trial.rows, SECONDS, trial.keys))


def calibration_rows(spark: SparkSession, folder: Folder, count: int, ordered: bool) -> DataFrame:
    """Rows in Parquet: a second of event time holds as many as any other, keys and values are mixed."""
    time = "id" if ordered else f"pmod(id * {A_LARGE_PRIME}, {count})"
    rows = spark.range(count).selectExpr(
        f"timestamp_micros(1700000000000000 + {time} * {SECONDS * 1_000_000 // count}) AS ts",
        f"pmod(xxhash64(id, 1), {FEW_KEYS}) AS few",
        f"pmod(xxhash64(id, 2), {MANY_KEYS}) AS many",
        "pmod(xxhash64(id, 3), 1000) AS x",
        "pmod(xxhash64(id, 4), 1000) AS y",
    )
    path = folder.url(f"rows-{count}-{ordered}")
    rows.write.mode("overwrite").parquet(path)
    return spark.read.parquet(path)


def run_plan(engine: Engine, plan: Plan, rows: DataFrame, folder: Folder) -> float:
    """Seconds that one step takes; its answers are thrown away."""
    answers = Folder(f"{folder.root}/{uuid4().hex}")
    try:
        return step(plan, rows, answers, engine.buckets).totals.seconds
    finally:
        answers.remove()


def work_of_plan(engine: Engine, plan: Plan, count: float, seconds: float, keys: float) -> Work:
    """What a run of the plan does over rows that all its groupings see alike."""
    rows = Rows(count, seconds, keys, plan.ordered)
    return work_of_run(plan.groupings, [rows] * len(plan.groupings), engine.buckets)


def kernels() -> dict[str, float]:
    """Seconds for one operation of every technique's kernel."""
    return dict(_kernels())


def _kernels() -> Iterator[tuple[str, float]]:
    values = (np.random.default_rng(0).integers(0, 1_000, ITEMS),)
    hi = np.arange(1, ITEMS + 1)
    lo = np.maximum(hi - RANGE, 0)
    for name, technique in TECHNIQUES.items():
        monoid = add_int if name in ("slickdeque-inv", "panes-inv") else max_int
        technique.check(monoid)
        seconds = []
        for _ in range(KERNEL_RUNS):
            began = perf_counter()
            slide(monoid, values, lo, hi, name)
            seconds.append(perf_counter() - began)
        operations = overlap(TechniqueCode.named(name), RANGE, [RANGE], 1.0)
        yield name, min(seconds) / ITEMS / operations
