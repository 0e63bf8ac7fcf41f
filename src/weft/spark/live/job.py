"""The job: one micro-batch after another, each committed by one manifest and then delivered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from weft.catalog.catalog import Catalog
from weft.errors import WeftError
from weft.plan.model import BoundQuery
from weft.query.model import Part
from weft.spark.bind import Bound, Stream
from weft.spark.failures import culprits, data_error
from weft.spark.files import Folder
from weft.spark.live import segments
from weft.spark.live.answering import write_answers
from weft.spark.live.changes import EVERYTHING, Past, changed_plan, next_since
from weft.spark.live.collect import Collected, Collector
from weft.spark.live.history import ANSWERS, History
from weft.spark.live.lease import Lease
from weft.spark.live.outbox import Outbox
from weft.spark.live.planning import LivePlan, Wanted, bind_all, first_plan, live_plan, without
from weft.spark.live.records import BatchStart, Counts, Manifest, PlanRecord, Settings
from weft.spark.live.state import Segment, State, by_grouping, conformed, open_rows, reach
from weft.spark.live.turn import Finals
from weft.spark.rows import slices
from weft.spark.sinks.sink import CommittedBatch, QueryAnswers, Sink

NOTHING = Manifest(batch=-1, plan=0, epoch=0, watermark=None, largest=None)
"""What stands before the first commit."""

Listener = Callable[["Job", Manifest], object]


@dataclass(frozen=True)
class Done:
    """A batch that is computed, but not committed."""

    manifest: Manifest
    state: State
    finals: Finals


class Clock:
    """How long the parts of a batch took."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self._since = time.perf_counter()

    def note(self, part: str) -> None:
        """The time since the last note belongs to ``part``."""
        now = time.perf_counter()
        self.parts[part] = self.parts.get(part, 0.0) + now - self._since
        self._since = now


class Job:
    """Runs batches over one checkpoint. Everything that it knows it could read again from there."""

    def __init__(
        self,
        history: History,
        settings: Settings,
        stream: Stream,
        catalog: Catalog,
        sinks: Sequence[Sink],
        *,
        technique: str = "auto",
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.history = history
        self.settings = settings
        self.stream = stream
        self.catalog = catalog
        self.technique = technique
        self.listeners = listeners
        self.lease = Lease.take(history.checkpoint)
        self.outbox = Outbox(history.checkpoint, sinks)
        self.live: LivePlan | None = None
        self.state = State()
        self.finals: Finals | None = None
        self.kept: list[Manifest] = []
        self._bound: dict[str, tuple[str, Bound]] = {}
        self._catalog_version = -1
        self._seen_version = -1
        self._swept = False
        self._told = 0
        """The plan whose queries the sinks have heard of."""
        self._collecting: tuple[LivePlan, Collector] | None = None
        self.clock = Clock()

    @property
    def last(self) -> Manifest:
        """The last commit."""
        return self.kept[-1] if self.kept else NOTHING

    # ------------------------------------------------------------------------------------------------- restarts

    def recover(self) -> None:
        """Take up where the last commit left off, and deliver what was committed but not delivered."""
        self.kept = self.history.committed()
        if self.kept:
            self._load()
            self.history.sweep(self.kept)
        self.outbox.open(self.last.batch)
        self._refuse_failed()
        for manifest in self.kept:
            if manifest.batch >= self.outbox.behind:
                self.outbox.deliver(self._committed(manifest))

    def _load(self) -> None:
        """The state as the last manifest lists it."""
        manifest = self.last
        self.live = self._plan(manifest.plan)
        self.finals = None
        self.state = State()
        for file, level in manifest.state:
            tables = conformed(segments.read(self.history.checkpoint, file), self.live)
            if tables:
                self.state.segments.append(Segment(tables, level, file))

    def _plan(self, version: int) -> LivePlan:
        """A plan by its version; the present one if it has that."""
        if self.live is not None and self.live.record.version == version:
            return self.live
        record = self.history.plan(version)
        bound, errors = self._bind(record.queries)
        if errors:
            raise WeftError("a query of the running plan cannot be bound any more:\n" + "\n".join(errors.values()))
        return live_plan(self.stream, record, bound)

    def _bind(self, texts: dict[str, str]) -> tuple[dict[str, Bound], dict[str, str]]:
        """Queries bound to the stream; each text once."""
        new = {name: text for name, text in texts.items() if self._bound.get(name, ("",))[0] != text}
        found, errors = bind_all(self.stream, new)
        self._bound |= {name: (texts[name], bound) for name, bound in found.items()}
        bound = {name: self._bound[name][1] for name in texts if name not in errors}
        return bound, {name: str(error) for name, error in errors.items()}

    # --------------------------------------------------------------------------------------------------- batches

    def process(self, rows: DataFrame, batch: int) -> None:
        """Run a micro-batch, unless it is committed already."""
        if self.last.drained:
            raise WeftError(f"{self.history.checkpoint.root} is drained: all its windows are closed; new rows need "
                            "a new checkpoint")
        if batch <= self.last.batch:
            return
        began = time.perf_counter()
        self.lease.check()
        self.clock = Clock()
        start = self._start(batch, rows, drain=False)
        self._use(start)
        self.clock.note("start")
        done = self._run(rows, start, began)
        self._commit(done)

    def drain(self) -> None:
        """Close all windows: the last step of a bounded stream."""
        if self.last.drained:
            return
        began = time.perf_counter()
        self.lease.check()
        start = self._start(self.last.batch + 1, None, drain=True)
        self._use(start)
        self._commit(self._finish(Collected(None, 0, 0, None, 0), start, began, {}))

    def _start(self, batch: int, rows: DataFrame | None, *, drain: bool) -> BatchStart:
        """What the batch starts from; as it was written down if the batch was started before."""
        known = self.history.started(batch)
        if known is not None:
            self._accept(self.history.plan(known.plan), known.batch)
            return known
        version = self._wanted_plan(rows, batch)
        start = BatchStart(batch, version, self.last.watermark, self.lease.epoch, drain)
        return self.history.start(start)

    def _use(self, start: BatchStart) -> None:
        """Have the plan of the batch, with the state under it."""
        live = self._plan(start.plan)
        if live is not self.live:
            since = next_since(self.last.since, self.live, live, self.last.largest)
            if self.kept:
                self.kept[-1] = replace(self.last, since=since)
            self.state = self.state.conformed(live)
            self.live = live
            self.finals = None

    def _run(self, rows: DataFrame, start: BatchStart, began: float) -> Done:
        """Compute a batch; queries that a value stops are left out, by name, and all others go on."""
        assert self.live is not None
        failed: dict[str, str] = {}
        while True:
            try:
                return self._finish(self._collector().collect(rows, start.watermark), start, began, failed)
            except PySparkException as error:
                found = self._culprits(rows) if data_error(error) else {}
                if not found:
                    raise
            failed |= found
            record = without(self.live.record, {*failed})
            self.live = live_plan(self.stream, record, self.live.bound)
            self.state = self.state.conformed(self.live)
            self.finals = None

    def _collector(self) -> Collector:
        """The collector of the present plan."""
        assert self.live is not None
        if self._collecting is None or self._collecting[0] is not self.live:
            self._collecting = (self.live, Collector(self.live))
        return self._collecting[1]

    def _culprits(self, rows: DataFrame) -> dict[str, str]:
        live = self.live
        assert live is not None

        def attempt(some: Sequence[BoundQuery]) -> str | None:
            others = {query.name for query in live.plan.queries} - {query.name for query in some}
            reduced = live_plan(self.stream, without(live.record, others), live.bound)
            try:
                with slices(rows, reduced.plan) as cut:
                    cut.frame.write.format("noop").mode("overwrite").save()
            except PySparkException as error:
                return data_error(error)
            return None

        return culprits(live.plan.queries, attempt)

    def _finish(self, collected: Collected, start: BatchStart, began: float, failed: Mapping[str, str]) -> Done:
        """The second half of the step, and its files."""
        live = self.live
        assert live is not None
        largest = _largest(self.last.largest, collected.largest)
        watermark = _watermark(start.watermark, largest, self.settings.lateness)
        fresh = {} if collected.slices is None else by_grouping(live, collected.slices)
        fresh = {id: open_rows(table, live, id, start.watermark) for id, table in fresh.items()}
        # a batch that fails leaves no half-fed cache behind
        finals, self.finals = self.finals or Finals(live, self.state, start.watermark), None
        finals.absorb(fresh)
        self.clock.note("slices")
        emission = live.emission(start.watermark, None if start.drain else watermark)
        attempt = f"{start.batch:010}-{self.lease.epoch}-{uuid4().hex[:12]}"
        folder = Folder(f"{self.history.checkpoint.folder.root}/{ANSWERS}/{attempt}")
        written = write_answers(self.stream.rows.sparkSession, live, finals.answers(emission), folder)
        self.clock.note("answers")
        state = State() if start.drain else self._save(self.state.after(live, fresh, watermark), attempt)
        self.clock.note("state")
        counts = Counts(
            rows=collected.rows,
            without_time=collected.without_time,
            late=collected.late,
            slices=sum(map(len, fresh.values())),
            answers=written.rows,
            state_rows=state.rows,
            state_bytes=state.bytes,
            seconds=time.perf_counter() - began,
        )
        manifest = Manifest(
            batch=start.batch,
            plan=start.plan,
            epoch=self.lease.epoch,
            watermark=watermark,
            largest=largest,
            state=[(segment.file or "", segment.level) for segment in state.segments],
            since=self._since(live, watermark, largest),
            answers={name: [f"{attempt}/{file}" for file in files] for name, files in written.files.items()},
            failed={**failed, **written.failed},
            counts=counts.__dict__,
            drained=start.drain,
        )
        return Done(manifest, state, finals)

    def _save(self, state: State, attempt: str) -> State:
        """Write the segments that are new."""
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
        """Make the batch count, tell the sinks, and throw away what is two batches old."""
        self.lease.check()
        manifest = done.manifest
        if self.history.commit(manifest):
            self.state, self.finals = done.state, done.finals
            self.kept.append(manifest)
        else:
            # the driver before this one committed the batch at the last moment: what it wrote counts
            self.kept.append(self.history.manifest(manifest.batch))
            self._load()
        self.clock.note("commit")
        self.outbox.deliver(self._committed(self.last))
        self.clock.note("deliver")
        self._refuse_failed()
        for listener in self.listeners:
            listener(self, self.last)
        while len(self.kept) > 2:
            self.history.forget(self.kept[0], self.kept[1:])
            del self.kept[0]
        if not self._swept:
            self.history.sweep(self.kept)
            self._swept = True

    def _committed(self, manifest: Manifest) -> CommittedBatch:
        """A batch as sinks take it; queries without answers are among them only if sinks have not heard of them."""
        live = self._plan(manifest.plan)
        root = f"{self.history.checkpoint.folder.root}/{ANSWERS}"
        told, self._told = self._told, manifest.plan
        names = live.record.queries if told != manifest.plan else manifest.answers
        queries = [
            _query_answers(live.bound[name], [f"{root}/{file}" for file in manifest.answers.get(name, [])])
            for name in names
        ]
        return CommittedBatch(manifest.batch, tuple(queries), manifest.watermark, self.settings.run)

    # --------------------------------------------------------------------------------------------------- queries

    def _wanted_plan(self, rows: DataFrame | None, batch: int) -> int:
        """The version of the plan for the next batch: another one if the catalog has changed."""
        version = self.catalog.version()
        unsampled = self.live is not None and not self.live.record.sampled and self.last.largest is None
        if version == self._catalog_version and self.live is not None and not unsampled:
            return self.live.record.version
        wanted = self._wanted()
        record = self._next_record(wanted, rows)
        if self.live is None or record != replace(self.live.record, version=record.version):
            record = self.history.keep_plan(record)
            self.catalog.record_plan(record.version, batch, {"queries": record.queries, "groupings": record.groupings})
        else:
            record = self.live.record
        self._accept(record, batch)
        # as it was before the entries were read: a change that came in between is seen at the next batch
        self._catalog_version = version
        return record.version

    def look(self) -> None:
        """Decide about new queries between two batches: a stream without rows must not keep people waiting."""
        version = self.catalog.version()
        if version in (self._catalog_version, self._seen_version) or self.last.drained:
            return
        wanted = self._wanted()
        following = self.last.batch + 1
        # a batch that was started before a crash is run as it was started
        following += self.history.started(following) is not None
        self.catalog.accept_all(
            [entry for entry in self.catalog.entries("pending") if wanted.entries.get(entry.name) == entry.id], following
        )
        self._seen_version = version

    def _next_record(self, wanted: Wanted, rows: DataFrame | None) -> PlanRecord:
        if self.live is None or self.last.largest is None:
            sample = rows if rows is not None and not rows.isEmpty() else None
            return first_plan(self.stream, wanted, sample, self.technique)
        tables = self.state.tables(self.live, self.last.watermark)
        return changed_plan(Past(self.live, tables, self.last.since, self.last.largest), wanted)

    def _wanted(self) -> Wanted:
        """What the catalog asks for, as far as it can be run; the rest is refused there."""
        entries = {entry.name: entry for entry in self.catalog.entries("pending", "active")}
        bound, errors = self._bind({name: entry.sql for name, entry in entries.items()})
        for name, message in errors.items():
            self.catalog.refuse(name, message, id=entries[name].id)
        good = {name: entry for name, entry in entries.items() if name in bound}
        return Wanted(
            {name: entry.sql for name, entry in good.items()}, {name: entry.id for name, entry in good.items()}, bound
        )

    def _refuse_failed(self) -> None:
        """Say in the catalog which queries a value has stopped: they are not in the next plan."""
        if self.kept:
            entries = self._plan(self.last.plan).record.entries
            for name, reason in self.last.failed.items():
                self.catalog.refuse(name, f"batch {self.last.batch}: {reason}", id=entries[name])

    def _accept(self, record: PlanRecord, batch: int) -> None:
        accepted = [entry for entry in self.catalog.entries("pending") if record.entries.get(entry.name) == entry.id]
        if accepted:
            self.catalog.accept_all(accepted, batch)


def _largest(one: int | None, other: int | None) -> int | None:
    known = [instant for instant in (one, other) if instant is not None]
    return max(known, default=None)


def _watermark(before: int | None, largest: int | None, lateness: int) -> int | None:
    """The largest event time less the allowed lateness; it never goes back."""
    if largest is None:
        return before
    return largest - lateness if before is None else max(before, largest - lateness)


def _query_answers(bound: Bound, files: list[str]) -> QueryAnswers:
    query = bound.query
    schema = to_arrow_schema(bound.schema, timezone="UTC")
    start = end = None
    keys: dict[int, str] = {}
    for output, column in zip(query.query.outputs, query.columns, strict=True):
        if output.part is Part.WINDOW:
            start, end = f"{column}.start", f"{column}.end"
        elif output.part is Part.WINDOW_START:
            start = column
        elif output.part is Part.WINDOW_END:
            end = column
        elif output.part is Part.KEY:
            keys[output.index] = column
    shown = tuple(keys[index] for index in sorted(keys)) if len(keys) == len(query.query.keys) else None
    return QueryAnswers(query.name, schema, tuple(files), (start, end), shown)
