"""The job: one micro-batch after another, planned, computed, committed by one manifest and then delivered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from pyspark.sql import DataFrame

from weft.catalog.catalog import Catalog
from weft.catalog.status import Outage
from weft.job.clock import Clock
from weft.job.history import History
from weft.job.lease import Lease
from weft.job.ledger import Ledger
from weft.job.memory import Memory
from weft.job.outbox import Outbox
from weft.job.past import Since, next_since
from weft.job.patience import Patience
from weft.job.query_registry import QueryRegistry
from weft.job.records import BatchStart, CheckpointSettings, Counts, Manifest
from weft.job.shapes import Shapes
from weft.job.sink import QueryAnswers, Sink
from weft.job.trials import Trial, Trials
from weft.optimize.constants import Constants
from weft.plan.cut_engine import CutEngine
from weft.plan.record import PlanRecord, restored
from weft.sources.source import LiveSource
from weft.spark.bind import Bound, Stream
from weft.spark.choosing import CutChooser
from weft.spark.culprits import control_of, is_too_much, surviving
from weft.spark.failures import JvmGoneError, jvm_is_gone
from weft.spark.live.next_plan import NextPlan, Wishes
from weft.spark.live.planning import LivePlan, bind_all, restored_plan
from weft.spark.live.runner import ComputedBatch, Runner
from weft.step.state import State

Found = TypeVar("Found")
Listener = Callable[["Job", Manifest], object]
UNSEEN_ROWS = 50_000
"""So many rows the first batch is taken to have."""


@dataclass(frozen=True)
class Ground:
    """What a batch starts from, and goes back to for every attempt at it."""

    start: BatchStart
    record: PlanRecord
    """The plan, without queries that are gone since."""
    bound: Mapping[str, Bound]
    live: LivePlan | None
    """The plan before it."""
    state: State
    since: Since
    left: Collection[str] = ()
    """Queries of the plan that were dropped, paused or refused since the batch was started."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Queries of the plan that cannot be bound any more, and why."""


class Job:
    """Runs batches over one checkpoint. Everything that it knows it could read again from there."""

    def __init__(
        self,
        history: History,
        settings: CheckpointSettings,
        stream: Stream,
        source: LiveSource,
        catalog: Catalog,
        sinks: Sequence[Sink],
        *,
        wishes: Wishes | None = None,
        lease: Lease | None = None,
        patience: Patience | None = None,
        own_patience: Mapping[str, Patience] | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.wishes = wishes or Wishes()
        self.stream = stream
        self.listeners = listeners
        self.registry: QueryRegistry[Bound] = QueryRegistry(
            partial(bind_all, stream), catalog, Shapes(history.checkpoint)
        )
        held = lease or Lease.take(history.checkpoint)
        self.ledger = Ledger(history, settings, held, sinks, self._forms, patience=patience, own_patience=own_patience)
        self.runner = Runner(stream, source, history.checkpoint, settings.lateness, settings.run)
        self.trials = Trials(history.checkpoint)
        self._next_plan = NextPlan(stream, self.wishes, self.registry, self.ledger, self.runner, self.trials)
        self.answered: Mapping[str, int] = {}
        """How many answers each query had in the last batch."""
        self._memory = Memory()
        self._chooser: tuple[PlanRecord, CutChooser] | None = None
        """Who chooses the engine that cuts, under a plan."""

    @property
    def last(self) -> Manifest:
        """The last commit."""
        return self.ledger.last

    @property
    def live(self) -> LivePlan | None:
        """The present plan, if there is one."""
        return self.runner.live

    @property
    def state(self) -> State:
        """The retained slices."""
        return self.runner.state

    @property
    def outbox(self) -> Outbox:
        """What waits for sinks."""
        return self.ledger.outbox

    @property
    def lease(self) -> Lease:
        """The right to run on the checkpoint."""
        return self.ledger.lease

    @property
    def clock(self) -> Clock:
        """How long the parts of the last batch took."""
        return self.runner.clock

    @property
    def outages(self) -> list[Outage]:
        """What is away: sinks, the catalog."""
        catalog = self.registry.presence.outage
        return self.outbox.outages + ([] if catalog is None else [catalog])

    # ------------------------------------------------------------------------------------------------- restarts

    def recover(self) -> None:
        """Take up where the last commit left off, and have delivered what was committed but not delivered."""
        committed = self._take_up()
        self.ledger.open_sinks(committed)
        self.registry.refuse((id, name, reason) for id, name, reason in self.last.refusals)
        self._refuse_failed()
        self.ledger.deliver_since(committed, self.outbox.behind)
        started = self.ledger.started(self.last.batch + 1)
        if started is not None and started.drain:
            # the last step was begun: rows that came since belong to no window of this checkpoint
            self.drain()

    def resume(self) -> None:
        """Go on after an outage in the middle of a batch from what is committed, as a restart would; sinks stay."""
        self.ledger.deliver_since(self._take_up(), self.outbox.posted + 1)

    def _take_up(self) -> list[int]:
        """The batches that are committed; state and plan as the last of them left them."""
        committed = self.ledger.take_up()
        self.runner.forget()
        if committed:
            self._load()
            self.ledger.sweep()
        return committed

    def _load(self) -> None:
        """State and plan as the last manifest lists them."""
        self.runner.take_up(self._plan(self.last.plan, {*self.last.failed, *self.last.left}), self.last)

    def _plan(self, version: int, left: Collection[str] = ()) -> LivePlan:
        """A plan by its version without some queries; the present one if it has that."""
        if self.live is not None and self.live.record.version == version:
            return self.live
        record = self.ledger.history.plan(version).without(left)
        bound, errors = self.registry.bind(record.queries)
        if errors:
            self.registry.refuse([(record.entries[name], name, reason) for name, reason in errors.items()])
        return restored_plan(self.stream, record.without(errors), bound)

    def _forms(self, version: int) -> dict[str, QueryAnswers]:
        """The answers of a plan's queries, without any files."""
        live = self._plan(version)
        return {name: live.bound[name].answers for name in live.record.queries if name in live.bound}

    # --------------------------------------------------------------------------------------------------- batches

    def process(self, rows: DataFrame, batch: int) -> None:
        """Run a micro-batch, unless it is committed already."""
        self.ledger.refuse_drained()
        if batch > self.last.batch:
            self._commit(self._run(rows, self._begin(batch, rows, drain=False)))

    def drain(self) -> None:
        """Close all windows: the last step of a bounded stream."""
        if not self.last.drained:
            self._commit(self._run(None, self._begin(self.last.batch + 1, None, drain=True)))

    def look(self) -> None:
        """Decide about new queries between two batches."""
        if not self.last.drained:
            following = self.last.batch + 1
            # a batch that was started before a crash is run as it was started
            self.registry.look(following + (self.ledger.started(following) is not None))

    def _begin(self, batch: int, rows: DataFrame | None, *, drain: bool) -> Ground:
        """What the batch starts from, as it was written down if it was started before."""
        self.runner.clock = Clock()
        self.lease.check()
        self.runner.describe(batch, "plan")
        start = self.ledger.started(batch)
        is_replayed = start is not None
        version = start.plan if start is not None else self._guarded(lambda: self._next_plan.version(rows, batch))
        live = self.live
        known = live is not None and live.record.version == version
        record = live.record if live is not None and known else self.ledger.history.plan(version)
        left = self.registry.gone(record) if is_replayed else set()
        record = record.without(left)
        bound, errors = self.registry.bind(record.queries)
        record = record.without(errors)
        if start is None:
            start = self.ledger.start(batch, version, drain=drain, cut=self._engine(record, bound))
        else:
            self.registry.accept(record, batch)
        self.clock.note("start")
        return Ground(start, record, bound, live, self.state, self.last.since, left, errors)

    def _engine(self, record: PlanRecord, bound: Mapping[str, Bound]) -> CutEngine:
        """Who cuts the rows of a new batch, of which there may be as many as in the last one."""
        if self._chooser is None or self._chooser[0] != record:
            queries = {name: one.query for name, one in bound.items()}
            made = restored(self.stream.name, self.stream.event_time, record, queries, self.stream.limits)
            constants = self.wishes.weaving.constants or Constants.load()
            here = not record.buckets
            self._chooser = record, CutChooser(made, self.stream.rows, self.wishes.cut, constants, here=here)
        counts = Counts(**self.last.counts)
        return self._chooser[1].chosen(counts.rows or UNSEEN_ROWS, counts.slices if counts.rows else None).engine

    def _run(self, rows: DataFrame | None, ground: Ground) -> ComputedBatch:
        """Compute a batch; queries that stop it are left out, by name, and all others go on."""
        batch, names = ground.start.batch, list(ground.record.queries)

        def compute(some: Sequence[str]) -> ComputedBatch:
            return self._computed(rows, ground, some)

        def attempt(some: Sequence[str]) -> None:
            self.ledger.unsweep()  # what it writes counts for nobody
            compute(some)

        def run() -> tuple[ComputedBatch, dict[str, str]]:
            died = self.trials.culprit(batch, names, self._new(ground.record), lambda some: is_too_much(some, attempt))
            left = [name for name in names if name not in died]
            self.trials.begin(Trial(batch, left))
            control = control_of(self.stream, lambda: self.stream.empty if rows is None else self.runner.readable(rows))
            done, failed = surviving(left, compute, attempt, control)
            return done, {**died, **failed}

        done, failed = self._guarded(run)
        failed = {**ground.failed, **failed, **done.manifest.failed}
        refusals = list(self.registry.refusals)
        manifest = replace(done.manifest, failed=failed, left=sorted(ground.left), refusals=refusals)
        return replace(done, manifest=manifest)

    def _guarded(self, work: Callable[[], Found]) -> Found:
        """Do some work; that the JVM died of it is written down for the next start."""
        try:
            return work()
        except Exception as error:
            if not jvm_is_gone(error):
                self.trials.failed()
                raise
            self.trials.died()
            raise JvmGoneError from error

    def _new(self, record: PlanRecord) -> set[str]:
        """The queries of a plan that no batch was committed with."""
        before = self.ledger.history.plan(self.last.plan).entries if self.ledger.kept else {}
        return {name for name, entry in record.entries.items() if before.get(name) != entry}

    def _computed(self, rows: DataFrame | None, ground: Ground, names: Collection[str]) -> ComputedBatch:
        """The batch for some queries alone; nothing of an earlier attempt is left."""
        record = ground.record.without(ground.record.queries.keys() - set(names))
        if self.live is None or self.live.record != record:
            self.runner.follow(restored_plan(self.stream, record, ground.bound), ground.state)
        assert self.live is not None
        since = next_since(ground.since, ground.live, self.live, self.last.largest) if self.ledger.kept else {}
        return self.runner.compute(rows, ground.start, replace(self.last, since=since), self.lease.epoch)

    def _commit(self, done: ComputedBatch) -> None:
        """Make the batch count, have the sinks told, and throw away what nobody needs any more."""
        if self.ledger.commit(done.manifest):
            self.answered = done.answered
            self.runner.accept(done)
        else:
            self.answered = {}
            self._load()
        self.clock.note("commit")
        self.ledger.deliver(self.last)
        self.clock.note("deliver")
        self._refuse_failed()
        assert self.live is not None
        if not self.live.record.queries.keys().isdisjoint(self.last.failed):
            # stopped when its answers were read: it ends here, as after a restart
            left = self.live.record.without(self.last.failed)
            self.runner.follow(restored_plan(self.stream, left, self.live.bound))
        for listener in self.listeners:
            listener(self, self.last)
        self.ledger.tidy()
        self._memory.give_back()
        self.clock.note("tidy")

    def _refuse_failed(self) -> None:
        if self.last.failed:
            entries = self.ledger.history.plan(self.last.plan).entries
            reasons = {name: f"batch {self.last.batch}: {reason}" for name, reason in self.last.failed.items()}
            self.registry.refuse([(entries[name], name, reason) for name, reason in reasons.items()])
