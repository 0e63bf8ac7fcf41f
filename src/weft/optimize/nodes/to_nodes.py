"""To nodes (004 Alg. 5): Weave Share that stops when there are no more trees than nodes, or goes on until then."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from weft.optimize.loom import Loom
from weft.optimize.nodes.placement import Category, Placed, balance
from weft.optimize.weave_share import weave


def to_nodes(loom: Loom, capacities: Sequence[float], _: Random, category: Category) -> Placed:
    """Weave: one tree a node, merging even at a loss. Weave and group: Weave Share's trees, spread dearest first."""
    loom.reset()
    nodes = len(capacities)
    weave(loom, loom.trees, fewest=nodes, most=nodes if category is Category.WEAVE else None)
    return balance(loom, capacities)
