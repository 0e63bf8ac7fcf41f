"""What the papers say a technique costs for a window of n partials (004 Table 4; twostacks with all ranges is ours)."""

from __future__ import annotations

import math
from collections.abc import Callable

Formula = Callable[[int], float]


def _log(n: int) -> float:
    return math.log2(n)


SINGLE: dict[str, Formula] = {
    "panes": lambda n: n - 1,
    "panes-inv": lambda n: 2,
    "flatfat": _log,
    "b-int": _log,
    "flatfit": lambda n: 3,
    "twostacks": lambda n: 3,
    "twostacks-lite": lambda n: 3,
    "daba": lambda n: 5,
    "daba-lite": lambda n: 4,
    "slickdeque-inv": lambda n: 2,
    "slickdeque-noninv": lambda n: 2,
}
WORST: dict[str, Formula] = {
    **SINGLE,
    "flatfit": lambda n: n,
    "twostacks": lambda n: n,
    "twostacks-lite": lambda n: n,
    "daba": lambda n: 8,
    "daba-lite": lambda n: 6,
    "slickdeque-noninv": lambda n: n,
}
ALL_RANGES: dict[str, Formula] = {
    "panes": lambda n: n * (n - 1) / 2,
    "flatfat": lambda n: n * _log(n),
    "b-int": lambda n: n * _log(n),
    "flatfit": lambda n: 3 * n,
    "twostacks": lambda n: n + 2,
    "slickdeque-inv": lambda n: 2 * n,
    "slickdeque-noninv": lambda n: n,
}
PARTIALS: dict[str, Formula] = {
    "panes": lambda n: n,
    "panes-inv": lambda n: n,
    "flatfat": lambda n: 2 * 2 ** math.ceil(_log(n)),
    "b-int": lambda n: 2 * 2 ** math.ceil(_log(n)),
    "flatfit": lambda n: 2 * n,
    "twostacks": lambda n: 2 * n,
    "twostacks-lite": lambda n: n + 1,
    "daba": lambda n: 2 * n,
    "daba-lite": lambda n: n + 2,
    "slickdeque-inv": lambda n: n + 1,
    "slickdeque-noninv": lambda n: 2 * n,
}


def harmonic(n: int) -> float:
    """The mean number of right-to-left maxima of n random numbers: how long a monotonic deque is."""
    return sum(1 / k for k in range(1, n + 1))
