"""A micro-batch, computed: rows to slices, slices and the state to answers and the next state, all of it in files.

Nothing of it counts before it is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.util import inheritable_thread_target

from weft.job import segments
from weft.job.checkpoint import Checkpoint
from weft.job.clock import Clock, largest_of, watermark_after
from weft.job.history import ANSWERS
from weft.job.past import reached_since
from weft.job.records import BatchStart, Counts, Manifest
from weft.plan.cut_engine import CutEngine
from weft.sources.source import BAD, LiveSource
from weft.spark.bind import Stream
from weft.spark.bucket_task import THREADS
from weft.spark.kernel_cut import engine_for, left_to_jvm
from weft.spark.live.cutting import CutRows, Cutter, cutter_of
from weft.spark.live.on_executors import OnExecutors, listed, state_of
from weft.spark.live.planning import LivePlan
from weft.spark.select_lists import SelectLists
from weft.step.answer_files import AnswerFiles, Written
from weft.step.finals import Finals
from weft.step.state import LazyTables, Segment, State, Tables, conformed
from weft.step.turn import turn
from weft.store.folder import Folder

LOG = logging.getLogger("weft.stream")
NO_ROWS = CutRows()


@dataclass(frozen=True)
class ComputedBatch:
    """A batch that is computed, but not committed."""

    manifest: Manifest
    state: State
    attempt: str
    finals: Finals | None = None
    """The caches, where they are in this process."""
    answered: Mapping[str, int] = field(default_factory=dict)
    """How many answers each query has, where it has any."""


@dataclass(frozen=True)
class TurnedSlices:
    """The second half of a step: what it wrote, and the next state."""

    written: Written
    state: State
    slices: int
    finals: Finals | None = None


class Runner:
    """Computes batches under one plan after another, from the state that the last committed one left."""

    def __init__(self, stream: Stream, source: LiveSource, checkpoint: Checkpoint, lateness: int, run: str) -> None:
        self.live: LivePlan | None = None
        self.state = State()
        self.clock = Clock()
        self._stream = stream
        self._source = source
        self._checkpoint = checkpoint
        self._lateness = lateness
        self._run = run
        self._finals: Finals | None = None
        self._cutters: dict[CutEngine, Cutter] = {}
        """By the engine that a batch was started with."""
        self._lists: SelectLists | None = None
        self._executors: OnExecutors | None = None
        """Where finals run, if not here."""

    # ---------------------------------------------------------------------------------------------------- plans

    def forget(self) -> None:
        """Know nothing: what is committed will be taken up again."""
        self.live, self._finals, self.state = None, None, State()

    def take_up(self, live: LivePlan, manifest: Manifest) -> None:
        """Go on from a commit: its state, under its plan."""
        self.state = State()
        self.follow(live)
        if live.record.buckets:
            self.state = listed(manifest.state)
            return
        for file, level in manifest.state:
            tables = conformed(segments.read(self._checkpoint, file), live)
            if tables:
                self.state.segments.append(Segment(tables, level, file))

    def follow(self, live: LivePlan, state: State | None = None) -> None:
        """Go on under another plan, from the present state or another one."""
        self.live = live
        self.state = (self.state if state is None else state).conformed(live)
        self._finals = None
        self._cutters = {}
        self._lists = SelectLists(self._stream.session, live.sheet, live.bound)
        if self._executors is not None:
            self._executors.close()
        self._executors = None
        if live.record.buckets:
            self._executors = OnExecutors(self._stream.session, self._checkpoint, live)

    def tables(self, watermark: int | None) -> Tables:
        """All retained slices, read and merged only if somebody asks for them."""
        live, state = self.live, self.state
        assert live is not None
        if self._executors is not None:
            return self._executors.tables(state, watermark)
        return LazyTables(lambda: state.tables(live, watermark))

    # -------------------------------------------------------------------------------------------------- batches

    def readable(self, rows: DataFrame) -> DataFrame:
        """The rows without records that could not be read."""
        return rows if self._source.letters is None else rows.where(f"{BAD} IS NULL").drop(BAD)

    def describe(self, batch: int, part: str) -> None:
        """Have Spark's own pages show what the next jobs are for."""
        self._stream.session.sparkContext.setJobDescription(f"weft batch {batch}: {part}")

    def compute(self, rows: DataFrame | None, start: BatchStart, last: Manifest, epoch: int) -> ComputedBatch:
        """The batch that ``start`` tells, after ``last``; without rows for the step that closes all windows."""
        self.describe(start.batch, "rows to slices")
        cut = NO_ROWS if rows is None else self._cutter(start.cut).cut(rows, start.watermark)
        if rows is not None and cut.bad and self._source.letters is not None:
            self.describe(start.batch, "bad records")
            self._source.letters.keep(rows.where(f"{BAD} IS NOT NULL"), start.batch, self._run)
        return self._finish(cut, start, last, epoch)

    def _cutter(self, wished: CutEngine) -> Cutter:
        """What cuts rows under the present plan; the same engine for every attempt at a batch."""
        live = self.live
        assert live is not None
        if wished not in self._cutters:
            engine = engine_for(live.plan, self._stream.rows, wished)
            if engine != wished:
                for number, reason in left_to_jvm(live.plan, self._stream.rows).items():
                    LOG.info("rows are cut in the JVM, as kernels cannot cut %s: %s", live.ids[number], reason)
            self._cutters[wished] = cutter_of(live, engine, None if self._source.letters is None else BAD)
        return self._cutters[wished]

    def accept(self, batch: ComputedBatch) -> None:
        """A batch is committed: the next one goes on from it."""
        self.state = batch.state
        self._finals = None if batch.finals is None or batch.finals.is_swollen else batch.finals
        if self._executors is not None:
            self._executors.committed(batch.attempt, batch.manifest.batch)

    def _finish(self, cut: CutRows, start: BatchStart, last: Manifest, epoch: int) -> ComputedBatch:
        """The second half of the step, and its files."""
        live = self.live
        assert live is not None
        largest = largest_of(last.largest, cut.largest)
        watermark = watermark_after(start.watermark, largest, self._lateness)
        attempt = f"{start.batch:010}-{epoch}-{uuid4().hex[:12]}"
        turned = (self._turn_here if self._executors is None else self._turn_there)(cut, start, watermark, attempt)
        self.clock.note("state")
        written = turned.written
        manifest = Manifest(
            batch=start.batch,
            plan=start.plan,
            epoch=epoch,
            watermark=watermark,
            largest=largest,
            state=[(segment.file or "", segment.level) for segment in turned.state.segments],
            since=reached_since(last.since, live, watermark, largest),
            evaluated=True,
            answers={name: [f"{attempt}/{file}" for file in files] for name, files in written.files.items()},
            failed=written.failed,
            counts=asdict(self._counts(cut, turned)),
            drained=start.drain,
        )
        return ComputedBatch(manifest, turned.state, attempt, turned.finals, written.counts)

    def _counts(self, cut: CutRows, turned: TurnedSlices) -> Counts:
        return Counts(
            rows=cut.rows,
            without_time=cut.without_time,
            late=cut.late,
            bad=cut.bad,
            slices=turned.slices,
            answers=turned.written.rows,
            state_rows=turned.state.rows,
            state_bytes=turned.state.bytes,
            seconds=self.clock.seconds,
        )

    def _turn_here(self, cut: CutRows, start: BatchStart, watermark: int | None, attempt: str) -> TurnedSlices:
        """Answers and the next state, in this process."""
        live = self.live
        assert live is not None and self._lists is not None
        self.clock.note("slices")
        self.describe(start.batch, "select lists of answers")
        # a batch that fails leaves no half-fed cache behind
        finals, self._finals = self._finals, None
        emission = live.emission(start.watermark, None if start.drain else watermark)
        made = turn(live, cut.slices, self.state, emission, finals)
        folder = Folder(f"{self._checkpoint.folder.root}/{ANSWERS}/{attempt}")
        lists = self._lists
        with ThreadPoolExecutor(2, "weft-beside") as pool:
            # beside the answers, which do not need it
            saving = pool.submit(lambda: self._saved(made.state(), attempt))
            with AnswerFiles(live, folder, threads=THREADS) as files:
                compute = inheritable_thread_target(self._stream.session)(lists.compute)
                computing = []
                for direct, answers in groupby(made.answers, lambda answer: answer.query.direct):
                    files.take(answers)
                    if not direct:
                        # the JVM's work on these goes beside ours on those that are answers as they are
                        laid_out, files.laid_out = files.laid_out, {}
                        computing.append(pool.submit(compute, laid_out))
                for computed in computing:
                    lists.write(computed.result(), files)
            files.written.share(live.plan.same_as)
            self.clock.note("answers")
            state = saving.result()
        return TurnedSlices(files.written, state, len(cut.slices), made.finals)

    def _turn_there(self, cut: CutRows, start: BatchStart, watermark: int | None, attempt: str) -> TurnedSlices:
        """The same in buckets, on the executors."""
        assert self._executors is not None and self._lists is not None
        self.clock.note("slices")
        self.describe(start.batch, "slices to answers")
        results = self._executors.turn(cut.scattered, self.state, start, watermark, attempt)
        self.describe(start.batch, "select lists of answers")
        written = self._executors.written(results, self._lists, attempt)
        self.clock.note("answers")
        return TurnedSlices(written, state_of(results), sum(result.slices for result in results))

    def _saved(self, state: State, attempt: str) -> State:
        """The state with its new segments written."""
        for number, segment in enumerate(state.segments):
            if segment.file is None:
                file = f"{attempt}-{number}.arrows"
                segments.write(self._checkpoint, file, segment.tables)
                state.segments[number] = replace(segment, file=file)
        return state
