"""Writing answers: every query's rows in its own folder, all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from urllib.parse import unquote
from uuid import uuid4

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from weft.errors import WeftError
from weft.query.model import WINDOW
from weft.spark.answers import Staged, computed
from weft.spark.failures import data_error
from weft.spark.files import Folder

JOBS = 4
"""Spark jobs at a time: planning one overlaps with running another."""
OWNER = "__weft_query"
"""The column that tells whose rows these are, where one Spark job computes those of several queries."""


def deliver(staged: Staged, path: str, *, overwrite: bool, progress: Callable[[int, int], object]) -> None:
    """Write ``path/query=<name>/*.parquet``; the folder appears when it is complete."""
    target = Folder(path)
    if target.exists() and not overwrite:
        raise WeftError(f"{path} is there already: give another folder, or allow it to be overwritten")
    building = Folder(f"{target.root.rstrip('/')}.writing-{uuid4().hex[:8]}")
    try:
        with ThreadPoolExecutor(JOBS) as pool:
            running = [pool.submit(finish, staged, names, building) for names in templates(staged)]
            done = 0
            for job in as_completed(running):
                done += job.result()
                progress(done, len(staged.bound))
        for name, original in staged.same_as.items():
            copy(staged, original, name, building)
        target.remove()
        building.move_to(target)
    except BaseException:
        building.remove()
        raise


def finish(staged: Staged, names: list[str], building: Folder) -> int:
    """Compute what is left to compute for queries of one template and put their files in place."""
    if not staged.bound[names[0]].query.direct:
        compute(staged, names, building)
    for name in names:
        put_in_place(staged, name, building)
    return len(names)


def templates(staged: Staged) -> list[list[str]]:
    """Queries for which Spark has to compute the same expressions over the same types, together."""
    groups: dict[object, list[str]] = {}
    for name, bound in staged.bound.items():
        if name not in staged.same_as and not staged.outcomes[name].failure:
            query = bound.query.query
            direct = bound.query.direct
            template = name if direct else (query.outputs, query.having, bound.query.columns, bound.staged.json())
            groups.setdefault(template, []).append(name)
    return list(groups.values())


def compute(staged: Staged, names: list[str], building: Folder) -> None:
    """Have Spark compute the rows of queries with one template; a data error fails only the query it stems from."""
    try:
        compute_together(staged, names, building)
    except PySparkException as error:
        message = data_error(error)
        if message is None:
            raise
        if len(names) == 1:
            staged.outcomes[names[0]].failure = message
            return
        for name in names:
            compute(staged, [name], building)


def compute_together(staged: Staged, names: list[str], building: Folder) -> None:
    """One Spark job for queries with one template."""
    files = [file for name in names for file in staged.outcomes[name].files]
    if not files:
        return
    bound = staged.bound[names[0]]
    rows = staged.spark.read.schema(bound.staged).parquet(*map(staged.folder.url, files))
    folder_name = F.regexp_extract(F.col("_metadata.file_path"), "query=([^/]*)/[^/]*$", 1)
    owned = rows.select("*", folder_name.alias(OWNER))
    job = Folder(f"{building.root}/.computed-{uuid4().hex[:8]}")
    frame = computed(owned, bound.query, keep=(OWNER,))
    if bound.query.query.having is not None:
        count_what_having_left(staged, names, owned.where(F.expr(bound.query.query.having)))
    if len(names) == 1:
        frame.drop(OWNER).write.parquet(job.url())
        job.move_to(building.of(names[0]))
        return
    frame.write.partitionBy(OWNER).parquet(job.url())
    for name in names:
        made = Folder(f"{job.root}/{OWNER}={Folder.encoded(name)}")
        if made.exists():
            made.move_to(building.of(name))
    job.remove()


def count_what_having_left(staged: Staged, names: list[str], rows: DataFrame) -> None:
    """Rows and windows of queries whose HAVING the workers could not know."""
    counts = rows.groupBy(OWNER).agg(F.count(F.lit(1)), F.count_distinct(WINDOW)).collect()
    left = {unquote(owner): (found, windows) for owner, found, windows in counts}
    for name in names:
        outcome = staged.outcomes[name]
        outcome.rows, outcome.windows = left.get(name, (0, 0))


def put_in_place(staged: Staged, name: str, building: Folder) -> None:
    """Link the files that workers wrote; a query without rows gets an empty file, which tells its schema."""
    outcome = staged.outcomes[name]
    if outcome.failure:
        return
    building.make(name)
    if staged.bound[name].query.direct:
        for file in outcome.files:
            staged.folder.link(file, building)
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
        building.of(original).link(file, building.of(name))
