"""One turn of the state: retained slices and a micro-batch's new ones become answers and the next state. No Spark here.

This is the second half of ``step(plan, rows, state)``; a batch run is the turn from an empty state with the watermark
at infinity.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from weft.spark.emission import Emission
from weft.spark.finals import Answer
from weft.spark.live.kept_finals import GroupingFinals
from weft.spark.live.planning import LivePlan
from weft.spark.live.retained import START
from weft.spark.live.state import State, Tables

SWOLLEN = 4
FEW_KEYS = 10_000


class Finals:
    """The finals of a plan over its state: caches that are as new as the last batch they took in."""

    def __init__(self, live: LivePlan, state: State, watermark: int | None) -> None:
        self.live = live
        self._parts = {id: GroupingFinals(one, live.plan.technique) for id, one in live.groupings.items()}
        self.absorb(state.tables(live, watermark))
        self._at_first = self.keys

    def absorb(self, tables: Tables) -> None:
        """Take slices in."""
        for id, table in tables.items():
            self._parts[id].absorb(_named(table, self.live.groupings[id].slice_column))

    def answers(self, emission: Emission) -> Iterator[Answer]:
        """The answers that are due."""
        for part in self._parts.values():
            yield from part.answers(emission)

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
