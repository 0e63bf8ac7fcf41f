"""Select lists that Spark has to compute for a micro-batch; planned once for all batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from weft.algebra.numbers import flatten
from weft.plan.sheet import QUERY, Sheet
from weft.spark.bind import Bound
from weft.spark.computing import Computation, sheet_schema
from weft.spark.culprits import spark_control, stopped_alone
from weft.spark.fetching import brought
from weft.spark.reused_plans import ReusableFrame, rdd_of, scanned
from weft.step.answer_files import AnswerFiles
from weft.store.folder import Folder


@dataclass(frozen=True)
class ComputedLists:
    """What Spark computed, of several queries each, and which queries stopped it."""

    rows: list[pa.Table]
    failed: dict[str, str]


class SelectLists:
    """Computes select lists from the answers on a sheet."""

    def __init__(self, spark: SparkSession, sheet: Sheet, bound: Mapping[str, Bound]) -> None:
        self._spark = spark
        self._names = [query.name for query in sheet.queries]
        self._schema = sheet_schema(sheet, dict(bound))
        self._computation = Computation(spark, sheet, dict(bound))
        self._targets = self._computation.targets(self._names)
        self._again: ReusableFrame | None = None

    def compute(self, laid_out: Mapping[str, pa.Table]) -> ComputedLists:
        """Compute the queries that have answers; those that stop it fail, and no others."""
        found: list[pa.Table] = []

        def run(names: Sequence[str]) -> None:
            found.append(self._computed(pa.concat_tables([laid_out[name] for name in names])))

        failed = stopped_alone(list(laid_out), run, spark_control(self._spark)) if laid_out else {}
        return ComputedLists(found, failed)

    def write(self, lists: ComputedLists, files: AnswerFiles) -> None:
        """Write what was computed."""
        for computed in lists.rows:
            self._write(computed, files)
        files.written.failed |= lists.failed

    def _write(self, computed: pa.Table, files: AnswerFiles) -> None:
        numbers = np.asarray(flatten(computed.column(QUERY)))
        for number in np.unique(numbers).tolist():
            target = self._targets[number]
            own = computed.take(pa.array(np.flatnonzero(numbers == number)))
            named = own.select([column for column, _ in target.columns])
            files.write(target.name, named.rename_columns([name for _, name in target.columns]))

    def _computed(self, laid_out: pa.Table) -> pa.Table:
        """The select lists of all rows of the sheet."""
        rows = self._spark.createDataFrame(laid_out, self._schema)
        if self._again is None:
            frame = self._computation.computed(scanned(rows), self._names)
            self._again = ReusableFrame.of(frame)
            if self._again is None:
                return brought(frame)
        return self._again.collect(rdd_of(rows))


def laid_out_in(folder: Folder, files: Iterable[str], sheet: Sheet) -> dict[str, pa.Table]:
    """What tasks laid out in files, by query."""
    filesystem, root = folder.open()
    tables = [pq.read_table(f"{root}/{file}", filesystem=filesystem, partitioning=None) for file in files]
    if not tables:
        return {}
    kinds = pa.schema(list(sheet.columns.items()))
    rows = pa.concat_tables([table.cast(kinds) for table in tables])
    numbers = pc.unique(rows.column(QUERY)).to_pylist()
    names = {number: name for name, (number, _) in sheet.numbers.items()}
    return {names[number]: rows.filter(pc.equal(rows.column(QUERY), number)) for number in numbers}
