"""What every technique must do: give the naive answer for every aggregate that it allows, and refuse all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from weft.algebra.aggregate import Aggregate, Resolved
from weft.algebra.monoid import Monoid
from weft.algebra.registry import AGGREGATES
from weft.checks.agreement import agree
from weft.checks.check import Check
from weft.checks.merging import plain, total
from weft.checks.sampled_items import items_by_kind, resolved_for
from weft.evaluate.columns import load
from weft.evaluate.registry import TECHNIQUES
from weft.evaluate.technique import Technique, TechniqueError
from weft.evaluate.window import SlidingWindow

TechniqueCheck = Check[[]]
RANGES = (1, 2, 5, 8, 13)
ITEMS = 40
Case = tuple[Aggregate, str, Resolved]


def checks_of_techniques(techniques: Iterable[Technique] | None = None) -> list[TechniqueCheck]:
    """The checks of some techniques, by default of all that are registered.

    Techniques run as Python here, so that nothing is compiled for the sake of a check: the same templates are compiled
    for numbers.

    Examples
    --------
    >>> str(checks_of_techniques([TECHNIQUES["daba"]])[0])
    'daba gives the naive answers for every aggregate that it allows'
    """
    return [
        Check(technique.name, sentence, partial(holds, technique))
        for technique in (TECHNIQUES.values() if techniques is None else techniques)
        for sentence, holds in (
            ("gives the naive answers for every aggregate that it allows", naive),
            ("answers several ranges at once as each of them alone", several),
            ("goes on from a state as if nothing had happened", restored),
            ("refuses every aggregate that lacks what it requires", refuses),
        )
    ]


def naive(technique: Technique) -> None:
    """Every range is what merging its items anew gives."""
    for aggregate, what, resolved, items in _allowed(technique):
        for size in RANGES:
            found = SlidingWindow(aggregate, size, technique.name, dtype=object).push_many(items)[:, 0]
            for end, ours in enumerate(found, start=1):
                partials = _partials(resolved, items[max(0, end - size) : end])
                theirs = total(resolved.monoid, partials)
                assert agree(ours, theirs), f"{technique.name}, {what}, {size} items to {end}: {ours}, not {theirs}"


def several(technique: Technique) -> None:
    """Ranges that share a structure do not disturb each other."""
    for aggregate, what, _, items in _allowed(technique):
        together = SlidingWindow(aggregate, RANGES, technique.name, dtype=object).push_many(items)
        for place, size in enumerate(RANGES):
            alone = SlidingWindow(aggregate, size, technique.name, dtype=object).push_many(items)[:, 0]
            assert agree(list(together[:, place]), list(alone)), f"{technique.name}, {what}, {size} items"


def restored(technique: Technique) -> None:
    """A window that goes on from another's state answers what the other would have."""
    for aggregate, what, _, items in _allowed(technique):
        whole, before, after = (SlidingWindow(aggregate, RANGES, technique.name, dtype=object) for _ in range(3))
        expected = whole.push_many(items)
        for cut in (0, 1, 7, 20):
            head = before.push_many(items[:cut])
            after.restore(before.state())
            found = np.concatenate([head, after.push_many(items[cut:])]) if cut else after.push_many(items)
            assert agree(found.tolist(), expected.tolist()), f"{technique.name}, {what}, restored after {cut} items"
            before, after = (SlidingWindow(aggregate, RANGES, technique.name, dtype=object) for _ in range(2))


def refuses(technique: Technique) -> None:
    """What it requires is asked for."""
    for monoid in {resolved.monoid for _, _, resolved in _cases()}:
        lacking = [needed for needed in technique.requires if not getattr(monoid, needed)]
        try:
            technique.check(monoid)
        except TechniqueError as error:
            assert lacking, f"{technique.name} refuses {monoid.name}: {error}"
        else:
            assert not lacking, f"{technique.name} takes {monoid.name}, which is not {', '.join(lacking)}"


def _allowed(technique: Technique) -> Iterator[tuple[Aggregate, str, Resolved, np.ndarray]]:
    """Aggregates of partials as Python objects, what they are in words, and items for them."""
    for aggregate, kind, resolved in _cases():
        if all(getattr(resolved.monoid, needed) for needed in technique.requires):
            monoid = _as_objects(resolved.monoid)
            objects = Resolved(monoid, lambda items: (items,), lambda columns: columns[0])
            lifted = resolved.lift(items_by_kind()[kind][:ITEMS])
            items = np.empty(ITEMS, object)
            items[:] = [load(lifted, row) for row in range(ITEMS)]
            yield replace(aggregate, items=lambda *_, it=objects: it), f"{aggregate.name} of {kind}", objects, items


def _cases() -> Iterator[Case]:
    """Every aggregate that takes items, for every kind of them."""
    for aggregate in dict.fromkeys(AGGREGATES.values()):
        for kind, items in items_by_kind().items():
            resolved = resolved_for(aggregate, kind, items[0])
            if resolved is not None:
                yield aggregate, kind, resolved


def _as_objects(monoid: Monoid) -> Monoid:
    """The same monoid over whole partials, as Python objects."""
    identity = monoid.identity[0] if monoid.width == 1 else monoid.identity
    inverse = None if monoid.invert is None else plain(monoid.invert)
    return replace(monoid, dtypes=("object",), identity=(identity,), merge=plain(monoid.merge), invert=inverse)


def _partials(resolved: Resolved, items: np.ndarray) -> Sequence[Any]:
    (partials,) = resolved.lift(items)
    return list(partials)
