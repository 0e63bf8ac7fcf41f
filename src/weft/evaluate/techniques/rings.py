"""Rings: positions count items from the beginning; a ring of a power of two slots holds the latest of them."""

from __future__ import annotations

import numpy as np

START = np.int64(0)
"""Position zero, typed so that a loop compiles for one signature."""


def slots_for(size: int) -> int:
    """The smallest power of two that holds ``size`` items.

    Examples
    --------
    >>> [slots_for(size) for size in (1, 2, 3, 1000)]
    [1, 2, 4, 1024]
    """
    return 1 << max(size - 1, 0).bit_length()
