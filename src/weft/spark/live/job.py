"""The job: one micro-batch after another, each committed by one manifest and then delivered."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar
from uuid import uuid4

from pyspark.sql import DataFrame

from weft.catalog.catalog import Catalog
from weft.catalog.database import CatalogError
from weft.catalog.status import Outage
from weft.errors import UseError, WeftError
from weft.job import segments
from weft.job.clock import Clock, largest_of, watermark_after
from weft.job.given_up import answers_given_up
from weft.job.history import ANSWERS, History, Waiting
from weft.job.lease import Lease
from weft.job.memory import Memory
from weft.job.outbox import Outbox
from weft.job.patience import Patience
from weft.job.records import EVERYTHING, BatchStart, Counts, Manifest, Settings
from weft.job.sink import Sink
from weft.job.trials import PROOF, Trial, Trials
from weft.optimize.planner import Asked, plan
from weft.optimize.weaving import Weaving
from weft.plan.record import UNKEPT, PlanRecord
from weft.slicing.edge_rate import MICROSECONDS
from weft.sources.source import BAD, LiveSource
from weft.spark.bind import Bound, Stream
from weft.spark.culprits import control_of, is_too_much, surviving
from weft.spark.failures import JvmGoneError, jvm_is_gone
from weft.spark.live.answering import SelectLists, Written, write_answers
from weft.spark.live.changes import Past, next_since
from weft.spark.live.collect import Bringing, Collected, Scattering, collector_of
from weft.spark.live.committed import Committed
from weft.spark.live.finals_place import FinalsPlace, in_buckets, is_for_executors
from weft.spark.live.on_executors import OnExecutors, listed, state_of
from weft.spark.live.planning import LivePlan, Wanted, first_plan, live_plan, recorded
from weft.spark.live.registry import Registry
from weft.spark.live.shapes import Shapes
from weft.step.finals import Finals
from weft.step.state import LazyTables, Segment, State, Tables, by_grouping, conformed, open_rows, reach
from weft.step.turn import turn
from weft.store.folder import Folder

LOG = logging.getLogger("weft.stream")
NOTHING = Manifest(batch=-1, plan=0, epoch=0, watermark=None, largest=None)
"""What stands before the first commit."""
NO_ROWS = Collected(None, 0, 0, None, 0)

Found = TypeVar("Found")
KEPT = 2
"""So many commits are kept whole."""
FORGOTTEN = 20
"""So many batches are thrown away after one at most, when a sink has caught up."""

Listener = Callable[["Job", Manifest], object]


@dataclass(frozen=True)
class Done:
    """A batch that is computed, but not committed."""

    manifest: Manifest
    state: State
    finals: Finals | None
    attempt: str
    answered: Mapping[str, int] = field(default_factory=dict)
    """How many answers each query has, where it has any."""


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
    since: Mapping[str, Mapping[str, int]]
    left: Collection[str] = ()
    """Queries of the plan that were dropped, paused or refused since the batch was started."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Queries of the plan that cannot be bound any more, and why."""


@dataclass(frozen=True)
class Turn:
    """The second half of a step: what it wrote, and the next state."""

    written: Written
    state: State
    slices: int
    finals: Finals | None = None
    """The caches, where they are in this process."""


class Job:
    """Runs batches over one checkpoint. Everything that it knows it could read again from there."""

    def __init__(
        self,
        history: History,
        settings: Settings,
        stream: Stream,
        source: LiveSource,
        catalog: Catalog,
        sinks: Sequence[Sink],
        *,
        technique: str = "auto",
        weaving: Weaving | None = None,
        lease: Lease | None = None,
        patience: Patience | None = None,
        own_patience: Mapping[str, Patience] | None = None,
        finals: FinalsPlace = "auto",
        buckets: int | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.history = history
        self.settings = settings
        self.stream = stream
        self.source = source
        self.registry = Registry(stream, catalog, Shapes(history.checkpoint))
        self.technique = technique
        self.weaving = weaving or Weaving()
        if len(self.weaving.capacities) > 1 and finals == "driver":
            raise UseError("nodes are executors: leave finals at auto or executors, or leave nodes out")
        self.finals_place = finals
        self.buckets = buckets or stream.rows.sparkSession.sparkContext.defaultParallelism
        self.listeners = listeners
        self._batches = Committed(history, settings.run)
        self.lease = lease or Lease.take(history.checkpoint)
        self.outbox = Outbox(
            history.checkpoint,
            sinks,
            patience=patience,
            own=own_patience,
            reload=self._batches.reload,
            permit=lambda: self.lease.check(),
        )
        self.trials = Trials(history.checkpoint)
        self.live: LivePlan | None = None
        self.state = State()
        self.finals: Finals | None = None
        self.kept: list[Manifest] = []
        """The last two commits."""
        self._waiting: deque[Waiting] = deque()
        """Batches before these, of which some sink has yet to take the answers."""
        self.answered: Mapping[str, int] = {}
        """How many answers each query had in the last batch."""
        self.clock = Clock()
        self._memory = Memory()
        self._collector: Bringing | Scattering | None = None
        self._lists: SelectLists | None = None
        self._executors: OnExecutors | None = None
        """Where finals run, if not here."""
        self._swept = False

    @property
    def last(self) -> Manifest:
        """The last commit."""
        return self.kept[-1] if self.kept else NOTHING

    @property
    def outages(self) -> list[Outage]:
        """What is away: sinks, the catalog."""
        catalog = self.registry.presence.outage
        return self.outbox.outages + ([] if catalog is None else [catalog])

    # ------------------------------------------------------------------------------------------------- restarts

    def recover(self) -> None:
        """Take up where the last commit left off, and have delivered what was committed but not delivered."""
        committed = self._take_up()
        self.outbox.given_up = answers_given_up(self.history.checkpoint, committed)
        self.outbox.open(committed)
        self.registry.refuse((id, name, reason) for id, name, reason in self.last.refusals)
        self._refuse_failed()
        for batch in committed:
            if batch >= self.outbox.behind:
                self._deliver(self.history.manifest(batch))
        self._forget_taken(len(committed))
        started = self.history.started(self.last.batch + 1)
        if started is not None and started.drain:
            # the last step was begun: rows that came since belong to no window of this checkpoint
            self.drain()

    def resume(self) -> None:
        """Go on after an outage in the middle of a batch from what is committed, as a restart would; sinks stay."""
        self.live, self.finals = None, None
        for batch in self._take_up():
            if batch > self.outbox.posted:
                self._deliver(self.history.manifest(batch))

    def _take_up(self) -> list[int]:
        """The batches that are committed; state and plan as the last of them left them."""
        committed = self.history.committed()
        self.kept = [self.history.manifest(batch) for batch in committed[-KEPT:]]
        self._waiting = deque(Waiting.of(self.history.manifest(batch)) for batch in committed[:-KEPT])
        self.state = State()
        if self.kept:
            self._load()
            self.history.sweep(self.kept, self._waiting)
        return committed

    def _load(self) -> None:
        """The state as the last manifest lists it."""
        manifest = self.last
        self.state = State()
        live = self._plan(manifest.plan, {*manifest.failed, *manifest.left})
        self._follow(live)
        if live.record.buckets:
            self.state = listed(manifest.state)
            return
        for file, level in manifest.state:
            tables = conformed(segments.read(self.history.checkpoint, file), live)
            if tables:
                self.state.segments.append(Segment(tables, level, file))

    def _plan(self, version: int, left: Collection[str] = ()) -> LivePlan:
        """A plan by its version without some queries; the present one if it has that."""
        if self.live is not None and self.live.record.version == version:
            return self.live
        record = self.history.plan(version).without(left)
        bound, errors = self.registry.bind(record.queries)
        if errors:
            self.registry.refuse([(record.entries[name], name, reason) for name, reason in errors.items()])
        return live_plan(self.stream, record.without(errors), bound)

    # --------------------------------------------------------------------------------------------------- batches

    def process(self, rows: DataFrame, batch: int) -> None:
        """Run a micro-batch, unless it is committed already."""
        if self.last.drained:
            raise WeftError(
                f"{self.history.checkpoint.root} is drained: all its windows are closed; new rows need a new checkpoint"
            )
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
            self.registry.look(following + (self.history.started(following) is not None))

    def _begin(self, batch: int, rows: DataFrame | None, *, drain: bool) -> Ground:
        """What the batch starts from, as it was written down if it was started before."""
        self.clock = Clock()
        self.lease.check()
        self._describe(batch, "plan")
        start = self.history.started(batch)
        is_replayed = start is not None
        if start is None:
            start = self._start(batch, rows, drain=drain)
        record = self.history.plan(start.plan) if self.live is None else self._known(start.plan, self.live)
        left = self.registry.gone(record) if is_replayed else set()
        record = record.without(left)
        bound, errors = self.registry.bind(record.queries)
        record = record.without(errors)
        if is_replayed:
            self.registry.accept(record, batch)
        self.clock.note("start")
        return Ground(start, record, bound, self.live, self.state, self.last.since, left, errors)

    def _start(self, batch: int, rows: DataFrame | None, *, drain: bool) -> BatchStart:
        """Decide what a batch starts from, and write it down."""
        version = self._guarded(lambda: self._wanted_plan(rows, batch))
        return self.history.start(BatchStart(batch, version, self.last.watermark, self.lease.epoch, drain))

    def _known(self, version: int, live: LivePlan) -> PlanRecord:
        return live.record if live.record.version == version else self.history.plan(version)

    def _describe(self, batch: int, part: str) -> None:
        """Have Spark's own pages show what the next jobs are for."""
        self.stream.session.sparkContext.setJobDescription(f"weft batch {batch}: {part}")

    def _follow(self, live: LivePlan) -> None:
        """Go on under another plan."""
        self.live = live
        self.state = self.state.conformed(live)
        self.finals = None
        self._collector = collector_of(live, None if self.source.letters is None else BAD)
        self._lists = SelectLists(self.stream.session, live)
        if self._executors is not None:
            self._executors.close()
        self._executors = None
        if live.record.buckets:
            self._executors = OnExecutors(self.stream.session, self.history.checkpoint, live)

    def _run(self, rows: DataFrame | None, ground: Ground) -> Done:
        """Compute a batch; queries that stop it are left out, by name, and all others go on."""
        batch, names = ground.start.batch, list(ground.record.queries)

        def compute(some: Sequence[str]) -> Done:
            return self._computed(rows, ground, some)

        def attempt(some: Sequence[str]) -> None:
            self._swept = False  # what it writes counts for nobody
            compute(some)

        def try_apart(some: Sequence[str]) -> None:
            is_too_much(some, attempt)

        def run() -> tuple[Done, dict[str, str]]:
            died = self.trials.culprit(batch, names, self._new(ground.record), try_apart)
            left = [name for name in names if name not in died]
            self.trials.begin(Trial(batch, left))
            control = control_of(self.stream, lambda: self.stream.empty if rows is None else self._readable(rows))
            done, failed = surviving(left, compute, attempt, control)
            return done, {**died, **failed}

        done, failed = self._guarded(run)
        manifest = done.manifest
        failed = {**ground.failed, **failed, **manifest.failed}
        return replace(done, manifest=replace(manifest, failed=failed, left=sorted(ground.left)))

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
        before = self.history.plan(self.last.plan).entries if self.kept else {}
        return {name for name, entry in record.entries.items() if before.get(name) != entry}

    def _computed(self, rows: DataFrame | None, ground: Ground, names: Collection[str]) -> Done:
        """The batch for some queries alone; nothing of an earlier attempt is left."""
        record = ground.record.without(ground.record.queries.keys() - set(names))
        if self.live is None or self.live.record != record:
            live = live_plan(self.stream, record, ground.bound)
            if self.kept:
                since = next_since(ground.since, ground.live, live, self.last.largest)
                self.kept[-1] = replace(self.last, since=since)
            self.state = ground.state
            self._follow(live)
        assert self._collector is not None
        start = ground.start
        self._describe(start.batch, "rows to slices")
        if rows is None:
            return self._finish(NO_ROWS, start)
        collected = self._collector.collect(rows, start.watermark)
        if collected.bad and self.source.letters is not None:
            self._describe(start.batch, "bad records")
            self.source.letters.keep(rows.where(f"{BAD} IS NOT NULL"), start.batch, self.settings.run)
        return self._finish(collected, start)

    def _left(self, live: LivePlan, failed: Collection[str]) -> LivePlan:
        """What is left of a plan without the queries that stopped it: a plan that has yet to be written down."""
        return live_plan(self.stream, live.record.without(failed), live.bound)

    def _readable(self, rows: DataFrame) -> DataFrame:
        return rows if self.source.letters is None else rows.where(f"{BAD} IS NULL").drop(BAD)

    def _finish(self, collected: Collected, start: BatchStart) -> Done:
        """The second half of the step, and its files."""
        live = self.live
        assert live is not None
        largest = largest_of(self.last.largest, collected.largest)
        watermark = watermark_after(start.watermark, largest, self.settings.lateness)
        attempt = f"{start.batch:010}-{self.lease.epoch}-{uuid4().hex[:12]}"
        turn_of_batch = self._turn_here if self._executors is None else self._turn_there
        turned = turn_of_batch(collected, start, watermark, attempt)
        self.clock.note("state")
        counts = Counts(
            rows=collected.rows,
            without_time=collected.without_time,
            late=collected.late,
            bad=collected.bad,
            slices=turned.slices,
            answers=turned.written.rows,
            state_rows=turned.state.rows,
            state_bytes=turned.state.bytes,
            seconds=self.clock.seconds,
        )
        manifest = Manifest(
            batch=start.batch,
            plan=start.plan,
            epoch=self.lease.epoch,
            watermark=watermark,
            largest=largest,
            state=[(segment.file or "", segment.level) for segment in turned.state.segments],
            since=self._since(live, watermark, largest),
            evaluated=True,
            answers={name: [f"{attempt}/{file}" for file in files] for name, files in turned.written.files.items()},
            failed=turned.written.failed,
            refusals=list(self.registry.refusals),
            counts=asdict(counts),
            drained=start.drain,
        )
        return Done(manifest, turned.state, turned.finals, attempt, turned.written.counts)

    def _turn_here(self, collected: Collected, start: BatchStart, watermark: int | None, attempt: str) -> Turn:
        """Answers and the next state, in this process."""
        live = self.live
        assert live is not None and self._lists is not None
        fresh = {} if collected.slices is None else by_grouping(live, collected.slices)
        fresh = {id: open_rows(table, live, id, start.watermark) for id, table in fresh.items()}
        self.clock.note("slices")
        self._describe(start.batch, "select lists of answers")
        # a batch that fails leaves no half-fed cache behind
        finals, self.finals = self.finals, None
        made = turn(live, fresh, self.state, live.emission(start.watermark, None if start.drain else watermark), finals)
        folder = Folder(f"{self.history.checkpoint.folder.root}/{ANSWERS}/{attempt}")
        with ThreadPoolExecutor(1, "weft-state") as pool:
            # beside the answers, which do not need it
            saving = pool.submit(lambda: self._saved(made.state(), attempt))
            written = write_answers(live, self._lists, made.answers, folder)
            self.clock.note("answers")
            state = saving.result()
        return Turn(written, state, sum(map(len, fresh.values())), made.finals)

    def _turn_there(self, collected: Collected, start: BatchStart, watermark: int | None, attempt: str) -> Turn:
        """The same in buckets, on the executors."""
        assert self._executors is not None and self._lists is not None
        self.clock.note("slices")
        self._describe(start.batch, "slices to answers")
        turned = self._executors.turn(collected.scattered, self.state, start, watermark, attempt)
        self._describe(start.batch, "select lists of answers")
        written = self._executors.written(turned, self._lists, attempt)
        self.clock.note("answers")
        return Turn(written, state_of(turned), sum(one.slices for one in turned))

    def _saved(self, state: State, attempt: str) -> State:
        """The state with its new segments written."""
        for number, segment in enumerate(state.segments):
            if segment.file is None:
                file = f"{attempt}-{number}.arrows"
                segments.write(self.history.checkpoint, file, segment.tables)
                state.segments[number] = replace(segment, file=file)
        return state

    def _since(self, live: LivePlan, watermark: int | None, largest: int | None) -> dict[str, dict[str, int]]:
        found = {}
        for id in live.groupings:
            mine = dict(self.last.since.get(id, {}))
            reached = reach(live, id, watermark, largest)
            if reached is not None:
                mine[EVERYTHING] = max(reached, mine.get(EVERYTHING, reached))
            found[id] = mine
        return found

    def _commit(self, done: Done) -> None:
        """Make the batch count, have the sinks told, and throw away what nobody needs any more."""
        self.lease.check()
        counts = self.history.commit(done.manifest)
        # others may have committed this very batch and forgotten it since: then nothing is ours to deliver or delete
        self.lease.check()
        if counts:
            self.state, self.answered = done.state, done.answered
            self.finals = None if done.finals is None or done.finals.is_swollen else done.finals
            if self._executors is not None:
                self._executors.committed(done.attempt, done.manifest.batch)
            self.kept.append(done.manifest)
        else:
            # the driver before this one committed the batch at the last moment: what it wrote counts
            self.kept.append(self.history.manifest(done.manifest.batch))
            self.answered = {}
            self._load()
        self.clock.note("commit")
        self._deliver(self.last)
        self.clock.note("deliver")
        self._refuse_failed()
        assert self.live is not None
        if not self.live.record.queries.keys().isdisjoint(self.last.failed):
            # stopped when its answers were read: it ends here, as after a restart
            self._follow(self._left(self.live, self.last.failed))
        for listener in self.listeners:
            listener(self, self.last)
        while len(self.kept) > KEPT:
            old = self.kept.pop(0)
            self._waiting.append(Waiting.of(old))
            self.history.forget_state(old, self.kept)
        self._forget_taken(FORGOTTEN)
        if not self._swept:
            self.history.sweep(self.kept, self._waiting)
            self._swept = True
        self._memory.give_back()
        self.clock.note("tidy")

    def _deliver(self, manifest: Manifest) -> None:
        """Have a batch handed to the sinks, each when it is ready."""
        if not self._batches.knows(manifest.plan):
            self._batches.learn(manifest.plan, self._plan(manifest.plan))
        self.outbox.post(self._batches.batch(manifest))

    def _forget_taken(self, most: int) -> None:
        """Throw away batches long past that every sink has taken, ``most`` at once: the next one must not wait."""
        for _ in range(most):
            if not self._waiting or self._waiting[0].batch >= self.outbox.behind:
                return
            old = self._waiting.popleft()
            plans = {manifest.plan for manifest in self.kept} | {waiting.plan for waiting in self._waiting}
            self.history.forget(old, plans)
            self._batches.forget(old.batch, plans)

    def _refuse_failed(self) -> None:
        if self.last.failed:
            entries = self.history.plan(self.last.plan).entries
            reasons = {name: f"batch {self.last.batch}: {reason}" for name, reason in self.last.failed.items()}
            self.registry.refuse([(entries[name], name, reason) for name, reason in reasons.items()])

    # --------------------------------------------------------------------------------------------------- queries

    def _wanted_plan(self, rows: DataFrame | None, batch: int) -> int:
        """The version of the plan for the next batch: another one if the catalog has changed."""
        live = self.live
        try:
            version = self.registry.changed
            if live is not None and version is None and (live.record.sampled or self.last.largest is not None):
                return self._kept(live.record, batch).version
            wanted = self.registry.wanted()
        except CatalogError as error:
            if live is None:
                raise
            self.registry.miss(error)
            return self._kept(live.record, batch).version
        record = self._kept(self._next_record(wanted, self._harmless(rows, batch)), batch)
        if version is not None:
            # as it was before the entries were read: a change that came in between is seen at the next batch
            self.registry.planned(version, record, batch)
        return record.version

    def _kept(self, record: PlanRecord, batch: int) -> PlanRecord:
        """The plan as it is written down: the present one if it is the same."""
        if self.live is not None and record == replace(self.live.record, version=record.version):
            record = self.live.record
        if record.version == UNKEPT:
            record = self.history.keep_plan(record)
            self.registry.describe(record, batch, self.last.watermark)
        return record

    def _harmless(self, rows: DataFrame | None, batch: int) -> DataFrame | None:
        """The rows to look at for a better plan; none if processes died of that."""
        if rows is None:
            return None
        self.trials.begin(Trial(batch, []))
        known = self.trials.last(batch)
        return rows if known is None or known.tries <= PROOF else None

    def _next_record(self, wanted: Wanted, rows: DataFrame | None) -> PlanRecord:
        if self.live is None or self.last.largest is None:
            good = None if rows is None else self._readable(rows)
            sample = good if good is not None and not good.isEmpty() else None
            return self._placed(first_plan(self.stream, self._asked(wanted), sample), wanted, sample)
        live, state, watermark = self.live, self.state, self.last.watermark
        if self._executors is None:
            # merged only if a new query might be answered from them
            tables: Tables = LazyTables(lambda: state.tables(live, watermark))
        else:
            tables = self._executors.tables(state, watermark)
        past = Past(self.live, tables, self.last.since, self.last.largest, self._rate)
        record = recorded(plan(self._asked(wanted), past))
        if self.live.record.groupings or self.state.segments:
            return in_buckets(record, record.buckets, wanted.bound)
        return self._placed(replace(record, buckets=0), wanted, None if rows is None else self._readable(rows))

    def _asked(self, wanted: Wanted) -> Asked:
        """What the planner is asked: the catalog's queries, woven as the user wishes."""
        queries = [bound.query for bound in wanted.bound.values()]
        return Asked(
            *(self.stream.name, self.stream.event_time, queries, self.weaving, self.technique),
            limits=self.stream.limits,
            keeps=True,
            texts=wanted.texts,
            entries=wanted.entries,
        )

    def _placed(self, record: PlanRecord, wanted: Wanted, rows: DataFrame | None) -> PlanRecord:
        """A plan for which there is no state yet, with where its finals run: from then on that stays so."""
        on_nodes = len(self.weaving.capacities) > 1
        if on_nodes or is_for_executors(self.finals_place, self.stream, record, wanted.bound, rows):
            LOG.info("slices become answers on the executors, in %d buckets", self.buckets)
            return in_buckets(record, self.buckets, wanted.bound)
        return record

    @property
    def _rate(self) -> float | None:
        """Rows a second of event time in the last batch; None if it does not tell."""
        before, after = (self.kept[-2].largest, self.last.largest) if len(self.kept) > 1 else (None, None)
        if before is None or after is None or after <= before:
            return None
        return float(self.last.counts["rows"] / ((after - before) / MICROSECONDS))
