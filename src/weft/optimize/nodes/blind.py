"""Random and round robin (004 §6.4): nodes, and what to do there, chosen without a look at the cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from random import Random

from weft.optimize.loom import Loom
from weft.optimize.nodes.placement import Category, Placed, Placement

Choose = Callable[[int], int]
"""A number below the given one."""


def by_random(loom: Loom, capacities: Sequence[float], rng: Random, category: Category) -> Placed:
    """Each item to a random node; w-g: and there, at random, into one of the trees or a new one."""
    return _place(loom, capacities, category, rng.randrange, rng.randrange)


def by_round_robin(loom: Loom, capacities: Sequence[float], _: Random, category: Category) -> Placed:
    """Each item to the next node; w-g: and there in turn into one of the trees or a new one."""
    nodes, choices = count(), count()
    return _place(loom, capacities, category, lambda below: next(nodes) % below, lambda below: next(choices) % below)


def _place(
    loom: Loom, capacities: Sequence[float], category: Category, next_node: Choose, next_choice: Choose
) -> Placed:
    placement = Placement(loom, capacities)
    for slot in range(len(loom.items)):
        node = next_node(placement.nodes)
        if category is Category.GROUP:
            placement.group(slot, node)
        elif category is Category.WEAVE:
            placement.weave_or_group(slot, node)
        else:
            trees = placement.trees(node)
            choice = next_choice(trees.size + 1)
            if choice < trees.size:
                placement.weave(slot, int(trees[choice]))
            else:
                placement.group(slot, node)
    return placement.placed
