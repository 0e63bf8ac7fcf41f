"""Which columns the shared aggregation has: slots that groupings use for different things.

All groupings go through one aggregation, each as a copy of every row. Had each its own key, slice and partial columns,
a row would be as wide as all of them together. So columns of the same kind are slots: what ``sum`` of a DOUBLE is in
the first grouping may be the sum of another argument in the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from weft.algebra.aggregates.sums import WIDEST_SAFE_DECIMAL
from weft.plan.model import BoundCall, Grouping, Plan, Predicate, digest, key_column
from weft.query.model import Expression

SLICE = "slice"


@dataclass(frozen=True, slots=True)
class Use:
    """What one slot holds for one grouping: arguments, looked at only where the condition holds if there is one."""

    arguments: tuple[Expression, ...]
    condition: Predicate | None
    column: str
    """The name under which the grouping's queries look for it."""
    summed: bool = False
    """Whether it is a sum that may overflow: then only rows that somebody sums may reach it."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A partial column of the aggregation."""

    name: str
    template: str
    uses: dict[int, Use]
    """By the grouping's number."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Every column of the aggregation."""

    keys: dict[str, dict[int, Expression]]
    """Key slots, and which key each holds for a grouping."""
    signatures: dict[str, dict[int, str]]
    """Signature slots, and which signature column each holds for a grouping."""
    slots: tuple[Slot, ...]

    def names(self, number: int, grouping: Grouping) -> dict[str, str]:
        """Columns of the aggregation and what they are called within one grouping."""
        names = {SLICE: grouping.slice_column}
        names |= {slot: key_column(uses[number]) for slot, uses in self.keys.items() if number in uses}
        names |= {slot: uses[number] for slot, uses in self.signatures.items() if number in uses}
        return names | {slot.name: slot.uses[number].column for slot in self.slots if number in slot.uses}


def layout(plan: Plan, numbers: Sequence[int]) -> Layout:
    """The fewest columns that serve the groupings with these numbers."""
    keys: dict[str, dict[int, Expression]] = {}
    signatures: dict[str, dict[int, str]] = {}
    for number in numbers:
        grouping = plan.groupings[number]
        kinds: Counter[str] = Counter()
        for key in grouping.keys:
            kind = str(key_type(grouping, key))
            keys.setdefault(f"{digest('k', kind)}_{kinds[kind]}", {})[number] = key
            kinds[kind] += 1
        for word, (name, _) in enumerate(grouping.signatures):
            signatures.setdefault(f"signature_{word}", {})[number] = name
    return Layout(keys, signatures, partial_slots(plan, numbers))


def key_type(grouping: Grouping, key: Expression) -> object:
    """The Arrow type of one of the grouping's keys."""
    for query in grouping.queries:
        if key in query.query.keys:
            return query.key_types[query.query.keys.index(key)]
    raise KeyError(key)


Kind = tuple[str, str]


def layouts(plan: Plan) -> dict[int, Layout]:
    """Each grouping's layout: those that are hashed share one, those that are sorted another."""
    found: dict[int, Layout] = {}
    for hashed in (True, False):
        numbers = [number for number, grouping in enumerate(plan.groupings) if grouping.hashed is hashed]
        found |= dict.fromkeys(numbers, layout(plan, numbers))
    return found


def partial_slots(plan: Plan, numbers: Sequence[int]) -> tuple[Slot, ...]:
    """Slots for every partial column: as many of a kind as the grouping that needs most of it."""
    uses = {number: _uses(plan.groupings[number]) for number in numbers}
    popular = Counter(use.arguments for grouping in uses.values() for kind in grouping.values() for use in kind)
    slots: dict[tuple[Kind, int], Slot] = {}
    for kind in dict.fromkeys(kind for grouping in uses.values() for kind in grouping):
        capacity = max(len(grouping.get(kind, ())) for grouping in uses.values())
        for number, grouping in uses.items():
            for place, use in _placed(grouping.get(kind, []), capacity, popular).items():
                name = f"{digest('p', *kind)}_{place}"
                slots.setdefault((kind, place), Slot(name, kind[0], {})).uses[number] = use
    return tuple(slots.values())


def may_overflow(template: str, call: BoundCall) -> bool:
    """Whether a slice's own sum may be too large for its type: of decimals with nearly all the digits there are."""
    if not template.startswith("sum(") or not call.types:
        return False
    kind = call.types[0]
    return bool(pa.types.is_decimal(kind) and kind.precision > WIDEST_SAFE_DECIMAL)


def _uses(grouping: Grouping) -> dict[Kind, list[Use]]:
    """Every partial column that a grouping needs, by its kind: the aggregate and the types of its arguments."""
    found: dict[Kind, dict[str, Use]] = {}

    def add(template: str, types: str, use: Use) -> None:
        found.setdefault((template, types), {}).setdefault(use.column, use)

    for query in grouping.queries:
        if grouping.conditional and not query.predicate.everything:
            add("count(1)", "", Use((), query.predicate, query.predicate.name))
        for call in query.calls:
            predicate = query.predicate_of(call)
            condition = predicate if grouping.conditional and not predicate.everything else None
            for partial in call.partials:
                for template, column in zip(partial.measure.columns, partial.columns(condition), strict=True):
                    use = Use(partial.arguments, condition, column, may_overflow(template, call))
                    add(template, str(call.types), use)
    return {kind: list(uses.values()) for kind, uses in found.items()}


def _placed(uses: list[Use], capacity: int, popular: Counter[tuple[Expression, ...]]) -> dict[int, Use]:
    """A place for each use; what many groupings ask for stands at the same place in all: then none has to be chosen."""
    order = {arguments: rank for rank, (arguments, _) in enumerate(popular.most_common())}
    placed: dict[int, Use] = {}
    for use in sorted(uses, key=lambda use: (order[use.arguments], use.column)):
        wished = order[use.arguments]
        free = (place for place in range(capacity) if place not in placed)
        placed[wished if wished < capacity and wished not in placed else next(free)] = use
    return placed
