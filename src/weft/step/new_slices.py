"""Slices as they come from the cut: new in this turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
import pyarrow as pa

from weft.algebra.numbers import flatten
from weft.step.finals import Fresh
from weft.step.retained import END, START, slice_ends, tagged
from weft.step.state import GROUPING, NODE, Tables, fresh_of, open_rows, starts_of
from weft.step.step_plan import StepPlan


@dataclass(frozen=True)
class NewSlices:
    """New slices by the ids of their groupings: as finals take them in and, where slices are retained, as they are."""

    fresh: Mapping[str, Fresh] = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)

    @classmethod
    def of(cls, plan: StepPlan, received: pa.Table | None, watermark: int | None = None) -> Self:
        """What the cut gave; where slices are retained, without those that no window needs any more."""
        if received is None or not len(received):
            return cls()
        if not plan.retains:
            return cls(unretained(plan, received))
        return cls.retained(plan, by_grouping(plan, received), watermark)

    @classmethod
    def of_kernels(cls, plan: StepPlan, tables: Mapping[int, pa.Table], watermark: int | None = None) -> Self:
        """What kernels cut in this process: tables by the numbers of their groupings, with their own columns."""
        own = {plan.ids[number]: table for number, table in tables.items()}
        if not plan.retains:
            return cls({id: Fresh(table) for id, table in own.items()})
        return cls.retained(plan, {id: retainable(plan, id, table) for id, table in own.items()}, watermark)

    @classmethod
    def retained(cls, plan: StepPlan, tables: Tables, watermark: int | None) -> Self:
        """Slices that are retained, without those that no window needs any more."""
        left = {id: open_rows(table, plan, id, watermark) for id, table in tables.items()}
        return cls(fresh_of(plan, left), left)

    def __len__(self) -> int:
        return sum(map(len, self.fresh.values()))


def by_grouping(plan: StepPlan, received: pa.Table) -> dict[str, pa.Table]:
    """Slices as a table a grouping that can be retained."""
    numbers = np.asarray(flatten(received.column(GROUPING)))
    found = {}
    for number, id in enumerate(plan.groupings):
        chosen = np.flatnonzero(numbers == number)
        if len(chosen):
            own = own_columns(plan, id, received)
            found[id] = retainable(plan, id, own if len(chosen) == len(own) else own.take(pa.array(chosen)))
    return found


def retainable(plan: StepPlan, id: str, own: pa.Table) -> pa.Table:
    """The slices of a grouping, with its own columns, as they can be retained."""
    grouping = plan.groupings[id]
    own = own.rename_columns([START if name == grouping.slice_column else name for name in own.column_names])
    codes, instants = pd.factorize(starts_of(own))
    own = own.append_column(END, pa.array(slice_ends(instants, grouping.progressions)[codes]))
    return tagged(own.select(plan.schemas[id].names).cast(plan.schemas[id]), grouping)


def unretained(plan: StepPlan, received: pa.Table) -> dict[str, Fresh]:
    """Slices for finals that keep nothing: not copied."""
    numbers = np.asarray(flatten(received.column(GROUPING)))
    found = {}
    for number, (id, grouping) in enumerate(plan.groupings.items()):
        chosen = np.flatnonzero(numbers == number)
        if len(chosen):
            # a bucket belongs to one node
            node = int(received.column(NODE)[chosen[0]].as_py()) if grouping.placed else None
            found[id] = Fresh(own_columns(plan, id, received), chosen, node)
    return found


def own_columns(plan: StepPlan, id: str, received: pa.Table) -> pa.Table:
    """All slices, in the columns of one grouping."""
    names = plan.names[id]
    return received.select(list(names)).rename_columns(list(names.values()))
