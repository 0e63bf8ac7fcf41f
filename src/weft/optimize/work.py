"""How much of everything the step does for a plan, and how long that takes: the calibrated model of a whole run.

The optimizers weigh trees by a cost that is linear in edge rates (:mod:`weft.optimize.cost`). Here the plan is known,
so that slices are counted as far as there are rows to fill them, panes as they are really made from each other, and
the fullest bucket is what everybody waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from math import expm1, sqrt
from statistics import NormalDist

from weft.optimize.constants import Constants
from weft.plan.model import BoundQuery, Grouping, Partial
from weft.slicing.edge_rate import MICROSECONDS, edge_rate
from weft.slicing.progression import Progression
from weft.slicing.window import Window

SHORT = 48
"""Java compiles the code for so many progressions of edges well; what is longer runs slowly."""


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
    update: float = 0.0
    edge: float = 0.0
    long: float = 0.0
    slice: float = 0.0
    number: float = 0.0
    again: float = 0.0
    merge: float = 0.0
    pane: float = 0.0
    answer: float = 0.0
    value: float = 0.0
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
    ordered: bool = True
    """Whether they come in the order of time: if not, Spark merges the slices of its tasks before they go on."""

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
        windows = self.seconds * window.per_second + window.overlap
        a_window = self.count / self.groups * window.length / (self.seconds * MICROSECONDS)
        return windows * self.groups * -expm1(-a_window)


def work_of_run(groupings: Sequence[Grouping], rows: Sequence[Rows], parts: int = 1) -> Work:
    """A whole run: ``rows`` as each grouping sees them, slices placed in so many ``parts`` by their keys."""
    read = max((one.count for one in rows), default=0.0)
    edges = sum(len(grouping.progressions) for grouping in groupings)
    total = Work(step=1, read=read, long=read * max(edges - SHORT, 0))
    keys = sum(one.groups for one in rows)
    for grouping, seen in zip(groupings, rows, strict=True):
        total += work_of(grouping, seen, 1.0 if grouping.placed else fullest(keys, parts))
    return total


def fullest(keys: float, parts: int) -> float:
    """How much more than the average the fullest of some parts has to do, if keys fall into them at random.

    Examples
    --------
    >>> [round(fullest(keys, 2), 2) for keys in (1, 10, 100, 1000)], fullest(100, 1)
    ([1.83, 1.26, 1.08, 1.03], 1.0)
    """
    if parts == 1:
        return 1.0
    highest = NormalDist().inv_cdf((parts - 0.375) / (parts + 0.25))  # of so many normal numbers (Blom)
    return min(1.0 + highest * sqrt(parts / max(keys, 1.0)), float(parts))


def work_of(grouping: Grouping, rows: Rows, uneven: float = 1.0) -> Work:
    """What one grouping adds, where the fullest bucket has ``uneven`` times the average."""
    fine = rows.slices(_rate(grouping.progressions))
    columns = columns_of(grouping.queries)
    handed = fine * max(len(grouping.nodes), 1) * uneven
    pane = merge = 0.0
    for progressions, queries in _trees(grouping):
        stretches, numbers = _panes(progressions, queries, fine, rows, cut=progressions != grouping.progressions)
        pane, merge = pane + stretches, merge + numbers
    answers = [(rows.answers(query.window), len(query.calls)) for query in grouping.queries]
    return Work(
        row=rows.count,
        update=rows.count * columns,
        edge=rows.count * (len(grouping.progressions) - 1),
        slice=handed,
        number=handed * columns,
        again=0.0 if rows.ordered else fine * columns,
        merge=merge * uneven,
        pane=pane * uneven,
        answer=sum(count for count, _ in answers) * uneven,
        value=sum(count * calls for count, calls in answers) * uneven,
        query=len(grouping.queries),
    )


def _trees(grouping: Grouping) -> list[tuple[tuple[Progression, ...], list[BoundQuery]]]:
    """Where each tree cuts, and its queries; a tree on two nodes is two."""
    trees: dict[tuple[tuple[Progression, ...], int], list[BoundQuery]] = {}
    for query in grouping.queries:
        tree = grouping.tree_of.get(query.name)
        place = (grouping.progressions, 0) if tree is None else (tree.progressions, tree.node * grouping.placed)
        trees.setdefault(place, []).append(query)
    return [(progressions, queries) for (progressions, _), queries in trees.items()]


def _panes(
    tree: Sequence[Progression], queries: Sequence[BoundQuery], fine: float, rows: Rows, *, cut: bool
) -> tuple[float, float]:
    """Stretches looked at, and numbers read, to make a tree's slices and each slicing's panes from the coarsest."""
    slices = rows.slices(_rate(tree)) if cut else fine
    stretches = fine if cut else 0.0
    numbers = fine * columns_of(queries) if slices < fine else 0.0
    made: list[tuple[Window, float]] = []
    slicings: dict[tuple[Progression, ...], list[BoundQuery]] = {}
    for query in sorted(queries, key=lambda query: query.window.fineness):
        slicings.setdefault(query.window.edges(), []).append(query)
    for edges, some in slicings.items():
        window, source = some[0].window, slices
        for other, count in made:
            if count < source and window.slicing.panes_nest_in(other.slicing):
                source = count
        panes = rows.slices(len(edges) * window.per_second)
        made.append((window, panes))
        stretches += source
        numbers += source * columns_of(some) if panes < source else 0.0
    return stretches, numbers


def columns_of(queries: Iterable[BoundQuery]) -> int:
    """Numbers that are kept of a slice for these queries."""
    partials: set[Partial] = {partial for query in queries for call in query.calls for partial in call.partials}
    return sum(len(partial.measure.columns) for partial in partials)


def _rate(progressions: Sequence[Progression]) -> float:
    return edge_rate(progressions, budget=2_000).per_second
