"""Writing answers: every query's rows in its own folder, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from uuid import uuid4

import pyarrow.parquet as pq
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from weft.errors import WeftError
from weft.plan.model import batched
from weft.query.model import WINDOW
from weft.spark.answers import Staged, computed
from weft.spark.computing import Computation
from weft.spark.culprits import spark_control, stopped_alone
from weft.spark.step import gathered
from weft.store.folder import Folder
from weft.store.scratch import scratch

TEMPLATES = 64
"""Select lists that one Spark job computes: the code for more becomes too large to compile."""


def deliver(staged: Staged, path: str, *, overwrite: bool, progress: Callable[[int, int], object]) -> None:
    """Write ``path/query=<name>/*.parquet``; the folder appears when it is complete."""
    target = Folder(path)
    if target.exists() and not overwrite:
        raise WeftError(f"{path} is there already: give another folder, or allow it to be overwritten")
    building = scratch(target, "writing")
    refuse_equal_names(staged)
    try:
        done = 0
        for names in (*direct(staged, building), *computations(staged, building)):
            done += len(names)
            progress(done, len(staged.bound))
        for name in staged.outcomes:
            say_schema(staged, name, building)
        for name, original in staged.same_as.items():
            copy(staged, original, name, building)
        put_in_place(building, target)
    except BaseException:
        building.remove()
        raise


def put_in_place(building: Folder, target: Folder) -> None:
    """Have what was built take the place of what is there, which comes back if that fails."""
    replaced = scratch(target, "replaced")
    try:
        if target.exists():
            target.move_to(replaced)
        building.move_to(target)
    except BaseException:
        if replaced.exists() and not target.exists():
            replaced.move_to(target)
        raise
    replaced.remove()


def refuse_equal_names(staged: Staged) -> None:
    """Fail the queries that name two columns alike: Spark could not read such a file, and does not write one."""
    for name, outcome in staged.outcomes.items():
        lowered = [column.lower() for column in staged.bound[name].query.columns]
        twice = next((column for column in lowered if lowered.count(column) > 1), None)
        if twice is not None and not outcome.failure:
            outcome.failure = f"two columns are called {twice}, which a file cannot hold; give one of them an alias"


def direct(staged: Staged, building: Folder) -> Iterator[Sequence[str]]:
    """Put the files in place that workers wrote as they are to be."""
    for name, outcome in staged.outcomes.items():
        if staged.bound[name].query.direct and not outcome.failure:
            take_over(name, outcome.files, staged.folder, building)
            yield [name]


def take_over(name: str, files: Sequence[str], written: Folder, building: Folder) -> None:
    """Have the files of a query in its own folder."""
    building.make(name)
    for file in files:
        written.link(file, building, building.file(name, file))


def computations(staged: Staged, building: Folder) -> Iterator[Sequence[str]]:
    """Have Spark compute the select lists of all other queries, many in one job."""
    for sheet in staged.sheets:
        computation = Computation(staged.spark, sheet, dict(staged.bound))
        alone: list[str] = []
        together: list[Sequence[str]] = []
        for some in sheet.templates:
            left = [query.name for query in some if not staged.outcomes[query.name].failure]
            names = [name for name in left if staged.outcomes[name].files]
            alone += [name for name in names if not computation.is_simple(name)]
            together.append([name for name in names if computation.is_simple(name)])
        for part in batched(together, TEMPLATES):
            names = [name for some in part for name in some]
            compute(names, staged, building, partial(compute_together, computation, staged, building))
            yield names
        for name in alone:
            compute([name], staged, building, partial(compute_alone, staged, building))
            yield [name]


def compute(names: Sequence[str], staged: Staged, building: Folder, run: Callable[[Sequence[str]], None]) -> None:
    """Run the computation; queries that stop it fail, and no others."""
    if names:
        for name, message in stopped_alone(names, run, spark_control(staged.spark)).items():
            staged.outcomes[name].failure = message
            building.of(name).remove()


def compute_together(computation: Computation, staged: Staged, building: Folder, names: Sequence[str]) -> None:
    """One Spark job for many queries."""
    job = Folder(f"{building.root}/.computed-{uuid4().hex[:8]}")
    files = sorted({staged.folder.url(file) for name in names for file in staged.outcomes[name].files})
    try:
        for name, outcome in gathered(names, computation.run(files, names, job)).items():
            if staged.bound[name].query.query.having is not None:
                staged.outcomes[name].rows, staged.outcomes[name].windows = outcome.rows, outcome.windows
            take_over(name, outcome.files, job, building)
    finally:
        job.remove()


def compute_alone(staged: Staged, building: Folder, names: Sequence[str]) -> None:
    """One Spark job for one query, with columns of types that only Spark writes."""
    (name,) = names
    query = staged.bound[name].query
    rows = staged.read(name)
    computed(rows, query).write.parquet(building.of(name).url())
    if query.query.condition is not None:
        left = rows.where(F.expr(query.query.condition)).agg(F.count(F.lit(1)), F.count_distinct(WINDOW)).first()
        assert left is not None
        staged.outcomes[name].rows, staged.outcomes[name].windows = left[0], left[1]


def say_schema(staged: Staged, name: str, building: Folder) -> None:
    """A query without rows gets an empty file, which tells its schema."""
    if staged.outcomes[name].failure:
        return
    building.make(name)
    if building.of(name).is_empty():
        filesystem, path = building.open(building.file(name, "part-empty.parquet"))
        schema = to_arrow_schema(staged.bound[name].schema, timezone="UTC")
        pq.write_table(schema.empty_table(), path, filesystem=filesystem, store_schema=False)


def copy(staged: Staged, original: str, name: str, building: Folder) -> None:
    """The same files again for a query that asks what another one asks."""
    if staged.outcomes[original].failure:
        return
    building.make(name)
    for file in building.of(original).files():
        building.of(original).link(file, building.of(name), file)
