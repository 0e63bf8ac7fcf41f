"""A grouping woven into trees: what the optimizers decide about windows, in the form that the step runs.

Queries that group by the same keys may share slices. With three levels rows are cut once at the edges of all, and each
tree puts coarser slices of its own together; with two levels every tree becomes a grouping, which cuts the rows itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weft.optimize.constants import Constants
from weft.optimize.cost import Traffic
from weft.optimize.entry import ModelName, optimize
from weft.optimize.items import Item, items_of
from weft.optimize.omega import TechniqueCode
from weft.optimize.work import Rows, columns_of, work_of_run
from weft.plan.build import grouping_of
from weft.plan.forest import Forest, Tree
from weft.plan.model import BoundQuery, Grouping
from weft.slicing.edge_rate import edge_rate
from weft.slicing.edges_bitmap import unit_of
from weft.slicing.progression import Progression, contains

Levels = Literal[2, 3]
DEFAULT = "weft"
WORTH_WEAVING = 0.3
"""Weaving saves no more than the merging of slices, and takes a second for a thousand queries: below this share of all
work one tree is as good."""


FEW_EDGES = 4
"""So few progressions of edges are no reason to cut otherwise."""
A_WHILE = 10_000.0
"""Seconds."""


@dataclass(frozen=True)
class Weaving:
    """How groupings are woven.

    Examples
    --------
    >>> Weaving().is_default, Weaving(optimizer="weave-share").is_default
    (True, False)
    """

    optimizer: str = DEFAULT
    model: ModelName = "calibrated"
    capacities: tuple[float, ...] = ()
    """Of the nodes that trees are spread over; none: as the keys suggest."""
    constants: Constants | None = None
    """Those that ``weft calibrate`` measured if not given."""
    seed: int = 0

    @property
    def is_default(self) -> bool:
        """Whether nothing particular was asked for."""
        return replace(self, constants=None) == Weaving()


@dataclass(frozen=True, slots=True)
class Seen:
    """What a sample of the rows shows of a grouping."""

    rate: float
    """Rows per second."""
    groups: float
    """Distinct keys."""

    @property
    def for_a_while(self) -> Rows:
        """Rows of a stretch of the stream."""
        return Rows(self.rate * A_WHILE, A_WHILE, max(self.groups, 1.0))


def nested(grouping: Grouping) -> bool:
    """Whether some query cuts wherever any other does: then one tree has as few slices as that query alone."""
    return any(contains(item.progressions, grouping.progressions) for item in _items(grouping))


def weave(grouping: Grouping, seen: Seen, weaving: Weaving) -> tuple[Grouping, ...]:
    """The grouping as a forest: with its trees, or as a grouping a tree where each is to cut the rows itself."""
    constants = weaving.constants or Constants.load()
    if weaving.is_default and not worth_weaving(grouping, seen, constants):
        return (simply_cut(replace(grouping, trees=(one_tree(grouping),)), seen, constants),)
    levels: tuple[Levels | None, ...] = (2, 3) if weaving.model == "calibrated" else (None,)
    forests = [_forest(grouping, seen, weaving, constants, level) for level in levels]
    every = [planted(grouping, forest) for forest in forests]
    if weaving.is_default:
        every.append((replace(grouping, trees=(one_tree(grouping),)),))
    if weaving.model == "calibrated":
        every = [tuple(simply_cut(one, seen, constants) for one in some) for some in every]
    return min(every, key=lambda some: predicted(some, seen, constants))


def _forest(grouping: Grouping, seen: Seen, weaving: Weaving, constants: Constants, levels: Levels | None) -> Forest:
    return optimize(
        [(query.name, query.window) for query in grouping.queries],
        seen.rate,
        weaving.optimizer,
        model=weaving.model,
        nodes=weaving.capacities or 1,
        constants=constants,
        traffic=Traffic(max(seen.groups, 1.0), columns_of(grouping.queries)),
        seed=weaving.seed,
        levels=levels,
    )


def simply_cut(grouping: Grouping, seen: Seen, constants: Constants) -> Grouping:
    """The grouping as it is, or cut at every multiple of what all its edges are multiples of, if that is cheaper.

    A row is held against every progression of edges. Of many progressions there may be an edge nearly wherever there
    can be one: then the slices that nobody needs are few, and one progression does.
    """
    if len(grouping.progressions) <= FEW_EDGES:
        return grouping
    unit = (Progression(unit_of(grouping.progressions)),)
    trees = (
        replace(tree, progressions=unit) if tree.progressions == grouping.progressions else tree
        for tree in grouping.trees
    )
    simple = replace(grouping, progressions=unit, trees=tuple(trees))
    return min((grouping, simple), key=lambda one: predicted([one], seen, constants))


def predicted(groupings: Sequence[Grouping], seen: Seen, constants: Constants) -> float:
    """Seconds for a while of the stream, long enough for what is constant not to count."""
    rows = [seen.for_a_while] * len(groupings)
    return work_of_run(groupings, rows, constants.cores).seconds(constants)


def home_of(query: BoundQuery, trees: Sequence[Grouping], seen: Seen, constants: Constants) -> int | None:
    """Which of some trees a new query is woven into, None if it is better off as a tree of its own.

    The step of Incremental Weave Share (000 §5.2) for a query that comes, by the seconds that it saves. Each tree cuts
    the rows itself, and trees that are there stay as they are: their slices hold what running queries need.
    """
    for at, tree in enumerate(trees):
        if contains(tree.progressions, query.window.edges()):
            return at  # it needs no slice that is not there
    alone = predicted([grouping_of([query])], seen, constants)
    gains = [
        predicted([tree], seen, constants)
        + alone
        - predicted([replace(grouping_of([*tree.queries, query]), conditional=tree.conditional)], seen, constants)
        for tree in trees
    ]
    best = max(range(len(trees)), key=gains.__getitem__, default=None)
    return best if best is not None and gains[best] > 0 else None


def planted(grouping: Grouping, forest: Forest) -> tuple[Grouping, ...]:
    """What the step runs for a forest over the queries of ``grouping``."""
    if forest.levels == 3 or len(forest.trees) == 1:
        return (replace(grouping, trees=forest.trees),)
    queries = {query.name: query for query in grouping.queries}
    return tuple(replace(grouping_of([queries[name] for name in tree.queries]), trees=(tree,)) for tree in forest.trees)


def one_tree(grouping: Grouping) -> Tree:
    """All queries together, at no particular cost."""
    names = tuple(query.name for query in grouping.queries)
    rate = edge_rate(grouping.progressions, budget=1)
    weight = sum(query.window.per_second for query in grouping.queries)
    return Tree(names, grouping.progressions, rate, float(len(_items(grouping))), weight, TechniqueCode.BULK.label)


def worth_weaving(grouping: Grouping, seen: Seen, constants: Constants) -> bool:
    """Whether merging slices is enough of the work for trees to matter."""
    if len(grouping.windows) == 1 or nested(grouping):
        return False
    work = work_of_run([replace(grouping, trees=())], [seen.for_a_while], constants.cores)
    merging = work.merge * constants.merge + work.pane * constants.pane
    return merging > WORTH_WEAVING * work.seconds(constants)


def _items(grouping: Grouping) -> tuple[Item, ...]:
    return items_of((query.name, query.window) for query in grouping.queries)


def rewoven(grouping: Grouping, seen: Seen, weaving: Weaving) -> Grouping:
    """A grouping of a running stream with the trees that suit its queries now; rows are cut where they are."""
    constants = weaving.constants or Constants.load()
    one = replace(grouping, trees=(one_tree(grouping),))
    if weaving.is_default and not worth_weaving(grouping, seen, constants):
        return one
    forest = _forest(grouping, seen, weaving, constants, levels=3 if weaving.model == "calibrated" else None)
    every = [one, replace(grouping, trees=forest.trees)]
    return min(every if weaving.is_default else every[1:], key=lambda each: predicted([each], seen, constants))
