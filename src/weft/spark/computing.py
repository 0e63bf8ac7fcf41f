"""Select lists and HAVINGs that Spark has to compute: of many queries in one job, from the users' own texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from weft.algebra.numbers import Array
from weft.plan.model import BoundQuery, digest
from weft.plan.sheet import QUERY, TEMPLATE, Sheet
from weft.query.model import WINDOW
from weft.query.placeholders import replace_placeholders
from weft.slicing.window import Window
from weft.spark.bind import Bound
from weft.spark.fetching import arrow_schema, worked
from weft.spark.packed import packed, packing_of
from weft.spark.step import tuned
from weft.step.answer_files import Written, pack
from weft.step.packing import Packing
from weft.step.parquet import parquet_options
from weft.store.folder import Folder

BARE = re.compile(r"\(\s*[\w.]+\s*\)")
SIMPLE = (NumericType, StringType, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)
"""Types that Arrow writes to Parquet as Spark does; what has others is written by Spark, a job a query."""


def sheet_schema(sheet: Sheet, bound: dict[str, Bound]) -> StructType:
    """The table's columns as Spark types."""
    kinds: dict[str, DataType] = {}
    for name, places in sheet.places.items():
        staged = bound[name].staged
        kinds |= {column: staged[placeholder].dataType for placeholder, column in places.items()}
    fields = [StructField(column, kinds[column]) for column in sheet.columns if column in kinds]
    return StructType([StructField(QUERY, IntegerType()), StructField(TEMPLATE, IntegerType()), *fields])


def rows_of(frame: DataFrame, sheet: Sheet, name: str) -> DataFrame:
    """One query's rows under its own placeholders."""
    number, _ = sheet.numbers[name]
    own = (f"{column} AS {placeholder}" for placeholder, column in sheet.places[name].items())
    return frame.where(f"{QUERY} = {number}").selectExpr(*own)


@dataclass(frozen=True)
class Target:
    """Where a query's rows go: which columns of the computed table, under which names."""

    name: str
    window: Window
    having: bool
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Computation:
    """One Spark job for the select lists of many queries."""

    spark: SparkSession
    sheet: Sheet
    bound: dict[str, Bound]

    def is_simple(self, name: str) -> bool:
        """Whether all columns of a query have types that workers can write."""
        return all(isinstance(item.dataType, SIMPLE) for item in self.bound[name].schema)

    def run(self, files: Sequence[str], names: Sequence[str], folder: Folder) -> Written:
        """Compute the queries ``names`` and write files of each to ``folder``; gives what was written."""
        numbers = sorted(self.sheet.numbers[name][0] for name in names)
        rows = self.spark.read.schema(sheet_schema(self.sheet, self.bound)).parquet(*files)
        computed = self.computed(rows.where(f"{QUERY} IN ({', '.join(map(str, numbers))})"), names)
        folder.make_folder("")
        with tuned(self.spark):
            packing = packing_of(computed)
            frame = packed(computed, packing)
            task = WritingTask(self.targets(names), packing, folder, arrow_schema(frame))
            written = Written()
            for one in worked(frame, frame._jdf.queryExecution().executedPlan(), task):
                written.join(one)
            return written

    def computed(self, rows: DataFrame, names: Sequence[str]) -> DataFrame:
        """The select lists of the queries ``names`` over their rows of the sheet, in columns shared by type."""
        templates = self._templates(names)
        havings = {
            at: self._own(query, query.query.condition) for at, query in templates.items() if query.query.condition
        }
        if havings:
            rows = rows.where(_choose(havings, otherwise="true"))
        outputs: dict[str, dict[int, str]] = {}
        for at, query in templates.items():
            for place, output in zip(self._output_places(query), query.query.outputs, strict=True):
                outputs.setdefault(place, {})[at] = self._own(query, output.sql)
        window = [f"{WINDOW}.start AS {WINDOW}"] if havings else []
        return rows.selectExpr(QUERY, *window, *(f"{_choose(texts)} AS {place}" for place, texts in outputs.items()))

    def targets(self, names: Sequence[str]) -> dict[int, Target]:
        """By a query's number: where its rows stand among the computed ones."""
        found = {}
        for name in names:
            query = self.bound[name].query
            columns = tuple(zip(self._output_places(query), query.columns, strict=True))
            number = self.sheet.numbers[name][0]
            found[number] = Target(name, query.window, query.query.having is not None, columns)
        return found

    def _templates(self, names: Sequence[str]) -> dict[int, BoundQuery]:
        chosen = set(names)
        return {
            at: some[0] for at, some in enumerate(self.sheet.templates) if any(query.name in chosen for query in some)
        }

    def _output_places(self, query: BoundQuery) -> list[str]:
        """A column of the computed table for each output, by type."""
        used: dict[str, int] = {}
        places = []
        for item in self.bound[query.name].schema:
            # by a digest: names of fields that differ in letter case alone would be one column to Spark
            kind = digest("o", item.dataType.simpleString())
            used[kind] = used.get(kind, -1) + 1
            places.append(f"{kind}_{used[kind]}")
        return places

    def _own(self, query: BoundQuery, text: str) -> str:
        """The user's text over the columns of the table."""
        places = self.sheet.places[query.name]
        return f"({replace_placeholders(text, lambda kind, index: places[f'{kind}{index}'])}\n)"


def _choose(texts: dict[int, str], otherwise: str = "NULL") -> str:
    """What stands for each template; where all mean the same bare column, just that."""
    askers: dict[str, list[str]] = {}
    for at, text in texts.items():
        askers.setdefault(text, []).append(str(at))
    if len(askers) == 1 and BARE.fullmatch(text):
        return text
    choices = " ".join(f"WHEN {TEMPLATE} IN ({', '.join(some)}) THEN {text}" for text, some in askers.items())
    return f"CASE {choices} ELSE {otherwise} END"


@dataclass(frozen=True)
class WritingTask:
    """What a Spark task does with computed rows: a Parquet file a query."""

    targets: dict[int, Target]
    packing: Packing
    folder: Folder
    schema: pa.Schema

    def __call__(self, partition: int, batches: Iterable[bytes]) -> Iterator[Written]:
        """Write the rows of one partition."""
        attempt = f"c{partition}-{uuid4().hex[:12]}"
        files: dict[int, ComputedFile] = {}
        for data in batches:
            batch = pa.ipc.read_record_batch(pa.py_buffer(data), self.schema)
            for number, rows in runs(self.packing.unpack(pa.Table.from_batches([batch]))):
                if number not in files:
                    files[number] = ComputedFile(self.targets[number], self.folder, f"{attempt}-{number}.parquet")
                files[number].add(rows)
        written = Written()
        for file in files.values():
            file.finish(written)
        yield written


def runs(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Stretches of rows of the same query."""
    numbers = np.asarray(rows.column(QUERY).combine_chunks())
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for begin, end in pairwise(edges):
        if end > begin:
            yield int(numbers[begin]), rows.slice(begin, end - begin)


class ComputedFile:
    """The computed rows of a query, while they are written."""

    def __init__(self, target: Target, folder: Folder, file: str) -> None:
        self.target = target
        self.folder = folder
        self.file = file
        self.rows = 0
        self.windows: list[Array] = []
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: pa.Table) -> None:
        """Some more rows."""
        own = rows.select([column for column, _ in self.target.columns])
        own = own.rename_columns([name for _, name in self.target.columns])
        if self._writer is None:
            filesystem, path = self.folder.open(self.file)
            self._writer = pq.ParquetWriter(path, own.schema, filesystem=filesystem, **parquet_options(own.schema))
        self._writer.write_table(own)
        self.rows += len(own)
        if self.target.having:
            starts = np.asarray(pc.unique(rows.column(WINDOW)).cast(pa.int64()))
            self.windows.append(self.target.window.numbers(starts))

    def finish(self, written: Written) -> None:
        """Close the file, and note what is in it."""
        if self._writer is not None:
            self._writer.close()
        name = self.target.name
        written.add(name, [self.file], self.rows)
        if self.windows:
            written.windows[name] = [pack(np.unique(np.concatenate(self.windows)))]
