"""Answers of a run: a DataFrame a query, all of them as one, or written as Parquet."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.errors import WeftError
from weft.plan.model import BoundQuery
from weft.plan.sheet import Sheet
from weft.query.model import KEY, WINDOW, Part
from weft.query.names import quoted
from weft.spark.bind import Bound
from weft.spark.computing import rows_of, sheet_schema
from weft.spark.step import Outcome, Totals
from weft.store.folder import Folder

LONG = "query string, window_start timestamp, window_end timestamp, key map<string,string>, value map<string,string>"


@dataclass(frozen=True)
class Staged:
    """What the workers wrote: files a query, and what is still to be computed from them."""

    spark: SparkSession
    folder: Folder
    bound: Mapping[str, Bound]
    outcomes: Mapping[str, Outcome]
    same_as: Mapping[str, str]
    """Queries that ask what another one asks."""
    sheets: Sequence[Sheet]
    """Where queries whose select list is still to be computed have their rows, one a stream."""

    def original(self, name: str) -> str:
        """The query whose files hold the answers of ``name``."""
        return self.same_as.get(name, name)

    def outcome(self, name: str) -> Outcome:
        """How it went with a query."""
        return self.outcomes[self.original(name)]

    def read(self, name: str) -> DataFrame:
        """The rows as the workers wrote them."""
        outcome = self.outcome(name)
        if outcome.failure:
            raise WeftError(f"query {name} has no answers: {outcome.failure}")
        bound = self.bound[self.original(name)]
        if not outcome.files:
            return self.spark.createDataFrame([], bound.staged)
        files = map(self.folder.url, outcome.files)
        if bound.query.direct:
            return self.spark.read.schema(bound.staged).parquet(*files)
        sheet = next(sheet for sheet in self.sheets if bound.query.name in sheet.places)
        rows = self.spark.read.schema(sheet_schema(sheet, dict(self.bound))).parquet(*files)
        return rows_of(rows, sheet, bound.query.name)


class Answers(Mapping[str, DataFrame]):
    """The answers of every query that was run.

    ``answers["name"]`` is a DataFrame with exactly the schema that Spark gives for that query. The rows lie in a folder
    of their own, which is deleted when the process ends if the run made it.
    """

    def __init__(self, staged: Staged, totals: Totals, *, temporary: bool) -> None:
        self._staged = staged
        self._totals = totals
        if temporary:
            # not with this object: frames that were taken from it read the files later
            atexit.register(shutil.rmtree, staged.folder.root, ignore_errors=True)

    def __iter__(self) -> Iterator[str]:
        return iter(self._staged.bound)

    def __len__(self) -> int:
        return len(self._staged.bound)

    def __contains__(self, name: object) -> bool:
        return name in self._staged.bound

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._staged.bound:
            raise KeyError(f"there is no query {name}; there are {', '.join(self)}")
        staged = self._staged.read(name)
        query = self._staged.bound[self._staged.original(name)].query
        return with_schema(staged if query.direct else computed(staged, query), self._staged.bound[name].schema)

    @property
    def totals(self) -> Totals:
        """Rows read, slices, answers and seconds of the run; what HAVING leaves is known once it was written."""
        return replace(self._totals, answers=sum(self.outcome(name).rows for name in self))

    def outcome(self, name: str) -> Outcome:
        """How many rows and windows a query has, and why it failed if it did."""
        return self._staged.outcome(name)

    @property
    def failures(self) -> dict[str, WeftError]:
        """Queries that a data error stopped (an overflow, a division by zero), and why; all others are answered."""
        outcomes = {name: self.outcome(name) for name in self}
        return {
            name: WeftError(f"query {name}: {outcome.failure}") for name, outcome in outcomes.items() if outcome.failure
        }

    def all(self) -> DataFrame:
        """Every answer in one long frame: query, window_start, window_end, key and value as maps of strings."""
        frames = [long_form(self._staged, name) for name in self if not self.outcome(name).failure]
        while len(frames) > 1:  # a balanced tree, as a chain of a thousand unions overflows Spark's stack
            pairs = [frames[at : at + 2] for at in range(0, len(frames), 2)]
            frames = [pair[0].union(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
        return frames[0] if frames else self._staged.spark.createDataFrame([], LONG)

    def write(
        self, path: str, *, overwrite: bool = False, progress: Callable[[int, int], object] = lambda done, of: None
    ) -> None:
        """Write ``path/query=<name>/*.parquet``, all queries or none: the folder appears when it is complete.

        A query whose select list raises an error on some answer, such as a division by zero, is left out
        and appears in :attr:`failures`.
        """
        from weft.spark.deliver import deliver

        deliver(self._staged, path, overwrite=overwrite, progress=progress)


def computed(staged: DataFrame, query: BoundQuery) -> DataFrame:
    """HAVING and the select list, evaluated by Spark from the user's own text over the placeholders."""
    frame = staged if query.query.condition is None else staged.where(F.expr(query.query.condition))
    outputs = zip(query.query.outputs, query.columns, strict=True)
    return frame.select(*(F.expr(f"({output.sql})").alias(name) for output, name in outputs))


def with_schema(frame: DataFrame, schema: StructType) -> DataFrame:
    """The same rows under exactly ``schema``: Spark's own says what can be NULL, a file's never does."""
    if frame.schema == schema:
        return frame
    spark = frame.sparkSession
    jvm_schema = spark._jsparkSession.parseDataType(schema.json())
    rows = frame._jdf.queryExecution().toRdd()
    return DataFrame(spark._jsparkSession.internalCreateDataFrame(rows, jvm_schema, False), spark)


def long_form(staged: Staged, name: str) -> DataFrame:
    """One query's answers in the columns that all queries have."""
    query = staged.bound[staged.original(name)].query
    names = staged.bound[name].schema.names
    frame = staged.read(name)
    start, end = _window_ends(query)
    keys = {key.sql: _key_column(query, index) for index, key in enumerate(query.query.keys)}
    values = {
        column: F.col(quoted(column)) if query.direct else F.expr(f"({output.sql})")
        for output, column in zip(query.query.outputs, names, strict=True)
        if output.part in {None, Part.AGGREGATE}
    }
    if query.query.condition is not None:
        frame = frame.where(F.expr(query.query.condition))
    return frame.select(
        F.lit(name).alias("query"),
        start.cast("timestamp").alias("window_start"),
        end.cast("timestamp").alias("window_end"),
        _map(keys).alias("key"),
        _map(values).alias("value"),
    )


def _window_ends(query: BoundQuery) -> tuple[Column, Column]:
    if not query.direct:
        return F.col(f"{WINDOW}.start"), F.col(f"{WINDOW}.end")
    reach = F.make_dt_interval(secs=F.lit(query.window.length).cast("decimal(38,6)") / F.lit(1_000_000))
    for output, column in zip(query.query.outputs, query.columns, strict=True):
        found = F.col(quoted(column))
        if output.part is Part.WINDOW:
            return found["start"], found["end"]
        if output.part is Part.WINDOW_START:
            return found, found + reach
        if output.part is Part.WINDOW_END:
            return found - reach, found
    raise AssertionError("a query that is written directly shows its window")


def _key_column(query: BoundQuery, index: int) -> Column:
    if not query.direct:
        return F.col(f"{KEY}{index}")
    for output, column in zip(query.query.outputs, query.columns, strict=True):
        if output.part is Part.KEY and output.index == index:
            return F.col(quoted(column))
    raise AssertionError("a query that is written directly shows its keys")


def _map(columns: dict[str, Column]) -> Column:
    parts = [part for name, column in columns.items() for part in (F.lit(name), column.cast("string"))]
    return F.create_map(*parts) if parts else F.expr("CAST(map() AS map<string,string>)")
