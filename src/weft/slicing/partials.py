"""How many partials a window of range r and slide s is assembled from, by each way of cutting (004, Table 1)."""

from __future__ import annotations

import math


def panes(size: int, slide: int) -> int:
    """Panes cut at every multiple of the greatest common divisor (Li et al. 2005).

    Examples
    --------
    >>> panes(12, 4), panes(14, 8)
    (3, 7)
    """
    return size // math.gcd(size, slide)


def pairs(size: int, slide: int) -> int:
    """Pairs cut a slide in two, at r mod s (Krishnamurthy, Wu, Franklin 2006).

    Examples
    --------
    >>> pairs(12, 4), pairs(14, 8)
    (3, 3)
    """
    whole, rest = divmod(size, slide)
    return 2 * whole + 1 if rest else whole


def cutty(size: int, slide: int) -> int:
    """Cutty cuts only where windows begin and reads the last partial before it is complete (Carbone et al. 2016).

    Examples
    --------
    >>> cutty(12, 4), cutty(5, 3)
    (3, 2)
    """
    return -(-size // slide)
