"""The same events as a stream in random micro-batches, with disorder within the allowed lateness.

As a script it makes as many runs as it is told and prints the counts::

    python tests/live/equal_streams.py batch 500     # random micro-batches against the batch run
    python tests/live/equal_streams.py append 50     # against Spark's own append query on the same files
    python tests/live/equal_streams.py late 100      # rows later than allowed against the naive model
    python tests/live/equal_streams.py changes 4     # 50 random adds and drops each

With ``WEFT_TEST_FINALS=executors`` finals run there, in two buckets; with ``WEFT_TEST_CUT=workers`` or ``driver``
compiled kernels cut the rows.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from crash.killed_driver import INTERPRETED, quick_session
from live.driven import SECOND, finals_place, table
from live.live_cases import BEGIN, Case, disordered, queries_of, sql
from oracle import compare, generate
from oracle.compare import Rows
from oracle.data import Stream as Events
from oracle.generate import Workload
from oracle.trial import ANSI, cut_engine, sessions
from weft.catalog import create_catalog
from weft.job.checkpoint import Checkpoint
from weft.job.history import History
from weft.job.records import CheckpointSettings
from weft.launch.engine import Engine
from weft.plan.record import PlanRecord
from weft.sinks.parquet import ParquetSink
from weft.sources.source import LiveSource
from weft.spark.answers import with_schema
from weft.spark.bind import Stream
from weft.spark.live.job import Job
from weft.spark.live.next_plan import Wishes
from weft.spark.live.planning import LivePlan
from weft.spark.live.runner import Runner
from weft.spark.reused_plans import scanned
from weft.spark.step import step_settings
from weft.step.state import State

FAR = (BEGIN + 2 * 86_400 * SECOND, "a", 99, 0.0)
"""It passes every WHERE: Spark pushes filters below the watermark, so that only rows which pass move it."""


@dataclass
class Planned:
    """What streams of the same queries share: a session, and plans that were made before."""

    session: Any
    bound: dict[str, Any] = field(default_factory=dict)
    plans: dict[str, LivePlan] = field(default_factory=dict)
    spark: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """Plans in the JVM."""

    @classmethod
    def of(cls, spark: Any, settings: Mapping[str, str]) -> Planned:
        """A session with these settings, and no plans yet."""
        session = spark.newSession()
        for key, value in {**step_settings(session), **settings}.items():
            session.conf.set(key, value)
        return cls(session)


class PlannedRunner(Runner):
    """Follows plans that need not be made again."""

    planned: Planned

    def follow(self, live: LivePlan, state: State | None = None) -> None:
        super().follow(live, state)
        made = (self._cutters, self._lists)
        self._cutters, self._lists = self.planned.spark.setdefault(_key(live.record), made)


class PlannedJob(Job):
    """A job whose plans need not be made again: planning takes longer than a short stream."""

    def __init__(self, planned: Planned, *arguments: Any) -> None:
        super().__init__(*arguments, wishes=Wishes(finals=finals_place(), cut=cut_engine()))
        self.planned = planned
        self.runner.__class__ = PlannedRunner
        self.runner.planned = planned
        self.registry._bound = planned.bound

    def _plan(self, version: int, left: Collection[str] = ()) -> LivePlan:
        record = self.ledger.history.plan(version).without(left)
        key = _key(record)
        if key not in self.planned.plans:
            self.planned.plans[key] = super()._plan(version, left)
        return replace(self.planned.plans[key], record=record)


def _key(record: PlanRecord) -> str:
    return repr((record.queries, record.groupings, record.first, record.technique, record.buckets))


def against_batch(
    spark: Any, session: Any, workload: Workload, splits: int, folder: Path, settings: Mapping[str, str] | None = None
) -> tuple[int, int]:
    """Stream a workload in several random ways; each time the rows are those of Spark's batch run. Gives the counts."""
    _, session = sessions(spark, session, workload.shape)
    known = compare.spark_rows(session, workload.stream, workload.queries)
    kept = [(query, theirs) for query, theirs in zip(workload.queries, known, strict=True) if fits_a_file(theirs)]
    workload, expected = replace(workload, queries=tuple(query for query, _ in kept)), [theirs for _, theirs in kept]
    planned = Planned.of(spark, {**(settings or {}), ANSI: str(workload.shape.ansi).lower()})
    rows = 0
    for split in range(splits):
        rnd = random.Random(f"{workload.shape.seed} {split}")
        found = streamed(planned, workload, rnd, folder / f"{workload.shape.seed}-{split}")
        for query, theirs, ours in zip(workload.queries, expected, found, strict=True):
            outcome = compare.compare(query, ours, theirs)
            assert outcome.difference is None, (
                f"split {split} of {workload.shape}\n{query.statement}\n{outcome.difference}"
            )
            rows += outcome.rows
    return splits, rows


def fits_a_file(rows: Rows) -> bool:
    """Whether no two columns have the same name; others are refused by a live job."""
    names = [name.lower() for name in rows.schema.names]
    return len(set(names)) == len(names)


def streamed(planned: Planned, workload: Workload, rnd: random.Random, folder: Path) -> list[Rows]:
    """The answers of all queries to the workload's events in random micro-batches."""
    session, events = planned.session, workload.stream
    if rnd.random() < 0.8:  # a shuffle a batch would take most of the time
        events = replace(events, partitions=1)
    lateness = rnd.choice((0, workload.shape.span // 100, workload.shape.span // 3))
    catalog = create_catalog(str(folder / "checkpoint"))
    catalog.add("\n".join(query.statement for query in workload.queries))
    history = History(Checkpoint(str(folder / "checkpoint")))
    stream = Stream(events.name, events.keeping([]).frame(session), events.event_time)
    settings = history.settings(CheckpointSettings(uuid4().hex, events.name, events.event_time, lateness))
    sink = ParquetSink(str(folder / "answers"), every=0.0)
    job = PlannedJob(planned, history, settings, stream, LiveSource(stream.rows), catalog, [sink])
    job.recover()
    for number, rows in enumerate(micro_batches(events, lateness, rnd)):
        job.process(scanned(events.keeping(rows).frame(session)), number)
        if rnd.random() < 0.2:
            job.outbox.close()
            job = PlannedJob(planned, history, settings, stream, LiveSource(stream.rows), catalog, [sink])
            job.recover()
    job.drain()
    job.outbox.close()
    catalog.close()
    if rnd.random() < 0.8:
        return [answers_in_files(job, folder, query.name) for query in workload.queries]
    return compare.collected(answers(session, job, folder, query.name) for query in workload.queries)


def answers_in_files(job: Job, folder: Path, name: str) -> Rows:
    """A query's rows without Spark, which takes longer to plan a reading than to stream."""
    assert job.live is not None
    schema = job.live.bound[name].schema
    files = sorted((folder / "answers" / f"query={name}").glob("*.parquet"))
    columns = to_arrow_schema(schema, timezone="UTC")
    tables = [pq.read_table(file, partitioning=None).cast(columns) for file in files]
    return compare.Rows.read(schema, pa.concat_tables([columns.empty_table(), *tables]))


def answers(session: Any, job: Job, folder: Path, name: str) -> Any:
    """A query's rows as a reader of the sink sees them."""
    assert job.live is not None
    schema = job.live.bound[name].schema
    place = folder / "answers" / f"query={name}"
    if not list(place.glob("*.parquet")):
        return session.createDataFrame([], schema)
    return with_schema(session.read.schema(schema).parquet(str(place)), schema)


def micro_batches(events: Events, lateness: int, rnd: random.Random) -> list[list[int]]:
    """Numbers of rows, batch by batch: none is further behind the newest than ``lateness``."""
    times = events.values[events.event_time]
    known = [number for number, time in enumerate(times) if time is not None]
    order = sorted(known, key=lambda number: times[number] + rnd.randrange(lateness + 1))
    for number in set(range(events.rows)) - set(known):
        order.insert(rnd.randrange(len(order) + 1), number)
    cuts = sorted(rnd.randrange(len(order) + 1) for _ in range(rnd.randint(1, 5)))
    return [order[low:high] for low, high in zip([0, *cuts], [*cuts, len(order)], strict=True)]


def against_append(spark: Any, seed: int, folder: Path) -> int:
    """Stream the same files through Spark's own append query and through Weft; gives how many queries agree."""
    lateness = random.Random(seed).choice((0, 5, 20, 60)) * SECOND
    cases = {name: without_gaps(case) for name, case in queries_of(seed, 2).items()}
    source = folder / "source"
    source.mkdir(parents=True)
    # Spark releases by the watermark of the batches before: two rows of the far future have it release all there is
    batches = [*disordered(seed, lateness + 1, most_batches=5), [FAR], [FAR]]
    for number, rows in enumerate(batches):
        file = source / f"{number:04}.parquet"
        pq.write_table(table(rows), file)
        os.utime(file, (number, number))  # Spark takes files in the order of their times
    stream = spark.readStream.schema("ts TIMESTAMP, k STRING, v BIGINT, x DOUBLE").option("maxFilesPerTrigger", 1)
    files = stream.parquet(str(source))
    watermarked = files.withWatermark("ts", f"{lateness // SECOND} seconds")
    watermarked.createOrReplaceTempView("s")
    theirs = {name: append(spark.sql(sql(case)), folder / f"spark-{name}") for name, case in cases.items()}
    engine = Engine(spark, cut=cut_engine()).stream("s", files, event_time="ts")
    engine.sql("".join(f"-- name: {name}\n{sql(case)};\n" for name, case in cases.items()))
    live = engine.start(
        str(folder / "checkpoint"),
        lateness=f"{lateness} microseconds",
        sinks=[ParquetSink(str(folder / "answers"))],
        available_now=True,
        finals=finals_place(),
    )
    live.await_termination()
    for name, case in cases.items():
        ours = counted(folder / "answers" / f"query={name}")
        difference = f"only Weft {ours - theirs[name]}, only Spark {theirs[name] - ours}"
        assert ours == theirs[name], f"seed {seed}, lateness {lateness}: {sql(case)}\n{difference}"
    return len(cases)


def without_gaps(case: Case) -> Case:
    """Spark's own windows have none."""
    window = case.window
    return replace(case, window=replace(window, range=max(window.range, window.slide)))


def append(frame: Any, folder: Path) -> Counter[tuple[Any, ...]]:
    """The rows that Spark's append mode writes."""
    # in its old form of 96 bits a file does not tell that its times are UTC
    frame.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    writer = frame.writeStream.outputMode("append").format("parquet").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{folder}.checkpoint").start(str(folder))
    query.awaitTermination()
    return counted(folder)


def counted(folder: Path) -> Counter[tuple[Any, ...]]:
    """The rows of all Parquet files of a folder."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for file in folder.glob("*.parquet"):
        found = pq.read_table(file, partitioning=None)
        rows.update(zip(*(column.to_pylist() for column in found.columns), strict=True))
    return rows


def one_run(kind: str, spark: Any, oracle: Any, seed: int, folder: Path) -> Counter[str]:
    """One run of a kind; what was compared."""
    if kind == "batch":
        # code that Spark makes for a plan is made for some of the workloads only, as that takes longest
        settings = {} if seed % 5 == 0 else INTERPRETED
        runs, rows = against_batch(spark, oracle, generate.workload(generate.shape(seed, 6)), 10, folder, settings)
        return Counter(runs=runs, rows=rows)
    if kind == "append":
        return Counter(runs=1, queries=against_append(spark, seed, folder))
    if kind == "late":
        from live.test_late_rows import check

        check(spark, folder, seed, random.Random(seed).randrange(40) * SECOND)
        return Counter(runs=1)
    from live.test_live_changes import random_changes

    return Counter(random_changes(spark, folder, seed, operations=50), runs=1)


def main(kind: str, runs: int, seconds: float, seed: int) -> None:
    """Many runs, within some time; prints how many there were."""
    spark = quick_session("local[2]")
    for key, value in {**INTERPRETED, "spark.sql.shuffle.partitions": "1"}.items():
        spark.conf.set(key, value)
    oracle = compare.oracle_session(spark)
    done: Counter[str] = Counter()
    until = time.monotonic() + seconds
    while done["runs"] < runs and time.monotonic() < until:
        seed += 1
        with tempfile.TemporaryDirectory() as folder:
            done += one_run(kind, spark, oracle, seed, Path(folder))
        counts = ", ".join(f"{count} {what}" for what, count in done.items())
        print(f"{kind}, finals: {finals_place()}, cut: {cut_engine()}, up to seed {seed}: equal; {counts}", flush=True)


if __name__ == "__main__":
    _, kind, runs, *others = sys.argv
    main(kind, int(runs), float(others[0]) if others else 1e9, int(others[1]) if len(others) > 1 else 0)
