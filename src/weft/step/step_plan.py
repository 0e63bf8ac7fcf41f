"""A plan with all that a turn needs of it: which slices are whose, in which columns they come and are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from weft.plan.layout import layouts
from weft.plan.model import Grouping, Plan
from weft.plan.sheet import Sheet, sheet
from weft.slicing.window import Window
from weft.step.emission import Emission
from weft.step.retained import kept_names


@dataclass(frozen=True)
class StepPlan:
    """What the turn of a batch run and of every micro-batch goes by. Free of Spark; sent to the workers as it is."""

    plan: Plan
    ids: tuple[str, ...]
    """A name for each grouping, which stays while other groupings come and go."""
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    """The columns of retained slices, by the id of their grouping; none where nothing is retained."""
    first: Mapping[str, int] = field(default_factory=dict)
    """When the first window of a query may start, where it came after the stream had begun."""

    @property
    def retains(self) -> bool:
        """Whether slices are kept for later turns."""
        return bool(self.schemas)

    @cached_property
    def groupings(self) -> dict[str, Grouping]:
        """The groupings by their ids."""
        return dict(zip(self.ids, self.plan.groupings, strict=True))

    @cached_property
    def names(self) -> dict[str, dict[str, str]]:
        """By a grouping's id: columns of the aggregation and what they are called within the grouping."""
        columns = layouts(self.plan)
        return {
            id: columns[number].names(number, grouping) for number, (id, grouping) in enumerate(self.groupings.items())
        }

    @cached_property
    def windows(self) -> dict[str, dict[Window, int | None]]:
        """By a grouping's id: its windows, each with the instant before which none of them counts for anybody."""
        found: dict[str, dict[Window, int | None]] = {}
        for id, grouping in self.groupings.items():
            firsts: dict[Window, list[int | None]] = {}
            for query in grouping.queries:
                firsts.setdefault(query.window, []).append(self.first.get(query.name))
            found[id] = {window: _least(some) for window, some in firsts.items()}
        return found

    @cached_property
    def kept(self) -> dict[str, frozenset[str]]:
        """By a grouping's id: the names of all that it keeps of a slice."""
        return {id: frozenset(kept_names(grouping)) for id, grouping in self.groupings.items()}

    @cached_property
    def sheet(self) -> Sheet:
        """The table of those queries whose select lists Spark computes."""
        return sheet(self.plan.queries)

    def emission(self, after: int | None, until: int | None) -> Emission:
        """Which windows are answered while the watermark goes from one instant to another."""
        return Emission(after, until, self.first, self.plan.limits)


def numbered_ids(plan: Plan) -> tuple[str, ...]:
    """Names for the groupings of a plan that has no past."""
    return tuple(f"g{number}" for number in range(len(plan.groupings)))


def _least(instants: Sequence[int | None]) -> int | None:
    known = [instant for instant in instants if instant is not None]
    return min(known) if len(known) == len(instants) else None
