"""How much of everything the step does for a plan, and how long that takes: the calibrated model of a whole run.

The optimizers weigh trees by a cost that is linear in edge rates (:mod:`weft.optimize.cost`). Here the plan is known,
so that slices are counted as far as there are rows to fill them, and panes as they are really made from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from math import expm1

from weft.optimize.constants import Constants
from weft.plan.model import BoundQuery, Grouping, Partial
from weft.query.model import Window
from weft.slicing.edge_rate import MICROSECONDS, edge_rate
from weft.slicing.progression import Progression, contains, edges_of


@dataclass(frozen=True, slots=True)
class Work:
    """Counts; each field is named as the constant that says how long one takes.

    Examples
    --------
    >>> (Work(step=1, row=2_000_000) + Work(row=500_000)).seconds(Constants(step=0.5, row=1e-7))
    0.75
    """

    step: float = 0.0
    read: float = 0.0
    row: float = 0.0
    slice: float = 0.0
    merge: float = 0.0
    answer: float = 0.0
    query: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    def seconds(self, constants: Constants) -> float:
        """The predicted time."""
        return float(sum(getattr(self, item.name) * getattr(constants, item.name) for item in fields(self)))


@dataclass(frozen=True, slots=True)
class Rows:
    """What is to be run over."""

    count: float
    seconds: float
    """From the first event to the last."""
    groups: float = 1.0
    """Distinct keys of a grouping."""

    def slices(self, edges_a_second: float) -> float:
        """How many slices have a row, if rows fall into them at random.

        Examples
        --------
        >>> Rows(1e6, 100, groups=10).slices(1.0), round(Rows(100, 100, groups=10).slices(1.0))
        (1000.0, 95)
        """
        cells = max(edges_a_second * self.seconds, 1.0) * self.groups
        return cells * -expm1(-self.count / cells)

    def answers(self, window: Window) -> float:
        """How many windows hold a row, over all keys."""
        windows = (self.seconds * MICROSECONDS + window.range) / window.slide
        a_window = self.count / self.groups * window.range / (self.seconds * MICROSECONDS)
        return windows * self.groups * -expm1(-a_window)


def work_of_run(groupings: Iterable[Grouping], rows: Sequence[Rows]) -> Work:
    """A whole run: ``rows`` as each grouping sees them."""
    total = Work(step=1, read=max((one.count for one in rows), default=0.0))
    for grouping, seen in zip(groupings, rows, strict=True):
        total += work_of(grouping, seen)
    return total


def work_of(grouping: Grouping, rows: Rows) -> Work:
    """What one grouping adds."""
    fine = rows.slices(_rate(grouping.progressions))
    merges = 0.0
    by_tree: dict[tuple[Progression, ...], list[BoundQuery]] = {}
    for query in grouping.queries:
        tree = grouping.tree_of.get(query.name)
        by_tree.setdefault(grouping.progressions if tree is None else tree.progressions, []).append(query)
    for progressions, queries in by_tree.items():
        merges += _merges(progressions, queries, fine, rows)
    return Work(
        row=rows.count,
        slice=fine * max(len(grouping.nodes), 1),
        merge=merges,
        answer=sum(rows.answers(query.query.window) for query in grouping.queries),
        query=len(grouping.queries),
    )


def _merges(tree: Sequence[Progression], queries: Sequence[BoundQuery], fine: float, rows: Rows) -> float:
    """Numbers read to make a tree's slices from the fine ones, and each slicing's panes from the coarsest there are."""
    slices = rows.slices(_rate(tree))
    merges = fine * _columns(queries) if slices < fine else 0.0
    made: dict[tuple[Progression, ...], float] = {}
    slicings: dict[tuple[Progression, ...], list[BoundQuery]] = {}
    for query in sorted(queries, key=lambda query: (query.query.window.slide, query.query.window.range)):
        slicings.setdefault(edges_of(query.query.window), []).append(query)
    for edges, some in slicings.items():
        source = min([slices, *(count for other, count in made.items() if contains(other, edges))])
        made[edges] = rows.slices(_rate(edges))
        merges += source * _columns(some) if made[edges] < source else 0.0
    return merges


def _columns(queries: Iterable[BoundQuery]) -> int:
    """Numbers that are read of a slice: what is kept for them, and where it begins."""
    partials: set[Partial] = {partial for query in queries for call in query.calls for partial in call.partials}
    return 1 + sum(len(partial.measure.columns) for partial in partials)


def _rate(progressions: Sequence[Progression]) -> float:
    return edge_rate(progressions, budget=2_000).per_second
