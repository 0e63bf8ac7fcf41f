"""One turn of the state: retained slices and a micro-batch's new ones become answers and the next state. No Spark here.

This is the second half of ``step(plan, rows, state)``; a batch run is the turn from an empty state with the watermark
at infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weft.algebra.measures import Array, flatten
from weft.spark.emission import Emission
from weft.spark.finals import GROUPING, Answer, grouping_finals
from weft.spark.live.planning import LivePlan
from weft.spark.live.retained import END, START, conform, merged, open_since, open_slices, slice_ends, tagged

GROWTH = 1.5
"""Retained rows are merged when they are so many times as many as after the last time."""
FEW_ROWS = 2_000
"""So few need not be merged."""


@dataclass
class State:
    """All retained slices in memory, a table a grouping."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    merged_rows: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.tables.values()))

    @property
    def bytes(self) -> int:
        """How large they are in memory."""
        return sum(table.nbytes for table in self.tables.values())

    def conformed(self, live: LivePlan) -> State:
        """The same state under another plan."""
        tables = {
            id: conform(table, live.groupings[id], live.schemas[id])
            for id, table in self.tables.items()
            if id in live.groupings
        }
        return State(tables, {id: rows for id, rows in self.merged_rows.items() if id in tables})

    def add(self, live: LivePlan, fresh: Mapping[str, pa.Table]) -> None:
        """Retain new slices too."""
        for id, table in fresh.items():
            known = self.tables.get(id)
            self.tables[id] = table if known is None else pa.concat_tables([known, table])

    def evict(self, live: LivePlan, watermark: int | None) -> None:
        """Forget what no window covers that ends after ``watermark``; merge what can be merged if it is worth it."""
        for id, table in list(self.tables.items()):
            self.tables[id] = left = open_rows(table, live, id, watermark)
            if len(left) > max(FEW_ROWS, GROWTH * self.merged_rows.get(id, 0)):
                self.tables[id] = merged(live.groupings[id], left.combine_chunks())
                self.merged_rows[id] = len(self.tables[id])
            if not len(self.tables[id]):
                del self.tables[id]
                self.merged_rows.pop(id, None)

    def merge(self, live: LivePlan) -> None:
        """Merge all that can be merged."""
        for id, table in self.tables.items():
            self.tables[id] = merged(live.groupings[id], table.combine_chunks())
            self.merged_rows[id] = len(self.tables[id])


def starts_of(table: pa.Table) -> Array:
    """When each slice begins."""
    return np.asarray(flatten(table.column(START)))


def open_rows(table: pa.Table, live: LivePlan, id: str, watermark: int | None) -> pa.Table:
    """The slices that some window covers which ends after ``watermark``."""
    chosen = open_slices(starts_of(table), live.windows[id], watermark)
    return table if chosen.all() else table.filter(pa.array(chosen))


def by_grouping(live: LivePlan, received: pa.Table) -> dict[str, pa.Table]:
    """New slices as they come from the aggregation, as a table a grouping that can be retained."""
    numbers = np.asarray(flatten(received.column(GROUPING))) if len(received) else np.empty(0, np.int64)
    found = {}
    for number, (id, grouping) in enumerate(live.groupings.items()):
        chosen = np.flatnonzero(numbers == number)
        if not len(chosen):
            continue
        names = live.names[id]
        own = received.select(list(names)).rename_columns(list(names.values()))
        own = own if len(chosen) == len(own) else own.take(pa.array(chosen))
        ends = slice_ends(starts_of(own), grouping.progressions)
        own = own.append_column(END, pa.array(ends))
        found[id] = tagged(own.select(live.schemas[id].names).cast(live.schemas[id]), grouping)
    return found


def answers(live: LivePlan, state: State, emission: Emission) -> Iterator[Answer]:
    """The answers that are due."""
    for id, table in state.tables.items():
        grouping = live.groupings[id]
        names = [grouping.slice_column if name == START else name for name in table.column_names]
        yield from grouping_finals(grouping, table.rename_columns(names), live.plan.technique, emission)


def reach(live: LivePlan, id: str, watermark: int | None, largest: int | None) -> int | None:
    """From which event time on all rows of a grouping are retained; None if from the beginning."""
    whole = {window: first for window, first in live.windows[id].items() if window.range >= window.slide}
    if not whole:
        return None if largest is None else largest + 1
    since = [open_since(window, first, watermark) for window, first in whole.items()]
    known = [instant for instant in since if instant is not None]
    return min(known) if len(known) == len(since) else None
