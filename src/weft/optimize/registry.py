"""All optimizers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from weft.optimize.exhaustive import exhaustive
from weft.optimize.incremental import incremental_weave_share
from weft.optimize.insert_then_weave import insert_then_weave
from weft.optimize.local_search import local_search, local_search_from_random
from weft.optimize.loom import Loom, Partition
from weft.optimize.nodes.blind import by_random, by_round_robin
from weft.optimize.nodes.inserted import inserted
from weft.optimize.nodes.placement import Category, Placed
from weft.optimize.nodes.to_lowest import to_lowest
from weft.optimize.nodes.to_nodes import to_nodes
from weft.optimize.random_groups import random_groups
from weft.optimize.reweave import reweave
from weft.optimize.shared import shared
from weft.optimize.tri_weave import tri_weave
from weft.optimize.weave_share import weave_share

Optimizer = Callable[[Loom, Random], Partition]
NodeOptimizer = Callable[[Loom, Sequence[float], Random], Placed]

OPTIMIZERS: Mapping[str, Optimizer] = {
    "shared": shared,
    "random": random_groups,
    "insert-then-weave": insert_then_weave,
    "local-search": local_search,
    "local-search-random": local_search_from_random,
    "weave-share": weave_share,
    "tri-weave": tri_weave,
    "incremental-weave-share": incremental_weave_share,
    "exhaustive": exhaustive,
    "weft": reweave,
}
"""Which items share a tree; where there are several nodes, the trees are then spread over them."""

_GROUP, _WEAVE, _BOTH = Category.GROUP, Category.WEAVE, Category.WEAVE_AND_GROUP

NODE_OPTIMIZERS: Mapping[str, NodeOptimizer] = {
    "g-rand": partial(by_random, category=_GROUP),
    "w-rand": partial(by_random, category=_WEAVE),
    "wg-rand": partial(by_random, category=_BOTH),
    "g-rr": partial(by_round_robin, category=_GROUP),
    "w-rr": partial(by_round_robin, category=_WEAVE),
    "wg-rr": partial(by_round_robin, category=_BOTH),
    "g-tl": partial(to_lowest, category=_GROUP),
    "w-tl": partial(to_lowest, category=_WEAVE),
    "wg-tl": partial(to_lowest, category=_BOTH),
    "w-tn": partial(to_nodes, category=_WEAVE),
    "wg-tn": partial(to_nodes, category=_BOTH),
    "w-i": partial(inserted, category=_WEAVE),
    "wg-i": partial(inserted, category=_BOTH),
}
"""The thirteen of 004 Table 7: they decide on trees and nodes together."""

NAMES = ("no-share", *OPTIMIZERS, *NODE_OPTIMIZERS)
