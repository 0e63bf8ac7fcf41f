"""The optimum, for few items: the oracle that the other optimizers are tested against."""

from __future__ import annotations

from random import Random

from weft.errors import WeftError
from weft.optimize.loom import FEW, Loom, Partition

MOST = FEW - 2


def exhaustive(loom: Loom, _: Random) -> Partition:
    """Dynamic programming over subsets: the best forest of a set has some tree with its first item, and a best rest.

    3^n steps instead of the Bell number of partitions.
    """
    count = len(loom.items)
    if count > MOST:
        raise WeftError(f"exhaustive search takes at most {MOST} items with different edges, not {count}")
    price = _price_of_every_subset(loom, count)
    best, tree = [0.0] * (1 << count), [0] * (1 << count)
    for items in range(1, 1 << count):
        first = items & -items
        rest = part = items ^ first
        best[items], tree[items] = price[items], items
        while part:
            part = (part - 1) & rest  # every way to leave some of the rest out of the first item's tree
            cost = price[part | first] + best[rest ^ part]
            if cost < best[items]:
                best[items], tree[items] = cost, part | first
    return _trees(tree, (1 << count) - 1)


def _price_of_every_subset(loom: Loom, count: int) -> list[float]:
    spare = count
    price = [0.0]
    for items in range(1, 1 << count):
        loom.compose(spare, [index for index in range(count) if items >> index & 1])
        price.append(float(loom.costs[spare]))
    return price


def _trees(tree: list[int], items: int) -> Partition:
    found = []
    while items:
        found.append([index for index in range(len(tree).bit_length()) if tree[items] >> index & 1])
        items ^= tree[items]
    return found
