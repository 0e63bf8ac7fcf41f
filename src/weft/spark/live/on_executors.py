"""The second half of a step on the executors: a task a bucket, and one commit for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark import RDD
from pyspark.core.broadcast import Broadcast
from pyspark.sql import SparkSession

from weft.job.checkpoint import Checkpoint
from weft.job.history import ANSWERS
from weft.job.records import BatchStart
from weft.job.segments import BucketFile
from weft.spark.bucket_task import (
    THREADS,
    BucketResult,
    BucketTask,
    Order,
    StateOrder,
    Stored,
    stored_segment,
)
from weft.spark.live.planning import LivePlan
from weft.spark.scatter import Scattered
from weft.spark.select_lists import SelectLists, laid_out_in
from weft.spark.sending import sendable
from weft.step.answer_files import AnswerFiles, Written
from weft.step.state import LazyTables, Segment, State, Tables
from weft.store.folder import Folder

RECENT = 8
"""So many batches later a worker still makes use of what it has of a bucket."""


@dataclass
class OnExecutors:
    """Runs the finals of a plan in buckets. In the driver's process there are only names and counts."""

    spark: SparkSession
    checkpoint: Checkpoint
    live: LivePlan
    recent: dict[str, int] = field(default_factory=dict)
    """The last attempts that were committed under this plan, and their batches."""

    def __post_init__(self) -> None:
        self._plan: Broadcast[bytes] = self.spark.sparkContext.broadcast(sendable(self.live.sent))

    def turn(
        self, scattered: Scattered | None, state: State, start: BatchStart, watermark: int | None, attempt: str
    ) -> list[BucketResult]:
        """Answers and next state of all buckets, written; in the order of the buckets."""
        kept = StateOrder(self.checkpoint.root, attempt, start.batch, by_bucket(state), self.recent)
        order = Order(self._folder(attempt).root, start.watermark, watermark, start.drain, kept)
        if scattered is None:
            nothing: RDD[bytes] = self.spark.sparkContext.parallelize([], self.live.record.buckets)
            return nothing.mapPartitionsWithIndex(BucketTask(self._plan, order)).collect()
        try:
            return scattered.map(BucketTask(self._plan, order, scattered.arrival))
        finally:
            scattered.forget()

    def _folder(self, attempt: str) -> Folder:
        return Folder(f"{self.checkpoint.folder.root}/{ANSWERS}/{attempt}")

    def written(self, results: Sequence[BucketResult], lists: SelectLists, attempt: str) -> Written:
        """The answers of all buckets; Spark computes the select lists that it has to."""
        written = Written()
        for result in results:
            written.join(result.written)
        sheet, folder = self.live.sheet, self._folder(attempt)
        sheets = [result.sheet for result in results if not sheet.places.keys().isdisjoint(result.written.files)]
        # a query that a value stops in one bucket has no answers in any
        written.leave_out([*written.failed, *sheet.places])
        if sheets:
            laid_out = laid_out_in(folder, sheets, sheet)
            with AnswerFiles(self.live, folder, threads=THREADS) as files:
                own = {name: rows for name, rows in laid_out.items() if name not in written.failed}
                lists.write(lists.compute(own), files)
            written.join(files.written)
            for file in sheets:
                self.checkpoint.delete(f"{ANSWERS}/{attempt}/{file}")
        written.share(self.live.plan.same_as)
        if written.failed and not written.files:
            self.checkpoint.delete(f"{ANSWERS}/{attempt}")  # no manifest will tell of it
        return written

    def committed(self, attempt: str, batch: int) -> None:
        """A batch counts: workers may go on from what they have of it."""
        self.recent = {name: known for name, known in self.recent.items() if known > batch - RECENT} | {attempt: batch}

    def tables(self, state: State, watermark: int | None) -> Tables:
        """All retained slices, brought here if somebody asks for them."""
        stored = [one for some in by_bucket(state).values() for one in some]
        loaded = State([stored_segment(one, self.checkpoint, self.live) for one in stored])
        return LazyTables(lambda: loaded.tables(self.live, watermark))

    def close(self) -> None:
        """No batch runs under this plan any more."""
        self._plan.destroy()


def listed(files: Sequence[tuple[str, int]]) -> State:
    """A state of which only the files' names are known."""
    return State([Segment({}, level, file) for file, level in files])


def state_of(results: Sequence[BucketResult]) -> State:
    """The state of all buckets, names and counts only."""
    return State([Segment({}, one.level, one.file, one.size) for result in results for one in result.state])


def by_bucket(state: State) -> dict[int, list[Stored]]:
    """The segments of each bucket, oldest first."""
    found: dict[int, list[Stored]] = {}
    for segment in state.segments:
        assert segment.file is not None
        stored = Stored(segment.file, segment.level, segment.known)
        found.setdefault(BucketFile.of(segment.file).bucket, []).append(stored)
    return found
