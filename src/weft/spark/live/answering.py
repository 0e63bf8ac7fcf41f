"""Answers of a batch as files: bare ones straight from Arrow, select lists that Spark must compute by one more job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from weft.spark.answers import Staged
from weft.spark.deliver import computations, refuse_equal_names
from weft.spark.files import Folder
from weft.spark.finals import Answer
from weft.spark.live.planning import LivePlan
from weft.spark.step import Outcome, write_parquet

SHEET = "sheet.parquet"
COMPUTED = "computed"


@dataclass
class Written:
    """The files of each query, relative to the attempt's folder, and what failed."""

    files: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def add(self, name: str, files: list[str], rows: int) -> None:
        """Some files of a query."""
        if files:
            self.files[name] = list(files)
            self.rows += rows


def write_answers(spark: SparkSession, live: LivePlan, answers: Iterable[Answer], folder: Folder) -> Written:
    """Write all answers under ``folder``, a folder of this attempt alone."""
    written = Written()
    sheets: list[pa.Table] = []
    outcomes = {query.name: Outcome() for query in live.sheet.queries}
    for number, answer in enumerate(answers):
        name = answer.query.name
        if number == 0:
            folder.make_folder(COMPUTED)
        if answer.table is None:
            written.failed[name] = answer.failure or "it cannot be computed"
        elif answer.query.direct:
            write_parquet(answer.table, folder, f"{number}.parquet")
            written.add(name, [f"{number}.parquet"], len(answer.table))
        else:
            sheets.append(live.sheet.lay_out(name, answer.table))
            outcomes[name] = Outcome(files=[SHEET], rows=len(answer.table))
    if sheets:
        write_parquet(pa.concat_tables(sheets), folder, SHEET)
        compute(Staged(spark, folder, live.bound, outcomes, {}, [live.sheet]), written)
    for name, original in live.plan.same_as.items():
        if original in written.files:
            written.add(name, written.files[original], 0)
        if original in written.failed:
            written.failed[name] = written.failed[original]
    return written


def compute(staged: Staged, written: Written) -> None:
    """Have Spark compute the select lists of the queries on the sheet."""
    refuse_equal_names(staged)
    building = Folder(f"{staged.folder.root}/{COMPUTED}")
    for _ in computations(staged, building):
        pass
    for name, outcome in staged.outcomes.items():
        if outcome.failure:
            written.failed[name] = outcome.failure
        elif outcome.files:
            files = [f"{COMPUTED}/{building.file(name, file)}" for file in sorted(building.of(name).files())]
            written.add(name, files, outcome.rows)
