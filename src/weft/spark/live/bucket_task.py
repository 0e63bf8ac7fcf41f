"""What a Spark task does with one bucket: its retained slices and a batch's new ones become answers and its next state.

The same functions run here as in the driver's process. A task writes files that only it has, and tells their names:
what it wrote counts if a manifest lists it, and a task that is repeated, or goes on when nobody wants it any more,
harms nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import uuid4

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.core.broadcast import Broadcast

from weft.job import segments
from weft.job.checkpoint import Checkpoint
from weft.job.history import ANSWERS
from weft.job.segments import BucketFile
from weft.spark.live.answering import Writing, Written, write_direct
from weft.spark.live.planning import LivePlan
from weft.step.finals import Finals
from weft.step.state import (
    LazyTables,
    Segment,
    Size,
    State,
    Tables,
    by_grouping,
    conformed,
    fresh_of,
    merged_tables,
    open_rows,
)
from weft.step.step_plan import StepPlan
from weft.step.turn import turn
from weft.store.folder import Folder


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
class Order:
    """What a batch asks of every bucket."""

    root: str
    """Of the checkpoint."""
    attempt: str
    batch: int
    before: int | None
    """The watermark at the batch's start."""
    after: int | None
    """The watermark at its end."""
    drain: bool
    state: Mapping[int, Sequence[Stored]]
    """By bucket: the segments of its state, oldest first."""
    recent: Mapping[str, int]
    """The attempts that were committed last under the same plan, and their batches."""

    @property
    def checkpoint(self) -> Checkpoint:
        """Where the files lie."""
        return Checkpoint(self.root)


@dataclass(frozen=True)
class Turned:
    """What a task wrote."""

    bucket: int
    written: Written
    """Files of answers, and queries that a value stopped."""
    sheets: str | None
    """The file of those answers that Spark has yet to compute select lists from."""
    state: Sequence[Stored]
    slices: int


@dataclass(frozen=True)
class BucketTask:
    """The task for all buckets of a batch."""

    plan: Broadcast[bytes]
    order: Order
    schema: pa.Schema | None = None
    """The columns of new slices; None if there are none."""

    def __call__(self, bucket: int, batches: Iterable[bytes]) -> Iterator[Turned]:
        """Turn one bucket."""
        plan = sent_plan(self.plan.value)
        yield turned(plan, self.order, bucket, fresh_slices(plan, self.order, self.schema, batches))


def sendable(live: LivePlan) -> bytes:
    """A plan for the workers, without what only the driver needs; functions in it ask for more than pickle."""
    data: bytes = cloudpickle.dumps(live.sent)  # type: ignore[no-untyped-call]
    return data


@lru_cache(maxsize=2)
def sent_plan(data: bytes) -> StepPlan:
    """The plan again, once for all batches that a worker sees of it."""
    plan: StepPlan = cloudpickle.loads(data)
    return plan


def fresh_slices(plan: StepPlan, order: Order, schema: pa.Schema | None, batches: Iterable[bytes]) -> Tables:
    """A bucket's new slices, as they came over the wire."""
    if schema is None:
        return {}
    received = [pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(data), schema)]) for data in batches]
    if not received:
        return {}
    tables = by_grouping(plan, plan.packing.joined(received))
    return {id: open_rows(table, plan, id, order.before) for id, table in tables.items()}


def turned(plan: StepPlan, order: Order, bucket: int, fresh: Tables) -> Turned:
    """Answers and next state of one bucket, written."""
    task = uuid4().hex[:12]
    state = State([stored_segment(one, order.checkpoint, plan) for one in order.state.get(bucket, ())])
    # taken out: a task that fails leaves no half-fed cache behind
    finals = caught_up(KEPT.pop((order.root, bucket), None), order, state, plan)
    forget_old(order)
    made = turn(plan, fresh, state, plan.emission(order.before, None if order.drain else order.after), finals)
    written = Written()
    folder = Folder(f"{order.checkpoint.folder.root}/{ANSWERS}/{order.attempt}")
    with Writing(folder, f"b{bucket}-{task}-") as writing:
        sheets = write_direct(plan, made.answers, writing, written)
    file = f"{order.attempt}-b{bucket}-{task}.sheets" if sheets else None
    if file is not None:
        segments.write(order.checkpoint, file, sheets)
    after = stored_state(made.state(), order, BucketFile(order.attempt, bucket, 0, task))
    if not (order.drain or made.finals.is_swollen):
        KEPT[order.root, bucket] = Kept(order.attempt, made.finals)
    return Turned(bucket, written, file, [Stored.of(one) for one in after.segments], sum(map(len, fresh.values())))


def stored_state(after: State, order: Order, naming: BucketFile) -> State:
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


# ------------------------------------------------------------------------------------------------------------- reading


def stored_segment(stored: Stored, checkpoint: Checkpoint, plan: StepPlan) -> Segment:
    """A segment whose tables are read only if they are needed."""
    tables = LazyTables(lambda: conformed(segments.read(checkpoint, stored.file), plan))
    return Segment(tables, stored.level, stored.file, stored.size)


# ------------------------------------------------------------------------------------------------------------- caching


@dataclass(frozen=True)
class Kept:
    """Finals that a worker keeps from one batch to the next, and the attempt whose slices they took in last."""

    attempt: str
    finals: Finals


KEPT: dict[tuple[str, int], Kept] = {}
"""By checkpoint and bucket. A cache: whatever is not exactly what was committed is made again from the files."""


def forget_old(order: Order) -> None:
    """Give back the memory of buckets that others have had for long."""
    for place, kept in list(KEPT.items()):
        if place[0] == order.root and kept.attempt not in order.recent:
            del KEPT[place]


def caught_up(kept: Kept | None, order: Order, state: State, plan: StepPlan) -> Finals | None:
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
        kept.finals.absorb(fresh_of(plan, merged_tables(missing, plan, order.before)))
    return kept.finals
