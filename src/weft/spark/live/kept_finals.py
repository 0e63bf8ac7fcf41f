"""Finals that remember: panes of earlier batches are kept, so that a batch costs what is new in it and what is due.

Everything here is a cache over retained slices: thrown away and made again from them after a restart, or when the plan
changes. The answers themselves are made by the same functions as those of a batch run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from weft.algebra.measures import Array, Decoded, flatten
from weft.plan.model import BoundQuery, Grouping, Partial, Predicate, key_column
from weft.query.model import Expression, Window
from weft.spark.emission import Emission
from weft.spark.finals import Answer, Shared, failed, slicing_of, too_many_keys
from weft.spark.live.kept_panes import KeptPanes, reduce
from weft.spark.live.key_numbers import KeyNumbers
from weft.spark.panes import Measured, Panes, Passing, Slices, extent

LAG = 8
"""Panes that no window needs yet take new slices in after so many batches at the latest."""
MANY = 50_000
"""So many slices are not left for later: who comes for them later has to decode them again."""


class GroupingFinals:
    """The finals of one grouping over a running stream."""

    def __init__(self, grouping: Grouping, technique: str) -> None:
        by_keys: dict[frozenset[Expression], list[BoundQuery]] = {}
        for query in grouping.queries:
            by_keys.setdefault(frozenset(query.query.keys), []).append(query)
        self.parts = [
            KeyedFinals(grouping, sorted(keys, key=lambda key: key.canonical), queries, technique)
            for keys, queries in by_keys.items()
        ]

    def absorb(self, table: pa.Table) -> None:
        """Take new slices in."""
        for part in self.parts:
            part.absorb(table)

    def answers(self, emission: Emission) -> Iterator[Answer]:
        """The answers that are due."""
        for part in self.parts:
            yield from part.answers(emission)

    @property
    def keys(self) -> int:
        """How many keys have a number."""
        return sum(part.keys for part in self.parts)


@dataclass
class Kept:
    """The panes of one slicing and predicate, and up to which batch they have taken slices in."""

    panes: KeptPanes
    queries: list[BoundQuery]
    seen: int = 0

    def least(self, emission: Emission) -> int:
        """The first pane that some window needs which is not answered yet."""
        numbers = [emission.of(query)[0] for query in self.queries]
        step, _ = extent(self.queries[0].query.window)
        return min(numbers) * step


@dataclass(frozen=True)
class Fresh:
    """The slices of a batch."""

    table: pa.Table
    keys: Array


@dataclass
class KeyedFinals:
    """The finals of queries over the same keys."""

    grouping: Grouping
    by: Sequence[Expression]
    queries: Sequence[BoundQuery]
    technique: str
    _log: list[Fresh] = field(default_factory=list)
    _dropped: int = 0
    """How many batches are gone from the log, as all have taken them in."""

    def __post_init__(self) -> None:
        self._numbers = KeyNumbers(self.by)
        self._kept: dict[tuple[Predicate, Window], Kept] = {}
        for query in self.queries:
            place = (query.predicate, slicing_of(query.query.window))
            self._kept.setdefault(place, Kept(KeptPanes(()), [])).queries.append(query)
        for kept in self._kept.values():
            kept.panes = KeptPanes(
                (partial, query.predicate_of(call))
                for query in kept.queries
                for call in query.calls
                for partial in call.partials
            )
        self._spans: dict[int, Slices] = {}
        self._shared: dict[tuple[int, Predicate], Shared | None] = {}

    @property
    def keys(self) -> int:
        """How many keys have a number."""
        return self._numbers.count

    @property
    def _batches(self) -> int:
        return self._dropped + len(self._log)

    def absorb(self, table: pa.Table) -> None:
        """Take new slices in; who needs them comes for them."""
        if len(table):
            columns = [flatten(table.column(key_column(key))) for key in self.by]
            self._log.append(Fresh(table, self._numbers.number(columns, len(table))))
            self._spans, self._shared = {}, {}

    def answers(self, emission: Emission) -> Iterator[Answer]:
        """The answers that are due."""
        by_predicate: dict[Predicate, list[tuple[Kept, list[BoundQuery]]]] = {}
        for (predicate, _), kept in self._kept.items():
            due = [query for query in kept.queries if _is_due(emission, query)]
            if due:
                self._catch_up(predicate, kept, emission)
                by_predicate.setdefault(predicate, []).append((kept, due))
            elif self._batches - kept.seen > LAG or self._slices_since(kept.seen) > MANY:
                self._catch_up(predicate, kept, emission)
        beyond = self._beyond(emission)
        if beyond is not None:
            yield from (failed(query, beyond) for query in self.queries)
            return
        values = self._numbers.values
        for some in by_predicate.values():
            for kept, due in some:
                shared = KeptShared(values, kept.panes, self.technique, emission)
                for query in sorted(due, key=lambda query: query.query.window.range):
                    answer = shared.answer(query)
                    if len(answer.windows):
                        yield answer
        self._trim()

    def _beyond(self, emission: Emission) -> str | None:
        """What to say if more keys have panes than may; keys that are gone still have their numbers."""
        if too_many_keys(self.keys, emission) is None:
            return None
        held = max((len(np.unique(kept.panes.keys)) for kept in self._kept.values()), default=0)
        return too_many_keys(held, emission)

    def _slices_since(self, seen: int) -> int:
        return sum(len(one.keys) for one in self._log[seen - self._dropped :])

    def _catch_up(self, predicate: Predicate, kept: Kept, emission: Emission) -> None:
        if kept.seen == self._batches:
            return
        shared = self._since(kept.seen, predicate)
        if shared is not None:
            panes = shared.panes(kept.queries[0].query.window)
            assert isinstance(panes, Panes)
            kept.panes.absorb(panes, self._span(kept.seen), kept.least(emission))
        kept.seen = self._batches

    def _since(self, seen: int, predicate: Predicate) -> Shared | None:
        """What passes of all slices since a batch, for panes of any slicing; None if nothing does."""
        if (seen, predicate) not in self._shared:
            slices = self._span(seen)
            passing = slices if predicate.everything else Passing.of(slices, predicate)
            self._shared[seen, predicate] = (
                Shared({}, Panes.whole(passing), self.technique) if len(passing.keys) else None
            )
        return self._shared[seen, predicate]

    def _span(self, seen: int) -> Slices:
        """All slices since a batch, by key and time."""
        if seen not in self._spans:
            fresh = self._log[seen - self._dropped :]
            # not copied together: only the columns that somebody comes for are
            table = pa.concat_tables([one.table for one in fresh])
            self._spans[seen] = Shards.of(self.grouping, table, np.concatenate([one.keys for one in fresh]))
        return self._spans[seen]

    def _trim(self) -> None:
        done = min(kept.seen for kept in self._kept.values()) - self._dropped
        del self._log[:done]
        self._dropped += done


@dataclass
class Shards(Slices):
    """Slices merged as far as predicates allow: one a key, start and signature, in this order.

    The slices of a batch have all keys of their grouping; queries by some of the keys need far fewer.
    """

    fine: Slices | None = None
    pointers: Array | None = None

    @classmethod
    def of(cls, grouping: Grouping, table: pa.Table, numbers: Array) -> Shards:  # type: ignore[override]
        """Merge slices whose keys are numbered already."""
        starts = np.asarray(flatten(table.column(grouping.slice_column)))
        marks = [np.asarray(flatten(table.column(name))) for name, _ in grouping.signatures]
        order, firsts = shard_order([numbers, starts, *marks])
        fine = Slices(grouping, table, {}, numbers[order], starts[order], order)
        pointers = np.append(firsts, len(order))
        return cls(
            grouping, table, {}, fine.keys[firsts], fine.starts[firsts], order[firsts], fine=fine, pointers=pointers
        )

    def decoded(self, partial: Partial, predicate: Predicate) -> Decoded:
        """The partial's columns, whether or not the predicate's bit is set."""
        assert self.fine is not None and self.pointers is not None
        names = self._names(partial, predicate)
        if names not in self._decoded:
            self._decoded[names] = reduce(self.fine.decoded(partial, predicate), self.pointers)
        return self._decoded[names]

    def columns(self, partial: Partial, predicate: Predicate) -> list[pa.Array]:
        """The columns that were merged: numbers of rows are numbers of these."""
        assert self.fine is not None
        return self.fine.columns(partial, predicate)

    def passes(self, predicate: Predicate) -> Array:
        """Which slices hold rows that satisfy ``predicate``."""
        assert self.fine is not None and self.pointers is not None
        if not self.grouping.conditional:
            return super().passes(predicate)
        held: Array = np.logical_or.reduceat(self.fine.passes(predicate), self.pointers[:-1])
        return held


def shard_order(columns: Sequence[Array]) -> tuple[Array, Array]:
    """The order by some columns, the first counting most, and where in that order something new begins.

    Examples
    --------
    >>> [found.tolist() for found in shard_order([np.array([1, 0, 1]), np.array([5, 9, 5])])]
    [[1, 0, 2], [0, 1]]
    """
    codes = np.zeros(len(columns[0]), np.int64)
    room = 1
    for column in columns:
        numbers, distinct = pd.factorize(column, sort=True)
        room *= len(distinct)
        if room >= 2**62:
            order = np.lexsort(tuple(reversed(columns)))
            break
        codes = codes * len(distinct) + numbers
    else:
        order = np.argsort(codes, kind="stable")
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(new)


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
