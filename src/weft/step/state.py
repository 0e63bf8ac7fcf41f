"""The state of a stream: retained slices, as one segment a batch, put together as they grow old.

Segments are merged like the runs of a log-structured store: ``WIDTH`` neighbours of one level become one of the next.
So a slice is written a few times in its life, the files are few, and the bytes written a batch grow with what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa

from weft.algebra.numbers import Array, flatten
from weft.step.finals import Fresh
from weft.step.retained import START, coarsened, conform, merged, open_slices
from weft.step.step_plan import StepPlan

GROUPING = "grouping"
"""The column that tells which grouping a slice belongs to."""
NODE = "node"
"""The column that tells which node a slice went to, where trees are placed on nodes."""
WIDTH = 16
Tables = Mapping[str, pa.Table]
"""Retained slices by the id of their grouping."""


class LazyTables(Mapping[str, pa.Table]):
    """Retained slices that are read when somebody asks for them.

    Examples
    --------
    >>> tables = LazyTables(lambda: {"g0": print("read") or pa.table({"start": [1]})})
    >>> len(tables["g0"]), list(tables)
    read
    (1, ['g0'])
    """

    def __init__(self, read: Callable[[], Tables]) -> None:
        self._read = read

    @cached_property
    def _tables(self) -> Tables:
        return self._read()

    def __getitem__(self, id: str) -> pa.Table:
        return self._tables[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@dataclass(frozen=True)
class Size:
    """What is known of a segment without its tables."""

    newest: Mapping[str, int] = field(default_factory=dict)
    """When the last slice of each grouping begins."""
    rows: int = 0
    by_grouping: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each grouping, in memory."""

    @classmethod
    def of(cls, tables: Tables) -> Size:
        """The size of these tables."""
        newest = {id: int(starts_of(table).max()) for id, table in tables.items()}
        return cls(newest, sum(map(len, tables.values())), {id: table.nbytes for id, table in tables.items()})

    @property
    def bytes(self) -> int:
        """All of them."""
        return sum(self.by_grouping.values())


@dataclass(frozen=True)
class Segment:
    """Slices of one or several neighbouring batches."""

    tables: Tables
    level: int = 0
    file: str | None = None
    """Where they are written; None while they are not."""
    known: Size | None = None
    """Its size where that was found before, so that tables which lie in a file need not be read for it."""

    @cached_property
    def size(self) -> Size:
        """How large it is, and how old."""
        return self.known or Size.of(self.tables)


@dataclass
class State:
    """All retained slices, oldest segment first."""

    segments: list[Segment] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(segment.size.rows for segment in self.segments)

    @property
    def bytes(self) -> int:
        """How large they are in memory."""
        return sum(segment.size.bytes for segment in self.segments)

    def bytes_by_grouping(self) -> dict[str, int]:
        """How large the slices of each grouping are in memory."""
        found: dict[str, int] = {}
        for segment in self.segments:
            for id, size in segment.size.by_grouping.items():
                found[id] = found.get(id, 0) + size
        return found

    def tables(self, plan: StepPlan, watermark: int | None) -> dict[str, pa.Table]:
        """Everything that is still needed, merged."""
        return merged_tables(self.segments, plan, watermark)

    def conformed(self, plan: StepPlan) -> State:
        """The same slices under another plan."""
        return State([Segment(conformed(one.tables, plan), one.level, one.file) for one in self.segments])

    def after(self, plan: StepPlan, fresh: Tables, watermark: int | None) -> State:
        """The next state, with what a batch brought, and without what no window needs that ends after ``watermark``."""
        oldest = oldest_needed(plan, watermark)
        segments = [segment for segment in self.segments if is_needed(segment, oldest)]
        left = {id: open_rows(table, plan, id, watermark) for id, table in fresh.items()}
        left = {id: table for id, table in left.items() if len(table)}
        if left:
            segments.append(Segment(left))
        while len(segments) >= WIDTH and len({segment.level for segment in segments[-WIDTH:]}) == 1:
            together = merged_tables(segments[-WIDTH:], plan, watermark)
            level = segments[-1].level + 1
            del segments[-WIDTH:]
            if together:
                segments.append(Segment(together, level))
        return State(segments)


def merged_tables(segments: Sequence[Segment], plan: StepPlan, watermark: int | None) -> dict[str, pa.Table]:
    """The needed slices of several segments, merged."""
    found = {}
    for id, grouping in plan.groupings.items():
        parts = [segment.tables[id] for segment in segments if id in segment.tables]
        if parts:
            left = open_rows(pa.concat_tables(parts), plan, id, watermark)
            if len(left):
                found[id] = merged(grouping, coarsened(left.combine_chunks(), plan.windows[id], watermark))
    return found


def conformed(tables: Tables, plan: StepPlan) -> dict[str, pa.Table]:
    """Tables of an earlier plan under this one."""
    return {
        id: conform(table, plan.groupings[id], plan.schemas[id]) for id, table in tables.items() if id in plan.groupings
    }


def oldest_needed(plan: StepPlan, watermark: int | None) -> dict[str, int | None]:
    """By a grouping's id: when the oldest slice begins that some window may need; None if all may be needed."""
    found: dict[str, int | None] = {}
    for id, windows in plan.windows.items():
        since = [window.open_since(first, watermark) for window, first in windows.items()]
        known = [instant for instant in since if instant is not None]
        found[id] = min(known) if len(known) == len(since) else None
    return found


def is_needed(segment: Segment, oldest: Mapping[str, int | None]) -> bool:
    """Whether some window may need a slice of the segment."""
    for id, newest in segment.size.newest.items():
        if id in oldest:
            since = oldest[id]
            if since is None or newest >= since:
                return True
    return False


def starts_of(table: pa.Table) -> Array:
    """When each slice begins."""
    return np.asarray(flatten(table.column(START)))


def open_rows(table: pa.Table, plan: StepPlan, id: str, watermark: int | None) -> pa.Table:
    """The slices that some window covers which ends after ``watermark``."""
    # slices are many, but begin at few instants
    codes, instants = pd.factorize(starts_of(table))
    chosen = open_slices(instants, plan.windows[id], watermark)
    return table if chosen.all() else table.filter(pa.array(chosen[codes]))


def fresh_of(plan: StepPlan, tables: Tables) -> dict[str, Fresh]:
    """Slices that are or will be retained, as finals take them in."""
    return {
        id: Fresh(
            table.rename_columns(
                [plan.groupings[id].slice_column if name == START else name for name in table.column_names]
            )
        )
        for id, table in tables.items()
    }


def reach(plan: StepPlan, id: str, watermark: int | None, largest: int | None) -> int | None:
    """From which event time on all rows of a grouping are retained; None if from the beginning."""
    whole = {window: first for window, first in plan.windows[id].items() if not window.has_gaps}
    if not whole:
        return None if largest is None else largest + 1
    since = [window.open_since(first, watermark) for window, first in whole.items()]
    known = [instant for instant in since if instant is not None]
    return min(known) if len(known) == len(since) else None
