"""The aggregate operations as techniques call them: plain, or counted into a tally.

``tally`` holds the operations so far, the most that one slide took, and the count when the current slide began. The
plain variants do not touch it, so after inlining nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.evaluate.compile import invert, merge


def combine(tally: np.ndarray, older: Any, newer: Any) -> Any:
    """``older`` merged with ``newer``."""
    return merge(older, newer)


def remove(tally: np.ndarray, total: Any, oldest: Any) -> Any:
    """``total`` without ``oldest``."""
    return invert(total, oldest)


def end_slide(tally: np.ndarray) -> None:
    """Mark the end of one slide's work."""


def counted_combine(tally: np.ndarray, older: Any, newer: Any) -> Any:
    """``combine``, counted."""
    tally[0] += 1
    return merge(older, newer)


def counted_remove(tally: np.ndarray, total: Any, oldest: Any) -> Any:
    """``remove``, counted."""
    tally[0] += 1
    return invert(total, oldest)


def counted_end_slide(tally: np.ndarray) -> None:
    """``end_slide``, keeping the most that one slide took."""
    tally[1] = max(tally[1], tally[0] - tally[2])
    tally[2] = tally[0]


PLAIN: dict[str, Callable[..., Any]] = {"combine": combine, "remove": remove, "end_slide": end_slide}
COUNTED: dict[str, Callable[..., Any]] = {
    "combine": counted_combine,
    "remove": counted_remove,
    "end_slide": counted_end_slide,
}


def new_tally() -> np.ndarray:
    """A tally of nothing."""
    return np.zeros(3, np.int64)
