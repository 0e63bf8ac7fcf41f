"""Slices to answers, for all queries of a plan: made at once from all slices there are, or kept from batch to batch.

A batch run has all slices at once and keeps nothing. On a stream the panes of earlier batches are kept, so that a batch
costs what is new in it and what is due. Everything that is kept is a cache over retained slices: thrown away and made
again from them after a restart, or when the plan changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from weft.algebra.numbers import Array, DataError
from weft.plan.forest import Tree
from weft.plan.model import BoundQuery, Grouping, Predicate, key_column
from weft.query.model import Expression
from weft.slicing.progression import Progression
from weft.slicing.window import Window
from weft.step.answers import Answer, Shared
from weft.step.emission import Emission
from weft.step.kept_panes import KeptPanes
from weft.step.key_numbers import KeyNumbers
from weft.step.panes import Measured, Panes
from weft.step.side_by_side import side_by_side
from weft.step.slices import Passing, Shards, Slices, taken
from weft.step.step_plan import StepPlan

LAG = 8
"""Panes that no window needs yet take new slices in after so many batches at the latest."""
MANY = 50_000
"""So many slices are not left for later: who comes for them later has to decode them again."""
SWOLLEN = 4
FEW_KEYS = 10_000
MANY_SLICES = 100_000
"""From so many new slices on, sets of keys are worked on side by side: sorts and kernels do not hold Python up."""
THREADS = 2
Found = TypeVar("Found")
Cuts = tuple[Progression, ...]


@dataclass(frozen=True)
class Fresh:
    """New slices of one grouping: some rows of a table, or all."""

    table: pa.Table
    rows: Array | None = None
    node: int | None = None
    """The node that they went to, where each tree of the grouping is answered on its own."""

    def __len__(self) -> int:
        return len(self.table) if self.rows is None else len(self.rows)

    @property
    def places(self) -> Array:
        """Where in the table they stand."""
        return np.arange(len(self.table)) if self.rows is None else self.rows


class Finals:
    """The finals of a plan: as new as the last slices that they took in.

    Parameters
    ----------
    keeps
        Whether more slices will come: then panes are kept for them.
    threads
        On how many sets of keys and predicates work is done at the same time, where nothing is kept: each more costs
        the memory of one more.
    """

    def __init__(self, plan: StepPlan, *, keeps: bool, threads: int = 1) -> None:
        self.plan = plan
        self._keeps = keeps
        self._threads = threads
        self._parts = {
            id: [
                KeyedFinals(grouping, keys, queries, plan.plan.technique, keeps)
                for keys, queries in by_keys(grouping.queries)
            ]
            for id, grouping in plan.groupings.items()
        }
        self._waiting: dict[str, list[Fresh]] = {}
        """Slices, where nothing is kept: a set of keys takes them in when it is its turn, and lets go of them after."""
        self._new = 0
        """Slices that were taken in since the last answers."""
        self._at_first = 0

    @classmethod
    def over(cls, plan: StepPlan, retained: Mapping[str, Fresh]) -> Finals:
        """Finals that are kept, with the slices of earlier batches in them."""
        finals = cls(plan, keeps=True)
        finals.absorb(retained)
        finals._at_first = finals.keys
        return finals

    def absorb(self, fresh: Mapping[str, Fresh]) -> None:
        """Take slices in."""
        for id, some in fresh.items():
            if not self._keeps:
                self._waiting.setdefault(id, []).append(some)
                continue
            self._new += len(some)
            for part in self._parts[id]:
                part.absorb(some)

    def answers(self, emission: Emission) -> Iterator[Answer]:
        """The answers that are due; from panes that are kept, those first whose select lists Spark has to compute."""
        if not self._keeps:
            yield from self._once(emission) if self._threads == 1 else self._beside(emission)
            return
        for work in (
            partial(KeyedFinals.caught_up, emission=emission),
            partial(KeyedFinals.due_answers, emission=emission, direct=False),
            partial(KeyedFinals.due_answers, emission=emission, direct=True),
        ):
            for some in self._of_each(work):
                yield from some
        self._new = 0

    def _once(self, emission: Emission) -> Iterator[Answer]:
        """All answers, one set of keys after the other: what one has put in order is gone before the next begins."""
        for id, parts in self._parts.items():
            waiting = self._waiting.pop(id, [])
            for part in parts:
                for some in part.all_answers(waiting, emission):
                    yield from some
                part.let_go()

    def _beside(self, emission: Emission) -> Iterator[Answer]:
        """All answers, of several sets of keys and predicates at the same time: what takes longest first."""
        parts = [(part, self._waiting.get(id, [])) for id, some in self._parts.items() for part in some]
        with ThreadPoolExecutor(self._threads, "weft-finals") as pool:
            ordered = list(pool.map(lambda some: some[0].all_answers(some[1], emission), parts))
        self._waiting.clear()
        shares = sorted((share for some in ordered for share in some), key=len, reverse=True)
        del parts, ordered
        yield from side_by_side(shares, self._threads)

    def _of_each(self, work: Callable[[KeyedFinals], Iterator[Found]]) -> Iterator[Iterable[Found]]:
        """The same work on all sets of keys, in their order; side by side where there is much of it."""
        parts = [part for some in self._parts.values() for part in some]
        if self._new < MANY_SLICES or len(parts) == 1:
            yield from map(work, parts)
        else:
            with ThreadPoolExecutor(THREADS, "weft-finals") as pool:
                yield from pool.map(lambda part: list(work(part)), parts)

    @property
    def keys(self) -> int:
        """How many keys they hold a number for, whether or not anything is retained of them."""
        return sum(part.keys for some in self._parts.values() for part in some)

    @property
    def is_swollen(self) -> bool:
        """Whether so many keys have come since that it is time to begin again, with those that are left."""
        return self.keys > SWOLLEN * max(self._at_first, FEW_KEYS)


def by_keys(queries: Iterable[BoundQuery]) -> list[tuple[list[Expression], list[BoundQuery]]]:
    """Queries that group by the same keys, whatever order they name them in."""
    found: dict[frozenset[Expression], list[BoundQuery]] = {}
    for query in queries:
        found.setdefault(frozenset(query.query.keys), []).append(query)
    return [(sorted(keys, key=lambda key: key.canonical), some) for keys, some in found.items()]


@dataclass
class Kept:
    """The panes of one slicing and predicate, and up to which batch they have taken slices in."""

    panes: KeptPanes
    queries: list[BoundQuery]
    seen: int = 0
    error: Exception | None = None
    """What went wrong when slices were taken in: its queries are not answered any more."""

    def least(self, emission: Emission) -> int:
        """The first pane that some window needs which is not answered yet."""
        numbers = [emission.of(query)[0] for query in self.queries]
        step, _ = self.queries[0].window.extent
        return min(numbers) * step


@dataclass(frozen=True)
class Share:
    """Answers of queries by the same keys and with the same WHERE, which share most; to be read once."""

    queries: Sequence[BoundQuery]
    answers: Iterable[Answer]

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)


@dataclass
class KeyedFinals:
    """The finals of queries over the same keys."""

    grouping: Grouping
    by: Sequence[Expression]
    queries: Sequence[BoundQuery]
    technique: str
    keeps: bool
    _log: list[tuple[Fresh, Array]] = field(default_factory=list)
    """Slices of batches, with the numbers of their keys."""
    _dropped: int = 0
    """How many batches are gone from the log, as all have taken them in."""

    def __post_init__(self) -> None:
        self._numbers = KeyNumbers(self.by)
        self._kept = self._places() if self.keeps else {}
        self._spans: dict[int, Slices] = {}
        self._whole: dict[tuple[int, Predicate], Panes | None] = {}
        self._shared: dict[tuple[int, Predicate, Cuts], Shared | None] = {}
        self._error: Exception | None = None
        """What went wrong when keys were numbered or counted."""
        self._due: list[tuple[Kept, list[BoundQuery]]] = []
        """Panes that have taken everything in, with the queries that are to be answered from them."""

    def _places(self) -> dict[tuple[Predicate, Window], Kept]:
        """Which panes are kept, and for which queries."""
        places: dict[tuple[Predicate, Window], list[BoundQuery]] = {}
        for query in self.queries:
            places.setdefault((query.predicate, query.window.slicing), []).append(query)
        return {place: Kept(KeptPanes.of(queries), queries) for place, queries in places.items()}

    @property
    def keys(self) -> int:
        """How many keys have a number."""
        return self._numbers.count

    @property
    def _batches(self) -> int:
        return self._dropped + len(self._log)

    def absorb(self, fresh: Fresh) -> None:
        """Take new slices in; who needs them comes for them."""
        try:
            self._absorb(fresh)
        except Exception as error:
            self._error = error

    def _absorb(self, fresh: Fresh) -> None:
        if len(fresh):
            columns = [taken(fresh.table, key_column(key), fresh.places) for key in self.by]
            self._log.append((fresh, self._numbers.number(columns, len(fresh))))
            self._spans, self._whole, self._shared = {}, {}, {}

    def all_answers(self, slices: Iterable[Fresh], emission: Emission) -> list[Share]:
        """The answers from all slices there are, and the failures of queries that have none."""
        for fresh in slices:
            self.absorb(fresh)
        try:
            if self._error is not None:
                raise self._error
            return list(self._from_all(emission))
        except Exception as error:
            return [Share(self.queries, [Answer.failed(query, error) for query in self.queries])]

    def let_go(self) -> None:
        """Forget all slices."""
        self._log, self._spans, self._numbers = [], {}, KeyNumbers(self.by)

    def caught_up(self, emission: Emission) -> Iterator[Answer]:
        """No answers yet: panes that are kept take new slices in when they are due, or now and then."""
        try:
            self._due = [] if self._error is not None else list(self._taken_in(emission))
        except Exception as error:
            self._error = error
        return iter(())

    def due_answers(self, emission: Emission, *, direct: bool) -> Iterator[Answer]:
        """The answers from panes that are kept, of queries whose rows are answers as they are or of all others."""
        own = [query for query in self.queries if query.direct is direct]
        if self._error is not None:
            return (Answer.failed(query, self._error) for query in own)
        return guarded(own, self._from_kept(emission, direct))

    def _from_all(self, emission: Emission) -> Iterator[Share]:
        """Answers from all slices there are, which are in order then."""
        if not self._log:
            return
        self._check_keys(self.keys, emission)
        here = self._log[0][0].node
        due = [query for query in self.queries if _is_due(emission, query) and self._is_here(query, here)]
        if due:
            self._span(0)
        for predicate, trees in self._woven(due).items():
            some = [query for queries in trees.values() for query in queries]
            yield Share(some, guarded(some, self._from_passing(predicate, trees, emission)))

    def _from_passing(
        self, predicate: Predicate, trees: Mapping[Cuts, Sequence[BoundQuery]], emission: Emission
    ) -> Iterator[Answer]:
        """Answers of queries with the same WHERE."""
        whole = self._passing(self._span(0), predicate)
        if whole is None:
            return
        for cuts, queries in trees.items():
            finest = Panes.cut(whole, cuts) if cuts else whole
            yield from _answers(Shared(self._numbers.values, finest, self.technique, emission), queries)

    @staticmethod
    def _check_keys(count: int, emission: Emission) -> None:
        """Refuse all queries by more keys than may be."""
        beyond = emission.limits.beyond("keys", count, f"it has {count:,} groups")
        if beyond is not None:
            raise DataError(beyond)

    def _is_here(self, query: BoundQuery, node: int | None) -> bool:
        return node is None or self.grouping.tree_of[query.name].node == node

    def _woven(self, queries: Iterable[BoundQuery]) -> dict[Predicate, dict[Cuts, list[BoundQuery]]]:
        """Queries by their predicate and by the slices of the tree that they are woven into."""
        found: dict[Predicate, dict[Cuts, list[BoundQuery]]] = {}
        for query in queries:
            found.setdefault(query.predicate, {}).setdefault(self._cuts(query), []).append(query)
        return found

    def _cuts(self, query: BoundQuery) -> Cuts:
        """Where the query's tree cuts; nowhere in particular if its slices are those of the grouping."""
        tree: Tree | None = self.grouping.tree_of.get(query.name)
        return () if tree is None or tree.progressions == self.grouping.progressions else tree.progressions

    def _taken_in(self, emission: Emission) -> Iterator[tuple[Kept, list[BoundQuery]]]:
        """The panes that are due, with all new slices in them."""
        for (predicate, _), kept in self._kept.items():
            queries = [query for query in kept.queries if _is_due(emission, query)]
            if queries or self._batches - kept.seen > LAG or self._slices_since(kept.seen) > MANY:
                self._catch_up(predicate, kept, emission)
            if queries and kept.error is None:
                yield kept, queries
        if emission.limits.beyond("keys", self.keys, "") is not None:
            # keys that are gone still have their numbers
            held = max((len(np.unique(kept.panes.keys)) for kept in self._kept.values()), default=0)
            self._check_keys(held, emission)
        self._trim()

    def _from_kept(self, emission: Emission, direct: bool) -> Iterator[Answer]:
        for kept, queries in self._due:
            own = [query for query in queries if query.direct is direct]
            if own:
                yield from _answers(KeptShared(self._numbers.values, kept.panes, self.technique, emission), own)
        for kept in self._kept.values():
            if kept.error is not None:
                yield from (Answer.failed(query, kept.error) for query in kept.queries if query.direct is direct)

    def _slices_since(self, seen: int) -> int:
        return sum(len(keys) for _, keys in self._log[seen - self._dropped :])

    def _catch_up(self, predicate: Predicate, kept: Kept, emission: Emission) -> None:
        if kept.seen == self._batches or kept.error is not None:
            return
        query = kept.queries[0]
        try:
            shared = self._since(kept.seen, predicate, self._cuts(query))
            if shared is not None:
                panes = shared.panes(query.window)
                assert isinstance(panes, Panes)
                kept.panes.absorb(panes, self._span(kept.seen), kept.least(emission))
        except Exception as error:
            kept.error = error
        kept.seen = self._batches

    def _since(self, seen: int, predicate: Predicate, cuts: Cuts) -> Shared | None:
        """What passes of all slices since a batch, for panes of any slicing of a tree; None if nothing does."""
        place = (seen, predicate, cuts)
        if place not in self._shared:
            if (seen, predicate) not in self._whole:
                self._whole[seen, predicate] = self._passing(self._span(seen), predicate)
            whole = self._whole[seen, predicate]
            finest = whole if whole is None or not cuts else Panes.cut(whole, cuts)
            self._shared[place] = None if finest is None else Shared({}, finest, self.technique)
        return self._shared[place]

    @staticmethod
    def _passing(slices: Slices, predicate: Predicate) -> Panes | None:
        """The slices that hold rows which satisfy a predicate, each with its shards put together; None if none does."""
        passing = slices if predicate.everything else Passing.of(slices, predicate)
        return Panes.whole(passing) if len(passing.keys) else None

    def _span(self, seen: int) -> Slices:
        """All slices since a batch, by key and time."""
        if seen not in self._spans:
            batches = self._log[seen - self._dropped :]
            offsets = np.cumsum([0, *(len(fresh.table) for fresh, _ in batches)])
            rows = [fresh.places + offset for (fresh, _), offset in zip(batches, offsets[:-1], strict=True)]
            # not copied together: only the columns that somebody comes for are
            table = pa.concat_tables([fresh.table for fresh, _ in batches])
            numbers = np.concatenate([keys for _, keys in batches])
            kind = Shards if self.keeps else Slices
            self._spans[seen] = kind.of(self.grouping, table, numbers, np.concatenate(rows))
        return self._spans[seen]

    def _trim(self) -> None:
        done = min(kept.seen for kept in self._kept.values()) - self._dropped
        del self._log[:done]
        self._dropped += done


def _answers(shared: Shared, queries: Iterable[BoundQuery]) -> Iterator[Answer]:
    """The answers of queries that share panes: finer slicings first, as coarser ones are made from theirs."""
    for query in sorted(queries, key=lambda query: query.window.fineness):
        answer = shared.answer(query)
        if answer.failure or answer.windows is not None:
            yield answer


def guarded(queries: Iterable[BoundQuery], answers: Iterator[Answer]) -> Iterator[Answer]:
    """The answers of some queries; what goes wrong in work that they share fails those that have none yet."""
    answered = set()
    try:
        for answer in answers:
            answered.add(answer.query.name)
            yield answer
    except Exception as error:
        yield from (Answer.failed(query, error) for query in queries if query.name not in answered)


@dataclass
class KeptShared(Shared):
    """What the due queries of one slicing share: panes that are there already."""

    def panes(self, window: Window) -> Measured:
        """The kept panes."""
        assert isinstance(self.passing, KeptPanes)
        return self.passing


def _is_due(emission: Emission, query: BoundQuery) -> bool:
    least, most = emission.of(query)
    return least <= most
