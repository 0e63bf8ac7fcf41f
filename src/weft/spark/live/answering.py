"""Answers of a batch as files: bare ones straight from Arrow, others once Spark has computed their select lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weft.algebra.measures import flatten
from weft.plan.sheet import QUERY
from weft.spark.computing import Computation, sheet_schema
from weft.spark.failures import data_error
from weft.spark.files import Folder
from weft.spark.finals import Answer
from weft.spark.live.planning import LivePlan
from weft.spark.step import write_parquet

THREADS = 2


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
    sheets: dict[str, pa.Table] = {}
    with Writing(folder) as writing:
        for answer in answers:
            name = answer.query.name
            if answer.table is None:
                written.failed[name] = answer.failure or "it cannot be computed"
            elif answer.query.direct:
                written.add(name, [writing.write(answer.table)], len(answer.table))
            else:
                sheets[name] = live.sheet.lay_out(name, answer.table)
        if sheets:
            Lists(spark, live, sheets, writing, written).compute(list(sheets))
    for name, original in live.plan.same_as.items():
        if original in written.files:
            written.add(name, written.files[original], 0)
        if original in written.failed:
            written.failed[name] = written.failed[original]
    return written


class Writing:
    """Writes files beside each other: Arrow does so without holding Python up."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._pool = ThreadPoolExecutor(THREADS, "weft-answers")
        self._under_way: list[Future[None]] = []

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=error is not None)
        if error is None:
            for one in self._under_way:
                one.result()

    def write(self, table: pa.Table) -> str:
        """Begin to write a file; gives its name."""
        if not self._under_way:
            self.folder.make_folder("")
        name = f"{len(self._under_way)}.parquet"
        self._under_way.append(self._pool.submit(write_parquet, table, self.folder, name))
        return name


@dataclass(frozen=True)
class Lists:
    """Select lists that Spark has to compute, from the answers on the sheet."""

    spark: SparkSession
    live: LivePlan
    sheets: Mapping[str, pa.Table]
    writing: Writing
    written: Written

    def compute(self, names: Sequence[str]) -> None:
        """Have Spark compute some queries; a data error fails only those that it stems from, found by halves."""
        try:
            self._compute(names)
        except PySparkException as error:
            message = data_error(error)
            if message is None:
                raise
            if len(names) == 1:
                self.written.failed[names[0]] = message
                return
            for half in (names[: len(names) // 2], names[len(names) // 2 :]):
                self.compute(half)

    def _compute(self, names: Sequence[str]) -> None:
        self.spark.sparkContext.setJobDescription("weft: select lists of answers")
        computation = Computation(self.spark, self.live.sheet, dict(self.live.bound))
        rows = pa.concat_tables([self.sheets[name] for name in names])
        # a small table stays in the driver, and so does what Spark computes from it
        sheet = self.spark.createDataFrame(rows, sheet_schema(self.live.sheet, dict(self.live.bound)))
        computed = computation.computed(sheet, names).toArrow()
        numbers = np.asarray(flatten(computed.column(QUERY)))
        for number, target in computation.targets(names).items():
            chosen = np.flatnonzero(numbers == number)
            if len(chosen):
                own = computed.take(pa.array(chosen)).select([column for column, _ in target.columns])
                named = own.rename_columns([name for _, name in target.columns])
                self.written.add(target.name, [self.writing.write(named)], len(named))
