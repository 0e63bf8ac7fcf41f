"""What a Spark task does with one bucket: its slices become answers, in a batch run and in every micro-batch.

The same functions run here as in the driver's process. A task writes files that only it has, and tells their names:
what it wrote counts if the driver lists it, and a task that is repeated, or goes on when nobody wants it any more,
harms nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark.core.broadcast import Broadcast

from weft.job import segments
from weft.job.checkpoint import Checkpoint
from weft.job.segments import BucketFile
from weft.spark.sending import sent
from weft.step.answer_files import AnswerFiles, Written
from weft.step.arriving import Arrival
from weft.step.emission import Emission
from weft.step.finals import Finals
from weft.step.new_slices import NewSlices
from weft.step.packing import Packing
from weft.step.parts import Parts
from weft.step.state import LazyTables, Segment, Size, State, conformed, fresh_of, merged_tables
from weft.step.step_plan import StepPlan
from weft.step.turn import Turned, turn
from weft.store.folder import Folder

THREADS = 2
NOTHING = Packing((), ())


@dataclass(frozen=True)
class Stored:
    """A segment in a file, and what is known of it."""

    file: str
    level: int
    size: Size | None = None

    @classmethod
    def of(cls, segment: Segment) -> Stored:
        """The same without its tables."""
        assert segment.file is not None
        return cls(segment.file, segment.level, segment.size)


@dataclass(frozen=True)
class StateOrder:
    """Where the buckets of a micro-batch find their state, and put the next one."""

    root: str
    """Of the checkpoint."""
    attempt: str
    batch: int
    segments: Mapping[int, Sequence[Stored]]
    """By bucket, oldest first."""
    recent: Mapping[str, int]
    """The attempts that were committed last under the same plan, and their batches."""

    @property
    def checkpoint(self) -> Checkpoint:
        """Where the files lie."""
        return Checkpoint(self.root)


@dataclass(frozen=True)
class Order:
    """What a step asks of every bucket."""

    answers: str
    """The folder for files of answers."""
    before: int | None = None
    """The watermark at the step's start."""
    after: int | None = None
    """The watermark at its end."""
    drain: bool = True
    """Whether all windows are closed, and no state is left."""
    state: StateOrder | None = None
    """None if there is none, before or after: in a batch run."""
    at_once: int | None = None
    """So many slices are in memory at most; None: all, as where they are retained."""

    def emission(self, plan: StepPlan) -> Emission:
        """Which windows are answered."""
        return plan.emission(self.before, None if self.drain else self.after)


@dataclass(frozen=True)
class BucketResult:
    """What a task wrote."""

    bucket: int
    written: Written
    """Files of answers, and queries that a value stopped."""
    sheet: str
    """The file, if there is one, of those answers that Spark has yet to compute select lists from."""
    state: Sequence[Stored]
    slices: int


@dataclass(frozen=True)
class BucketTask:
    """The task for all buckets of a step."""

    plan: Broadcast[bytes]
    order: Order
    arrival: Arrival | None = None
    """How new slices come; None if there are none."""

    def __call__(self, bucket: int, batches: Iterable[bytes]) -> Iterator[BucketResult]:
        """Turn one bucket."""
        plan: StepPlan = sent(self.plan.value)
        with Parts(NOTHING if self.arrival is None else self.arrival.packing, self.order.at_once) as parts:
            if self.arrival is not None:
                for data in batches:
                    for table in self.arrival.tables(data):
                        parts.add(table)
            yield turned_bucket(plan, self.order, bucket, parts)


def turned_bucket(plan: StepPlan, order: Order, bucket: int, parts: Parts) -> BucketResult:
    """Answers and next state of one bucket, written."""
    task = uuid4().hex[:12]
    prefix = f"b{bucket}-{task}-"
    sheet = f"{prefix}sheet.parquet"
    with AnswerFiles(plan, Folder(order.answers), prefix, sheet=sheet, threads=THREADS if plan.retains else 0) as files:
        if order.state is None:
            slices = sum(turned_part(plan, order, table, files) for table in parts.tables())
            stored: list[Stored] = []
        else:
            state, finals = taken_up(plan, order.state, bucket, order.before)
            new = NewSlices.of(plan, next(parts.tables(), None), order.before)
            made = turn(plan, new, state, order.emission(plan), finals)
            files.take(made.answers)
            slices, stored = len(new), left_state(made, order.state, order.drain, bucket, task)
    return BucketResult(bucket, files.written, sheet, stored, slices)


def turned_part(plan: StepPlan, order: Order, table: pa.Table, files: AnswerFiles) -> int:
    """The answers of some keys, from all their slices; how many slices these are. Nothing of them stays in memory."""
    new = NewSlices.of(plan, table)
    files.take(turn(plan, new, State(), order.emission(plan)).answers)
    return len(new)


# --------------------------------------------------------------------------------------------------------------- state


def taken_up(plan: StepPlan, order: StateOrder, bucket: int, watermark: int | None) -> tuple[State, Finals | None]:
    """The state of a bucket, and what this worker has of it from earlier batches."""
    state = State([stored_segment(one, order.checkpoint, plan) for one in order.segments.get(bucket, ())])
    # taken out: a task that fails leaves no half-fed cache behind
    finals = caught_up(KEPT.pop((order.root, bucket), None), order, state, plan, watermark)
    forget_old(order)
    return state, finals


def left_state(made: Turned, order: StateOrder, drain: bool, bucket: int, task: str) -> list[Stored]:
    """The next state of a bucket, written; what can be kept of it is kept."""
    after = stored_state(made.state(), order, BucketFile(order.attempt, bucket, 0, task))
    if not (drain or made.finals.is_swollen):
        KEPT[order.root, bucket] = WorkerCache(order.attempt, made.finals)
    return [Stored.of(one) for one in after.segments]


def stored_state(after: State, order: StateOrder, naming: BucketFile) -> State:
    """The state after a batch, its new segment written."""
    if after.segments and after.segments[-1].file is None:
        new = after.segments[-1]
        # one that is merged holds all since the segment before it
        kept = [BucketFile.of(one.file).batch for one in after.segments[:-1] if one.file is not None]
        since = order.batch if new.level == 0 else max(kept, default=-1) + 1
        file = BucketFile(naming.attempt, naming.bucket, since, naming.task).name
        segments.write(order.checkpoint, file, new.tables)
        after.segments[-1] = Segment(new.tables, new.level, file)
    return after


def stored_segment(stored: Stored, checkpoint: Checkpoint, plan: StepPlan) -> Segment:
    """A segment whose tables are read only if they are needed."""
    tables = LazyTables(lambda: conformed(segments.read(checkpoint, stored.file), plan))
    return Segment(tables, stored.level, stored.file, stored.size)


# ------------------------------------------------------------------------------------------------------------- caching


@dataclass(frozen=True)
class WorkerCache:
    """Finals that a worker keeps from one batch to the next, and the attempt whose slices they took in last."""

    attempt: str
    finals: Finals


KEPT: dict[tuple[str, int], WorkerCache] = {}
"""By checkpoint and bucket. A cache: whatever is not exactly what was committed is made again from the files."""


def forget_old(order: StateOrder) -> None:
    """Give back the memory of buckets that others have had for long."""
    for place, kept in list(KEPT.items()):
        if place[0] == order.root and kept.attempt not in order.recent:
            del KEPT[place]


def caught_up(
    kept: WorkerCache | None, order: StateOrder, state: State, plan: StepPlan, watermark: int | None
) -> Finals | None:
    """The finals of a bucket as the last commit left them; None if they have to be made from its state.

    Spark gives a bucket to any worker: one that had it some batches ago takes in the segments that were written since.
    """
    reached = None if kept is None else order.recent.get(kept.attempt)
    if kept is None or reached is None:
        return None
    missing = []
    for segment in state.segments:
        assert segment.file is not None
        held = BucketFile.of(segment.file)
        if held.since > reached:
            missing.append(segment)
        elif held.batch > reached:
            return None  # some of it is there already, some is not
    if missing:
        kept.finals.absorb(fresh_of(plan, merged_tables(missing, plan, watermark)))
    return kept.finals
