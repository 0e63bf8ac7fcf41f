"""One turn of the state: retained slices and a micro-batch's new ones become answers and the next state. No Spark here.

This is the second half of ``step(plan, rows, state)``; a batch run is the turn from an empty state with the watermark
at infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

from weft.spark.emission import Emission
from weft.spark.finals import Answer
from weft.spark.live.kept_finals import GroupingFinals, KeyedFinals
from weft.spark.live.planning import LivePlan
from weft.spark.live.retained import START
from weft.spark.live.state import State, Tables

SWOLLEN = 4
FEW_KEYS = 10_000
MANY_SLICES = 100_000
"""From so many new slices on, sets of keys are worked on side by side: sorts and kernels do not hold Python up."""
THREADS = 2
Found = TypeVar("Found")


class Finals:
    """The finals of a plan over its state: caches that are as new as the last batch they took in."""

    def __init__(self, live: LivePlan, state: State, watermark: int | None) -> None:
        self.live = live
        self._parts = {id: GroupingFinals(one, live.plan.technique) for id, one in live.groupings.items()}
        self._new = 0
        """Slices that were taken in since the last answers."""
        self.absorb(state.tables(live, watermark))
        self._at_first = self.keys

    def absorb(self, tables: Tables) -> None:
        """Take slices in."""
        for id, table in tables.items():
            self._new += len(table)
            self._parts[id].absorb(_named(table, self.live.groupings[id].slice_column))

    def answers(self, emission: Emission) -> Iterator[Answer]:
        """The answers that are due."""
        for answers in self._of_each(lambda part: part.answers(emission)):
            yield from answers
        self._new = 0

    def _of_each(self, work: Callable[[KeyedFinals], Iterator[Found]]) -> Iterator[Iterable[Found]]:
        """The same work on all sets of keys, in their order; side by side where there is much of it."""
        parts = [part for grouping in self._parts.values() for part in grouping.parts]
        if self._new < MANY_SLICES or len(parts) == 1:
            yield from map(work, parts)
        else:
            with ThreadPoolExecutor(THREADS, "weft-finals") as pool:
                yield from pool.map(lambda part: list(work(part)), parts)

    @property
    def keys(self) -> int:
        """How many keys they hold a number for, whether or not anything is retained of them."""
        return sum(part.keys for part in self._parts.values())

    @property
    def is_swollen(self) -> bool:
        """Whether so many keys have come since that it is time to begin again, with those that are left."""
        return self.keys > SWOLLEN * max(self._at_first, FEW_KEYS)


def _named(table: pa.Table, slice_column: str) -> pa.Table:
    return table.rename_columns([slice_column if name == START else name for name in table.column_names])
