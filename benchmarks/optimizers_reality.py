"""Plans on the real engine: the calibrated model against the clock, and 004 Fig. 47-48.

Run on a machine that has nothing else to do, after ``weft calibrate``; each command takes less than ten minutes::

    python benchmarks/optimizers_reality.py forests --only 1,3,5,7,9,11,13,15,17,19
    python benchmarks/optimizers_reality.py forests --only 2,4,6,8,10,12,14,16,18,20
    python benchmarks/optimizers_reality.py throughput

Each leaves its rows in ``benchmarks/results``, which ``python benchmarks/optimizers.py report`` reads.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import typer
from pyspark.sql import DataFrame, SparkSession

from weft.launch.calibrate import run_plan, work_of_plan
from weft.launch.engine import Engine
from weft.launch.session import local_session, name_of
from weft.optimize import optimize
from weft.optimize.constants import Constants
from weft.optimize.cost import Traffic
from weft.optimize.omega import TechniqueCode, overlap
from weft.optimize.weaving import Seen, Weaving, one_tree, planted, simply_cut
from weft.optimize.work import Rows, columns_of
from weft.optimize.workload import Workload
from weft.plan.model import Grouping, Plan
from weft.store.folder import Folder

RESULTS = Path(__file__).parent / "results"
Row = dict[str, Any]
app = typer.Typer(help=__doc__)


@dataclass(frozen=True)
class Case:
    """Queries over rows."""

    queries: int
    keys: int
    max_slide: int
    max_overlap: int
    generator: str = "normal"
    real_overlap: bool = False
    seconds: int = 3_600

    @property
    def name(self) -> str:
        """What it is called in the tables."""
        fragments = ", fragments" if self.real_overlap else ""
        return f"{self.queries} queries, {self.keys} keys, {self.generator} slides to {self.max_slide} s{fragments}"

    def sql(self) -> str:
        """Its queries, each with two of five aggregates."""
        workload = Workload(
            self.queries, self.max_slide, self.max_overlap, 0.0, self.generator, self.real_overlap, self.queries
        )
        by, shown = ("", "") if self.keys == 1 else (f"k{self.keys}, ", f"k{self.keys}, ")
        aggregates = ("sum(x)", "max(x)", "count(*)", "min(x)", "avg(x)")
        return ";\n".join(
            f"SELECT {shown}window.start, {aggregates[number % 5]}, {aggregates[(number // 5 + 1) % 5]} AS other "
            f"FROM s GROUP BY {by}window(ts, '{length} seconds', '{slide} seconds')"
            for number, (length, slide) in enumerate(zip(*(side.tolist() for side in workload.draw()), strict=True))
        )


CASES = (
    Case(2, 1000, 60, 5),
    Case(3, 100, 100, 4, real_overlap=True),
    Case(5, 1000, 30, 3),
    Case(8, 10, 300, 10, "diverse"),
    Case(12, 1000, 120, 6),
    Case(20, 1000, 60, 5, "diverse"),
    Case(30, 100, 400, 8, real_overlap=True),
    Case(40, 10, 1000, 10, "template"),
    Case(50, 1000, 500, 3),
    Case(75, 100, 600, 5, "template"),
    Case(100, 100, 200, 5, "diverse"),
    Case(100, 1000, 300, 2, real_overlap=True),
    Case(150, 10, 300, 10),
    Case(200, 100, 900, 4),
    Case(300, 10, 3600, 10, "template"),
    Case(400, 100, 1000, 3, "diverse"),
    Case(500, 10, 600, 10),
    Case(800, 10, 1000, 5, real_overlap=True),
    Case(1200, 10, 2000, 5),
    Case(2000, 10, 3600, 4),
)


def prepare(spark: SparkSession, folder: Folder, rows: int, seconds: int) -> DataFrame:
    """Rows in Parquet, in the order of time."""
    made = spark.range(rows).selectExpr(
        f"timestamp_micros(1700000000000000 + id * {seconds * 1_000_000 // rows}) AS ts",
        *(f"pmod(xxhash64(id, {keys}), {keys}) AS k{keys}" for keys in (10, 100, 1000)),
        "pmod(xxhash64(id, 7), 1000) AS x",
    )
    path = folder.url(f"rows-{rows}")
    made.write.mode("overwrite").parquet(path)
    return spark.read.parquet(path)


def plans_of(engine: Engine, case: Case, rows: int) -> dict[str, Plan]:
    """One tree, a few trees that each cut the rows, a few that share the cut, and as many as the model wants."""
    constants = engine.weaving.constants or Constants()
    engine.weaving = replace(engine.weaving, optimizer="shared", model="two-level")  # a sample is taken, nothing woven
    (plan,) = engine.plans()
    (grouping,) = (replace(one, trees=(), placed=False) for one in plan.groupings)
    plain = replace(plan, nodes=1)
    questions = [(query.name, query.query.window) for query in grouping.queries]
    seen = Seen(rows / case.seconds, case.keys)
    traffic = Traffic(case.keys, columns_of(grouping.queries))

    def with_trees(groupings: Sequence[Grouping]) -> Plan:
        return replace(plain, groupings=tuple(simply_cut(one, seen, constants) for one in groupings))

    def forest(optimizer: str, levels: Any, nodes: int = 1) -> Plan:
        found = optimize(
            questions, seen.rate, optimizer, levels=levels, nodes=nodes, traffic=traffic, constants=constants
        )
        return with_trees(planted(grouping, found))

    found = {
        "one tree": with_trees([replace(grouping, trees=(one_tree(grouping),))]),
        "each tree cuts": forest("w-tn", 2, nodes=3),
        "rows cut once": forest("w-tn", 3, nodes=4),
        "as optimized": forest("weft", 3),
    }
    distinct: dict[Any, str] = {}
    for name, one in found.items():
        shape = frozenset(
            (len(one.groupings) > 1, frozenset(tree.queries)) for part in one.groupings for tree in part.trees
        )
        distinct.setdefault(shape, name)
    # where trees have keys in common, slices are spread by keys
    return {name: unweighted(found[name]) for name in distinct.values()}


def unweighted(plan: Plan) -> Plan:
    """The same without what a sample told of a single grouping."""
    return plan if len(plan.groupings) == len(plan.loads) else replace(plan, loads=())


@dataclass(frozen=True)
class Ready:
    """A case with its plans, to be run."""

    case: Case
    engine: Engine
    plans: dict[str, Plan]
    rows: DataFrame
    count: int

    @classmethod
    def of(cls, case: Case, spark: SparkSession, rows: DataFrame, count: int) -> Ready:
        """Plan a case."""
        engine = Engine(spark)
        engine.stream("s", rows, "ts")
        engine.sql(case.sql())
        return cls(case, engine, plans_of(engine, case, count), rows, count)

    def round(self, folder: Folder, rng: Random) -> dict[str, float]:
        """Seconds of every plan, in random order."""
        names = rng.sample(sorted(self.plans), len(self.plans))
        return {name: run_plan(self.engine, self.plans[name], self.rows, folder) for name in names}

    def measured(self, folder: Folder, runs: int) -> Iterator[Row]:
        """All plans, interleaved; a first round, in which Java compiles, is not counted."""
        case, rng = self.case, Random(self.case.queries)
        rounds = [self.round(folder, rng) for _ in range(runs + 1)][1:]
        constants = self.engine.weaving.constants or Constants()
        for name, plan in self.plans.items():
            work = work_of_plan(self.engine, plan, self.count, case.seconds, case.keys)
            seconds = [one[name] for one in rounds]
            yield {"case": case.name, "queries": case.queries, "plan": name} | {
                "trees": sum(len(grouping.trees) for grouping in plan.groupings),
                "edges": sum(len(grouping.progressions) for grouping in plan.groupings),
                "measured": median(seconds),
                "runs": [round(one, 4) for one in seconds],
                "predicted": work.seconds(constants),
                "work": {key: getattr(work, key) for key in work.__dataclass_fields__},
            }


@app.command()
def forests(only: str = "", runs: int = 5, rows: int = 400_000) -> None:
    """Every case with every plan; ``--only 1,3,5`` takes the cases with these numbers."""
    chosen = [CASES[int(number) - 1] for number in only.split(",")] if only else CASES
    spark, folder = start()
    frame = prepare(spark, folder, rows, CASES[0].seconds)
    found: list[Row] = []
    try:
        ready = [Ready.of(case, spark, frame, rows) for case in chosen]
        for one in ready:  # nothing is measured before Java has seen everything once
            one.round(folder, Random(0))
        for one in ready:
            found += one.measured(folder, runs)
            keep("reality", found, "case")
            for row in found[-len(one.plans) :]:
                told = f"{row['measured']:6.2f} s, predicted {row['predicted']:6.2f}"
                print(f"{row['case']:60} {row['plan']:16} {told}", flush=True)
    finally:
        folder.remove()


TECHNIQUES = ("panes", "flatfat", "flatfit", "slickdeque-inv", "slickdeque-noninv")
SPAN = 200_000


@app.command()
def throughput(runs: int = 3, queries: int = 100, span: int = SPAN) -> None:
    """004 Table 13 on the real engine, with ranges a tenth as long: estimated and actual throughput by technique."""
    spark, folder = start()
    frame = prepare(spark, folder, span, span)
    case = Case(queries, 1, 1000, 1000, "template", seconds=span)
    found: list[Row] = []
    try:
        for optimizer, technique in ((one, two) for one in ("weave-share", "tri-weave") for two in TECHNIQUES):
            found.append(throughput_of(spark, frame, folder, case, optimizer, technique, runs))
            print(found[-1])
        keep("throughput", found, "optimizer")
    finally:
        folder.remove()


def throughput_of(
    spark: SparkSession, rows: DataFrame, folder: Folder, case: Case, optimizer: str, technique: str, runs: int
) -> Row:
    aggregate = "sum(x)" if technique == "slickdeque-inv" else "max(x)"
    text = case.sql().split(";\n")
    plain = [f"SELECT window.start, {aggregate} FROM s {one[one.index('GROUP BY') :]}" for one in text]
    model: Any = "two-level" if optimizer == "weave-share" else "three-level"
    engine = Engine(spark, technique=technique)
    engine.stream("s", rows, "ts")
    engine.sql(";\n".join(plain))
    engine.weaving = Weaving(optimizer, model)
    (plan,) = engine.plans()
    seconds = [run_plan(engine, plan, rows, folder) for _ in range(runs + 1)][1:]
    windows = [query.query.window for query in plan.queries]
    forest = optimize(
        [(query.name, query.query.window) for query in plan.queries], 1.0, optimizer, model=model, technique=technique
    )
    constants = Constants.load(name_of(spark))
    seen = Rows(case.seconds, case.seconds, 1)
    operations = sum(
        seen.answers(window) * overlap(TechniqueCode.named(technique), window.overlap, [window.range], 1 / window.slide)
        for window in windows
    )
    answers = sum(seen.answers(window) for window in windows)
    return {"optimizer": optimizer, "technique": technique, "trees": sum(len(one.trees) for one in plan.groupings)} | {
        "estimated": 1 / forest.cost,
        "actual": answers / median(seconds),
        "calibrated": answers
        / (
            work_of_plan(engine, plan, case.seconds, case.seconds, 1).seconds(constants)
            + operations * constants.kernel[technique]
        ),
        "runs": [round(one, 4) for one in seconds],
    }


def start() -> tuple[SparkSession, Folder]:
    return local_session(), Folder(tempfile.mkdtemp(prefix="weft-reality-"))


def keep(name: str, rows: Sequence[Row], by: str) -> None:
    """Put rows in the place of earlier ones about the same."""
    path = RESULTS / f"optimizers-{name}.json"
    now = {row[by] for row in rows}
    kept = [row for row in (json.loads(path.read_text()) if path.exists() else []) if row[by] not in now]
    lines = ",\n".join(json.dumps(row) for row in [*kept, *rows])
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    app()
