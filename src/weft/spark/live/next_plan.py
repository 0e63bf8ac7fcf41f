"""Which plan the next batch runs under: the present one, or another if the catalog has changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from weft.catalog.database import CatalogError
from weft.errors import UseError
from weft.job.ledger import Ledger
from weft.job.past import Past
from weft.job.query_registry import QueryRegistry, Wanted
from weft.job.trials import PROOF, Trial, Trials
from weft.optimize.planner import PlanRequest, plan
from weft.optimize.weaving import Weaving
from weft.plan.cut_engine import CutWish, check_cut
from weft.plan.record import UNKEPT, PlanRecord
from weft.slicing.edge_rate import MICROSECONDS
from weft.spark.bind import Bound, Stream
from weft.spark.live.finals_place import FinalsPlace, check_place, in_buckets, is_for_executors
from weft.spark.live.planning import first_plan, recorded
from weft.spark.live.runner import Runner

LOG = logging.getLogger("weft.stream")


@dataclass(frozen=True)
class Wishes:
    """How the user wants a stream to be planned."""

    technique: str = "auto"
    weaving: Weaving = field(default_factory=Weaving)
    finals: FinalsPlace = "auto"
    buckets: int | None = None
    """In how many parts keys are split, where finals run on executors; as many as cores if not given."""
    cut: CutWish = "auto"
    """Who cuts rows into slices."""

    def __post_init__(self) -> None:
        check_place(self.finals)
        check_cut(self.cut)
        if len(self.weaving.capacities) > 1 and self.finals == "driver":
            raise UseError("nodes are executors: leave finals at auto or executors, or leave nodes out")
        if self.cut == "driver" and (len(self.weaving.capacities) > 1 or self.finals == "executors"):
            raise UseError("rows that are cut in the driver's process are answered there: say cut jvm or workers")

    @property
    def place(self) -> FinalsPlace:
        """Where finals run; not on executors by themselves if slices are made in the driver's process."""
        return "driver" if self.cut == "driver" else self.finals


@dataclass(frozen=True)
class NextPlan:
    """Plans from what is asked for, what is kept and what the next rows show."""

    stream: Stream
    wishes: Wishes
    registry: QueryRegistry[Bound]
    ledger: Ledger
    runner: Runner
    trials: Trials

    def version(self, rows: DataFrame | None, batch: int) -> int:
        """The version of the plan for the next batch."""
        live = self.runner.live
        try:
            version = self.registry.changed
            if live is not None and version is None and (live.record.sampled or self.ledger.last.largest is not None):
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
        live = self.runner.live
        if live is not None and record == replace(live.record, version=record.version):
            record = live.record
        if record.version == UNKEPT:
            record = self.ledger.history.keep_plan(record)
            self.registry.describe(record, batch, self.ledger.last.watermark)
        return record

    def _harmless(self, rows: DataFrame | None, batch: int) -> DataFrame | None:
        """The rows to look at for a better plan; none if processes died of that."""
        if rows is None:
            return None
        self.trials.begin(Trial(batch, []))
        known = self.trials.last(batch)
        return rows if known is None or known.tries <= PROOF else None

    def _next_record(self, wanted: Wanted[Bound], rows: DataFrame | None) -> PlanRecord:
        live, last = self.runner.live, self.ledger.last
        if live is None or last.largest is None:
            good = None if rows is None else self.runner.readable(rows)
            sample = good if good is not None and not good.isEmpty() else None
            return self._placed(first_plan(self.stream, self._asked(wanted), sample), wanted, sample)
        # slices are merged only if a new query might be answered from them
        tables = self.runner.tables(last.watermark)
        past = Past(live, live.record, tables, last.since, last.largest, self._rate)
        record = recorded(plan(self._asked(wanted), past))
        if live.record.groupings or self.runner.state.segments:
            return in_buckets(record, record.buckets, wanted.bound)
        return self._placed(replace(record, buckets=0), wanted, None if rows is None else self.runner.readable(rows))

    def _asked(self, wanted: Wanted[Bound]) -> PlanRequest:
        """What the planner is asked: the catalog's queries, woven as the user wishes."""
        queries = [bound.query for bound in wanted.bound.values()]
        wishes = self.wishes
        return PlanRequest(
            *(self.stream.name, self.stream.event_time, queries, wishes.weaving, wishes.technique),
            limits=self.stream.limits,
            keeps=True,
            texts=wanted.texts,
            entries=wanted.entries,
        )

    def _placed(self, record: PlanRecord, wanted: Wanted[Bound], rows: DataFrame | None) -> PlanRecord:
        """A plan for which there is no state yet, with where its finals run: from then on that stays so."""
        on_nodes = len(self.wishes.weaving.capacities) > 1
        if on_nodes or is_for_executors(self.wishes.place, self.stream, record, wanted.bound, rows):
            buckets = self.wishes.buckets or self.stream.session.sparkContext.defaultParallelism
            LOG.info("slices become answers on the executors, in %d buckets", buckets)
            return in_buckets(record, buckets, wanted.bound)
        return record

    @property
    def _rate(self) -> float | None:
        """Rows a second of event time in the last batch; None if it does not tell."""
        kept = self.ledger.kept
        before, after = (kept[-2].largest, kept[-1].largest) if len(kept) > 1 else (None, None)
        if before is None or after is None or after <= before:
            return None
        return float(kept[-1].counts["rows"] / ((after - before) / MICROSECONDS))
