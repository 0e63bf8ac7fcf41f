"""Whether two values are the same, as far as doubles can be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

CLOSE = 1e-9
"""Doubles that were added in another order differ by less; the samples are such that no digits cancel."""


def agree(ours: Any, theirs: Any) -> bool:
    """Whether two values, or two rows of them, are the same; NaN is NaN, and doubles are close.

    Examples
    --------
    >>> agree((1, 0.1 + 0.2, None), (1, 0.3, None)), agree(float("nan"), float("nan")), agree(1, None)
    (True, True, False)
    """
    if isinstance(ours, tuple | list) and isinstance(theirs, tuple | list):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if isinstance(ours, float | np.floating) and isinstance(theirs, float | np.floating):
        return bool(math.isclose(ours, theirs, rel_tol=CLOSE, abs_tol=CLOSE) or (ours != ours and theirs != theirs))
    return bool(ours == theirs)
