"""Answers of a batch as files: bare ones straight from Arrow, others once Spark has computed their select lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from weft.algebra.numbers import flatten
from weft.plan.sheet import QUERY
from weft.spark.computing import Computation, sheet_schema
from weft.spark.culprits import spark_control, stopped_alone
from weft.spark.fetching import brought
from weft.spark.live.planning import LivePlan
from weft.spark.live.refeed import Collecting, rdd_of, scanned
from weft.step.answers import Answer
from weft.step.parquet import write_parquet
from weft.step.step_plan import StepPlan
from weft.store.folder import Folder

THREADS = 2


@dataclass
class Written:
    """The files of each query, relative to the attempt's folder, and what failed."""

    files: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """How many rows each query has."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(self.counts.values())

    def add(self, name: str, files: list[str], rows: int) -> None:
        """Some files of a query."""
        if files:
            self.files[name] = [*self.files.get(name, []), *files]
            self.counts[name] = self.counts.get(name, 0) + rows

    def share(self, same_as: Mapping[str, str]) -> None:
        """Queries that ask what others ask have their files, or fail as they do."""
        for name, original in same_as.items():
            if original in self.files:
                self.add(name, self.files[original], self.counts[original])
            if original in self.failed:
                self.failed[name] = self.failed[original]


def write_answers(live: LivePlan, lists: SelectLists, answers: Iterable[Answer], folder: Folder) -> Written:
    """Write all answers under ``folder``, a folder of this attempt alone."""
    written = Written()
    with Writing(folder) as writing:
        sheets = write_direct(live, answers, writing, written)
        if sheets:
            lists.compute(sheets, writing, written)
    written.share(live.plan.same_as)
    return written


def write_direct(plan: StepPlan, answers: Iterable[Answer], writing: Writing, written: Written) -> dict[str, pa.Table]:
    """Write the answers that are rows as they are; gives the others, laid out for Spark to compute from."""
    sheets: dict[str, pa.Table] = {}
    for answer in answers:
        name = answer.query.name
        if answer.table is None:
            written.failed[name] = answer.failure or "it cannot be computed"
        elif answer.query.direct:
            written.add(name, [writing.write(answer.table)], len(answer.table))
        else:
            try:
                sheets[name] = plan.sheet.lay_out(name, answer.table)
            except pa.ArrowException as error:
                written.failed[name] = Answer.failed(answer.query, error).failure or ""
    return sheets


class Writing:
    """Writes files beside each other: Arrow does so without holding Python up."""

    def __init__(self, folder: Folder, prefix: str = "") -> None:
        self.folder = folder
        self._prefix = prefix
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
        name = f"{self._prefix}{len(self._under_way)}.parquet"
        self._under_way.append(self._pool.submit(write_parquet, table, self.folder, name))
        return name


class SelectLists:
    """Select lists that Spark has to compute, from the answers on the sheet; planned once for all batches."""

    def __init__(self, spark: SparkSession, live: LivePlan) -> None:
        self._spark = spark
        self._live = live
        self._schema = sheet_schema(live.sheet, dict(live.bound))
        self._computation = Computation(spark, live.sheet, dict(live.bound))
        self._targets = self._computation.targets([query.name for query in live.sheet.queries])
        self._again: Collecting | None = None

    def compute(self, sheets: Mapping[str, pa.Table], writing: Writing, written: Written) -> None:
        """Compute the queries that have answers; those that stop it fail, and no others."""

        def run(names: Sequence[str]) -> None:
            self._write(self._computed(pa.concat_tables([sheets[name] for name in names])), writing, written)

        written.failed |= stopped_alone(list(sheets), run, spark_control(self._spark))

    def _write(self, computed: pa.Table, writing: Writing, written: Written) -> None:
        """Write what Spark computed, a file a query."""
        numbers = np.asarray(flatten(computed.column(QUERY)))
        for number in np.unique(numbers).tolist():
            target = self._targets[number]
            own = computed.take(pa.array(np.flatnonzero(numbers == number)))
            named = own.select([column for column, _ in target.columns])
            named = named.rename_columns([name for _, name in target.columns])
            written.add(target.name, [writing.write(named)], len(named))

    def _computed(self, sheet: pa.Table) -> pa.Table:
        """The select lists of all rows of the sheet."""
        rows = self._spark.createDataFrame(sheet, self._schema)
        if self._again is None:
            names = [query.name for query in self._live.sheet.queries]
            frame = self._computation.computed(scanned(rows), names)
            self._again = Collecting.of(frame)
            if self._again is None:
                return brought(frame)
        return self._again.collect(rdd_of(rows))
