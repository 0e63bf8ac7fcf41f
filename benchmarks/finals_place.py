"""Where slices become answers, in the driver's process or on the executors: the same batches both ways, by turns.

    .venv/bin/python benchmarks/finals_place.py
    .venv/bin/python benchmarks/finals_place.py --keys 10000 --rows 100000 --batches 4

Batches of a million rows, ten seconds of event time each, over 10^4, 10^5 and 10^6 keys; windows of a minute by ten
seconds. Prints the median seconds of a batch of both, without the first ones, and of its parts.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from weft.catalog import create_catalog
from weft.job.checkpoint import Checkpoint
from weft.job.history import History
from weft.job.records import CheckpointSettings
from weft.launch.session import local_session
from weft.sources.source import LiveSource
from weft.spark.bind import Stream
from weft.spark.live.engine import FEW_SLICES
from weft.spark.live.finals_place import FinalsPlace
from weft.spark.live.job import Job
from weft.spark.live.next_plan import Wishes
from weft.spark.step import step_settings
from weft.spark.workers import keep_workers

SECOND = 1_000_000
BEGIN = 1_772_461_800 * SECOND
LONG = 10 * SECOND
"""Of a batch."""
WINDOW = "window(ts, '60 seconds', '10 seconds')"
QUERIES = "\n".join(
    f"CREATE VIEW q{number} AS SELECT window.start, k, {aggregates} FROM s GROUP BY {WINDOW}, k;"
    for number, aggregates in enumerate(
        ("count(*) AS n, sum(v) AS s", "avg(x) AS m, max(x) AS hi", "stddev(x) AS d", "min(v) AS lo")
    )
)
PLACES: tuple[FinalsPlace, FinalsPlace] = ("driver", "executors")


@dataclass
class Course:
    """The batches of one place."""

    job: Job
    seconds: list[float] = field(default_factory=list)
    parts: list[dict[str, float]] = field(default_factory=list)

    def median(self, skipped: int) -> str:
        """A batch in the middle, and what it spent its time on."""
        whole = statistics.median(self.seconds[skipped:])
        parts = {
            name: statistics.median(one.get(name, 0.0) for one in self.parts[skipped:])
            for name in ("slices", "answers", "state")
        }
        return f"{whole:.2f} s (" + ", ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items()) + ")"


def batch_files(folder: Path, keys: int, rows: int, batches: int) -> Iterator[Path]:
    """A file a batch, in time order."""
    rng = np.random.default_rng(keys)
    for number in range(batches):
        columns = {
            "ts": pa.array(BEGIN + number * LONG + np.sort(rng.integers(0, LONG, rows)), pa.timestamp("us", tz="UTC")),
            "k": pa.array(rng.integers(0, keys, rows)),
            "v": pa.array(rng.integers(0, 1000, rows)),
            "x": pa.array(rng.normal(100, 15, rows)),
        }
        file = folder / f"{number:04}.parquet"
        pq.write_table(pa.table(columns), file, row_group_size=max(rows // 8, 1))
        yield file


def job_of(spark: SparkSession, folder: Path, file: Path, place: FinalsPlace) -> Job:
    """A job that is fed by hand."""
    catalog = create_catalog(str(folder))
    catalog.add(QUERIES)
    history = History(Checkpoint(str(folder)))
    settings = history.settings(CheckpointSettings(uuid4().hex, "s", "ts", 0))
    stream = Stream("s", spark.read.parquet(str(file)).limit(0), "ts")
    job = Job(history, settings, stream, LiveSource(stream.rows), catalog, [], wishes=Wishes(finals=place))
    job.recover()
    return job


def measure(spark: SparkSession, keys: int, rows: int, batches: int, skipped: int) -> str:
    """Both places over the same batches, by turns; a line of the table."""
    with tempfile.TemporaryDirectory(prefix="weft-place-") as place:
        folder = Path(place)
        files = list(batch_files(folder, keys, rows, batches))
        courses = [Course(job_of(spark, folder / name, files[0], name)) for name in PLACES]
        for number, file in enumerate(files):
            for course in courses if number % 2 else reversed(courses):
                course.job.process(spark.read.parquet(str(file)), number)
                course.seconds.append(course.job.clock.seconds)
                course.parts.append(dict(course.job.clock.parts))
            keep_workers(spark)
        counts = [course.job.last.counts for course in courses]
        assert counts[0]["answers"] == counts[1]["answers"], counts
        told = [f"{counts[0]['slices']:,}", f"{counts[0]['state_rows']:,}", *(one.median(skipped) for one in courses)]
        return f"| {keys:,} | " + " | ".join(told) + " |"


def main(keys: Sequence[int], rows: int, batches: int, skipped: int) -> None:
    """The table."""
    spark = local_session()
    for key, value in {**step_settings(spark), **FEW_SLICES}.items():
        spark.conf.set(key, value)
    print(f"{rows:,} rows a batch, {batches - skipped} batches after {skipped}, {spark.sparkContext.master}")
    print("| keys | slices | state rows | in the driver | on the executors |\n|--:|--:|--:|--:|--:|")
    for count in keys:
        print(measure(spark, count, rows, batches, skipped), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--batches", type=int, default=14)
    parser.add_argument("--skipped", type=int, default=6)
    given = parser.parse_args()
    main(given.keys, given.rows, given.batches, given.skipped)
