"""From queries to a forest: a pure function, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from random import Random
from typing import Literal

from weft.errors import WeftError
from weft.optimize.constants import Constants
from weft.optimize.cost import CostModel, Levels, Traffic, calibrated, three_level, two_level
from weft.optimize.items import Item, Question, items_of
from weft.optimize.loom import Loom
from weft.optimize.no_share import no_share
from weft.optimize.nodes.placement import Placed, balance
from weft.optimize.omega import TechniqueCode
from weft.optimize.registry import NAMES, NODE_OPTIMIZERS, OPTIMIZERS
from weft.plan.forest import Forest, Tree
from weft.query.model import Query
from weft.slicing.edge_rate import edge_rate
from weft.slicing.progression import Alignment

_BUDGET = 2_000
"""A second at the most for the edges of all queries together."""
ModelName = Literal["two-level", "three-level", "calibrated"]


@dataclass(frozen=True, slots=True)
class _Task:
    items: tuple[Item, ...]
    optimizer: str
    technique: TechniqueCode
    capacities: tuple[float, ...]
    seed: int


def optimize(
    queries: Iterable[Query | Question] | Sequence[Item],
    rate: float,
    optimizer: str = "weft",
    *,
    model: ModelName | None = None,
    technique: str | None = None,
    alignment: Alignment = "start",
    nodes: int | Sequence[float] = 1,
    constants: Constants | None = None,
    traffic: Traffic | None = None,
    seed: int = 0,
    levels: Levels | None = None,
) -> Forest:
    """Decide which queries share a slicing, and on which node each tree runs.

    Parameters
    ----------
    queries
        Queries, (name, window) pairs, or items from :func:`weft.optimize.items.items_of`.
    rate
        Rows per second.
    optimizer
        One of :data:`weft.optimize.registry.NAMES`.
    model
        ``two-level`` and ``three-level`` count operations as the papers do; ``calibrated`` predicts seconds, and takes
        two or three levels, whichever is cheaper. The default is ``calibrated``, with tri-weave ``three-level``.
    technique
        How answers are built; by default the papers' ``panes``, and the step's own ``bulk`` with the calibrated model.
    alignment
        Whether windows start or end on multiples of the slide.
    nodes
        How many, or the capacity of each.
    constants
        For the calibrated model; by default what ``weft calibrate`` measured.
    traffic
        Groups and columns, for the calibrated model.
    seed
        For optimizers that draw random numbers.
    levels
        For the calibrated model: whether rows are cut once a tree (2) or once for all (3); by default the cheaper.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> second = 1_000_000
    >>> queries = [("a", TimeWindow(16 * second, 4 * second)), ("b", TimeWindow(10 * second, 5 * second))]
    >>> optimize(queries, rate=1.2, optimizer="no-share", model="two-level").cost  # doctest: +ELLIPSIS
    3.8...
    """
    check_optimizer(optimizer)
    if rate <= 0:
        raise WeftError(f"the rate must be positive, got {rate}")
    given = tuple(queries)
    items = given if given and isinstance(given[0], Item) else items_of(given, alignment)  # type: ignore[arg-type]
    if not items:
        raise WeftError("there are no queries to plan")
    chosen = model or "calibrated"
    if optimizer == "tri-weave" and model != "calibrated":
        chosen = "three-level"
    label = technique or ("bulk" if chosen == "calibrated" else "panes")
    task = _Task(items, optimizer, TechniqueCode.named(label), capacities_of(nodes), seed)  # type: ignore[arg-type]
    models = _models(task, chosen, rate, constants, traffic or Traffic())
    models = [one for one in models if levels in (None, one.levels)] or models
    return min((_plan(task, one) for one in models), key=lambda forest: forest.cost)


def check_optimizer(name: str) -> None:
    """Refuse an optimizer that does not exist."""
    if name not in NAMES:
        near = get_close_matches(name, NAMES, 1)
        hint = f", did you mean {near[0]}?" if near else f": one of {', '.join(NAMES)}"
        raise WeftError(f"no optimizer {name!r}{hint}")


def _models(
    task: _Task, name: ModelName, rate: float, constants: Constants | None, traffic: Traffic
) -> list[CostModel]:
    """The cost model asked for; two, if it is open whether rows are to be cut once or once a tree."""
    if name == "two-level":
        return [two_level(rate)]
    all_edges = _rate_of_all(task.items, rate)
    if name == "three-level":
        return [three_level(rate, all_edges)]
    every: tuple[Levels, ...] = (3,) if task.optimizer == "tri-weave" else (2, 3)
    measured = constants or Constants.load()
    return [calibrated(rate, all_edges, levels, task.technique.label, measured, traffic) for levels in every]


def _rate_of_all(items: tuple[Item, ...], rate: float) -> float:
    """Edges a second of all queries together; a loom's guess is nearer than the middle of wide bounds."""
    every = edge_rate((one for item in items for one in item.progressions), budget=_BUDGET)
    if not every.exact:
        every = Loom(items, two_level(rate), TechniqueCode.PANES).finished(range(len(items))).rate
    return every.per_second


def capacities_of(nodes: int | Sequence[float]) -> tuple[float, ...]:
    """The capacity of each node; all equal if only their number is given."""
    capacities = (1.0,) * nodes if isinstance(nodes, int) else tuple(float(one) for one in nodes)
    if not capacities or min(capacities) <= 0:
        raise WeftError("there must be at least one node, and capacities must be positive")
    return capacities


def _plan(task: _Task, model: CostModel) -> Forest:
    if task.optimizer == "no-share":
        trees = no_share(task.items, model, task.technique, task.capacities)
    else:
        loom = Loom(task.items, model, task.technique)
        trees = tuple(_tree(loom, items, node) for items, node in sorted(_placed(task, loom)))
    return Forest(trees, task.optimizer, model.name, model.levels, model.shared, task.capacities)


def _placed(task: _Task, loom: Loom) -> Placed:
    rng = Random(task.seed)
    if task.optimizer in NODE_OPTIMIZERS:
        return NODE_OPTIMIZERS[task.optimizer](loom, task.capacities, rng)
    partition = OPTIMIZERS[task.optimizer](loom, rng)
    if len(task.capacities) == 1:
        return [(tree, 0) for tree in partition]
    loom.start_from(partition)
    return balance(loom, task.capacities)


def _tree(loom: Loom, members: list[int], node: int) -> Tree:
    names = tuple(name for member in members for name in loom.items[member].queries)
    final = loom.finished(members)
    return Tree(names, loom.progressions(members), final.rate, final.overlap, final.cost, loom.technique.label, node)
