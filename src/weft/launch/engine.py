"""The engine: streams, queries over them, and one shared pass that answers all."""

from __future__ import annotations

import difflib
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from weft.errors import QueriesError, QueryError, WeftError
from weft.job.patience import Patience
from weft.job.sink import Sink
from weft.launch.live import assembled, open_catalog
from weft.launch.reach import refuse_without_file_system
from weft.launch.session import local_session
from weft.launch.woven import weaving_on
from weft.optimize import planner
from weft.optimize.constants import Constants
from weft.optimize.entry import ModelName, check_optimizer
from weft.optimize.planner import PlanRequest
from weft.optimize.weaving import DEFAULT
from weft.plan.cut_engine import CutWish, check_cut
from weft.plan.explain import cutting, explain
from weft.plan.model import BoundQuery, Plan
from weft.plan.sheet import Sheet, sheet
from weft.query.durations import spark_duration
from weft.query.limits import Limits
from weft.query.model import Query
from weft.query.sparksql import parse_file
from weft.sources.specs import live_source
from weft.spark.answers import Answers, Staged
from weft.spark.bind import Bound, Stream, bind
from weft.spark.choosing import ChosenCut, CutChooser
from weft.spark.culprits import control_of, surviving
from weft.spark.failures import JvmGoneError, jvm_is_gone
from weft.spark.live.engine import LiveEngine, Pace
from weft.spark.live.finals_place import FinalsPlace
from weft.spark.live.next_plan import Wishes
from weft.spark.sample import RowsAtHand
from weft.spark.step import Outcome, StepResult, Totals, step
from weft.spark.workers import keep_workers, use_this_python
from weft.store.folder import Folder
from weft.store.location import Location
from weft.store.private import make_private
from weft.store.scratch import scratch

IN_A_RUN = (
    "the JVM that Spark runs in died while the queries were computed, as one does that runs out of memory\n"
    "  give it more (--memory, spark.driver.memory), or find the query that it dies of by running half of them"
)


class Engine:
    """Answers many window queries over streams in one shared pass each.

    Parameters
    ----------
    spark
        The session to run on; without one, a session on this machine is made.
    technique
        How answers are built from slices; ``auto`` chooses by the algebra of each aggregate.
    buckets
        In how many parts keys are split for the second half of the work; as many as cores by default.
    optimizer
        Which queries share slices: one of :data:`weft.optimize.registry.NAMES`.
    model
        What the optimizer goes by: ``calibrated`` predicts seconds on this Spark, the others count as the papers do.
    nodes
        Over how many nodes, or nodes of which capacities, trees of queries are spread; by default over none where keys
        are enough to divide the work by.
    limits
        What one query may cause: answers, keys, and the size of values that are kept.
    cut
        Who cuts rows into slices: ``jvm``, Spark's own aggregation, or compiled kernels in the ``workers`` or here, in
        the ``driver``'s process. A plan that kernels cannot cut is left to the JVM; :meth:`explain` tells why.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        technique: str = "auto",
        buckets: int | None = None,
        optimizer: str = DEFAULT,
        model: ModelName = "calibrated",
        nodes: int | Sequence[float] | None = None,
        limits: Limits | None = None,
        cut: CutWish = "auto",
    ) -> None:
        check_optimizer(optimizer)
        check_cut(cut)
        self.spark = spark or local_session()
        self.technique = technique
        self.cut: CutWish = cut
        self.limits = limits or Limits()
        self.weaving = weaving_on(self.spark, optimizer, model, nodes)
        cores = buckets or self.spark.sparkContext.defaultParallelism
        count = len(self.weaving.capacities) or 1
        self.buckets = count * max(cores // count, 1)
        self._streams: dict[str, Stream] = {}
        self._queries: dict[str, Bound] = {}

    def stream(self, name: str, rows: DataFrame, event_time: str) -> Engine:
        """Name a DataFrame as a stream, with the column that holds its event time."""
        if name.lower() in self._streams:
            raise WeftError(f"there is a stream {name} already")
        self._streams[name.lower()] = Stream(name, rows, event_time, self.limits)
        return self

    def sql(self, text: str) -> list[str]:
        """Register the queries of ``text``, one or many statements, and give their names: all are taken or none.

        ``CREATE OR REPLACE VIEW`` takes the place of a query that was registered before under the same name.

        Raises
        ------
        QueriesError
            With every bad query, where in its text, what is wrong and what would be right.
        """
        columns = {stream.name: tuple(stream.rows.columns) for stream in self._streams.values()}
        functions = frozenset(name for stream in self._streams.values() for name in stream.functions)
        queries = parse_file(text, columns, taken=self._queries, functions=functions if self._streams else None)
        bound, errors = self._bind(queries)
        if errors:
            raise QueriesError(errors)
        replaced = {query.name.lower() for query in queries}
        self._queries = {name: one for name, one in self._queries.items() if name.lower() not in replaced}
        self._queries |= {one.query.name: one for one in bound}
        return [query.name for query in queries]

    def _bind(self, queries: Sequence[Query]) -> tuple[list[Bound], list[QueryError]]:
        bound: list[Bound] = []
        errors: list[QueryError] = []
        by_stream: dict[str, list[Query]] = {}
        for query in queries:
            if query.stream.lower() in self._streams:
                by_stream.setdefault(query.stream.lower(), []).append(query)
            else:
                errors.append(self._unknown_stream(query))
        for name, some in by_stream.items():
            good, bad = bind(self._streams[name], some)
            bound += good
            errors += bad
        position = {query.name: number for number, query in enumerate(queries)}
        bound.sort(key=lambda one: position[one.query.name])
        errors.sort(key=lambda error: position.get(error.query or "", 0))
        return bound, errors

    def _unknown_stream(self, query: Query) -> QueryError:
        known = [stream.name for stream in self._streams.values()]
        close = difflib.get_close_matches(query.stream, known, 1)
        return QueryError(
            f"there is no stream {query.stream}",
            text=query.text,
            at=max(query.text.lower().rfind(query.stream.lower()), 0),
            length=len(query.stream),
            hint=f"did you mean {close[0]}?" if close else f"there is {', '.join(known) or 'none yet'}",
            query=query.name,
        )

    def drop(self, name: str) -> None:
        """Forget a query."""
        if name not in self._queries:
            close = difflib.get_close_matches(name, self._queries, 1)
            raise WeftError(f"there is no query {name}" + (f"; did you mean {close[0]}?" if close else ""))
        del self._queries[name]

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the registered queries."""
        return tuple(self._queries)

    def plans(self) -> list[Plan]:
        """One plan a stream that has queries."""
        return [plan for _, plan in self._planned()]

    def _planned(self) -> list[tuple[Stream, Plan]]:
        return [
            (stream, self._plan(stream, self._queries_of(stream), self._at_hand(stream)))
            for stream in self._streams.values()
            if self._queries_of(stream)
        ]

    def explain(self) -> str:
        """What the next run shares: groupings, slices, partials, and who uses them; and who cuts rows into slices."""
        told = []
        for stream, plan in self._planned():
            chosen = self._cut(plan, stream)
            told.append(explain(plan, cutting(plan, chosen.engine, chosen.left, chosen.why)))
        return "\n\n".join(told)

    def run(self, staging: str | None = None) -> Answers:
        """Answer every query in one pass over each stream.

        Parameters
        ----------
        staging
            A folder for the answers that every worker can write to; a temporary one on this machine by default.
        """
        if not self._queries:
            raise WeftError("there are no queries: register some with .sql(text)")
        refuse_without_file_system(self.spark, [Location.of(staging)] if staging else ())
        use_this_python(self.spark)
        beside = Folder(f"{tempfile.gettempdir()}/weft")
        folder = Folder(staging) if staging else make_private(scratch(beside, "staging"))
        outcomes: dict[str, Outcome] = {}
        same_as: dict[str, str] = {}
        sheets: list[Sheet] = []
        totals = Totals()
        started = time.perf_counter()
        for stream in self._streams.values():
            queries = self._queries_of(stream)
            if queries:
                plan, result = self._run_stream(stream, queries, folder)
                outcomes |= result.outcomes
                same_as |= plan.same_as
                sheets.append(sheet(plan.queries))
                totals += result.totals
        totals = replace(totals, seconds=time.perf_counter() - started)
        keep_workers(self.spark)
        staged = Staged(self.spark, folder, dict(self._queries), outcomes, same_as, sheets)
        return Answers(staged, totals, temporary=staging is None)

    def start(
        self,
        checkpoint: str,
        *,
        lateness: str = "0 seconds",
        sinks: Sequence[Sink] = (),
        trigger: str | None = None,
        available_now: bool = False,
        drain: bool = False,
        catalog: str | None = None,
        finals: FinalsPlace = "auto",
        patience: str | None = None,
        waiting_batches: int = Patience.batches,
        take_over: bool = False,
    ) -> LiveEngine:
        """Answer every query over a running stream; queries may come and go meanwhile.

        Parameters
        ----------
        checkpoint
            The folder that survives crashes. Started again with it, the engine goes on where it was, with the queries
            that it had; then there need be none here.
        lateness
            How far rows may be behind the newest one and still surely count, such as ``10 seconds``.
        sinks
            Where answers go.
        trigger
            How often a micro-batch begins, such as ``1 second``; at once if not given.
        available_now
            End when all is read that was there at the start.
        drain
            After that, close all windows: a bounded stream then gives the rows of :meth:`run`.
        catalog
            The database that holds the queries, as a URL; a file in the checkpoint if not given.
        finals
            Where slices become answers: ``driver``, in this process, or ``executors``, in as many buckets as the engine
            has; ``auto`` lets the first rows tell. A checkpoint keeps to what it began with.
        patience
            For how long a sink, the catalog or the source that is away is waited for, such as ``10 minutes``; for ever
            if not given. Answers that a sink has yet to take wait in the checkpoint.
        waiting_batches
            When so many batches wait for a sink, no further one is begun until it has taken some.
        take_over
            Take the checkpoint from a job that runs on it, which then ends; without it, a second job is refused.
        """
        if len(self._streams) != 1:
            raise WeftError(f"a live engine runs on one stream, here are {len(self._streams)}: start one for each")
        refuse_without_file_system(self.spark, [Folder(checkpoint).location])
        use_this_python(self.spark)
        (stream,) = self._streams.values()
        waiting = Patience(None if patience is None else spark_duration(patience) / 1e6, waiting_batches)
        live = assembled(
            stream,
            live_source(self.spark, stream.rows, stream.event_time),
            checkpoint,
            spark_duration(lateness),
            sinks,
            catalog=open_catalog(checkpoint, catalog, waiting),
            wishes=Wishes(self.technique, self.weaving, finals, self.buckets, self.cut),
            pace=Pace(trigger, available_now, drain),
            patience=waiting,
            take_over=take_over,
        )
        if self._queries:
            live.catalog.seed([bound.query.query for bound in self._queries.values()])
        return live.start()

    def _queries_of(self, stream: Stream) -> list[BoundQuery]:
        mine = stream.name.lower()
        return [bound.query for bound in self._queries.values() if bound.query.query.stream.lower() == mine]

    def _plan(self, stream: Stream, queries: Sequence[BoundQuery], at_hand: RowsAtHand) -> Plan:
        asked = PlanRequest(
            *(stream.name, stream.event_time, queries, self.weaving, self.technique, self.buckets),
            limits=self.limits,
            look=at_hand.look,
        )
        return planner.plan(asked).plan

    def _at_hand(self, stream: Stream) -> RowsAtHand:
        return RowsAtHand(stream.rows, lambda drafted: self._cut(drafted, stream).engine)

    def _cut(self, plan: Plan, stream: Stream) -> ChosenCut:
        constants = self.weaving.constants or Constants.load()
        here = len(self.weaving.capacities) <= 1
        return CutChooser(plan, stream.rows, self.cut, constants, here=here).chosen()

    def _run_stream(self, stream: Stream, queries: Sequence[BoundQuery], folder: Folder) -> tuple[Plan, StepResult]:
        """One step; queries that stop it are named, and it is run without them."""
        by_name = {query.name: query for query in queries}

        def compute(names: Sequence[str], into: Folder = folder) -> tuple[Plan, StepResult]:
            at_hand = self._at_hand(stream)
            plan = self._plan(stream, [by_name[name] for name in names], at_hand)
            if not names:
                return plan, StepResult({}, Totals())
            engine = "driver" if at_hand.are_here else self._cut(plan, stream).engine
            return plan, step(plan, stream.rows, into, self.buckets, engine, at_hand)

        def attempt(names: Sequence[str]) -> None:
            trial = Folder(f"{folder.root}/trial-{uuid4().hex[:8]}")
            try:
                compute(names, trial)
            finally:
                trial.remove()

        control = control_of(stream, lambda: stream.rows)
        try:
            (plan, result), failed = surviving(list(by_name), compute, attempt, control)
        except Exception as error:
            if jvm_is_gone(error):
                raise JvmGoneError(IN_A_RUN) from error
            raise
        result.outcomes |= {name: Outcome(failure=message) for name, message in failed.items()}
        return plan, result
