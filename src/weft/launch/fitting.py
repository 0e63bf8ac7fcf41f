"""Constants from times: those, none of them negative, that come nearest to the times of all trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

import numpy as np

from weft.algebra.numbers import Array
from weft.optimize.cut_choice import CutWork
from weft.optimize.work import Work


def fitted(works: Sequence[Work] | Sequence[CutWork], seconds: Sequence[float]) -> dict[str, float]:
    """The constants, none negative, for which the relative errors are least."""
    counts = np.array([astuple(work) for work in works]) / np.array(seconds)[:, None]
    scale = np.maximum(counts.max(axis=0), np.finfo(float).tiny)  # some trials may do nothing of a kind
    solved = least_squares(counts / scale, np.ones(len(works))) / scale
    return {item.name: float(value) for item, value in zip(fields(works[0]), solved, strict=True)}


def least_squares(matrix: Array, target: Array, rounds: int = 20_000) -> Array:
    """Non-negative x with the least squares of matrix x - target, coordinate by coordinate.

    Examples
    --------
    >>> least_squares(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 1.0])).round(6).tolist()
    [1.5, 0.0]
    """
    found = np.zeros(matrix.shape[1])
    gram, wanted = matrix.T @ matrix, matrix.T @ target
    for _ in range(rounds):
        for at in range(len(found)):
            rest = wanted[at] - gram[at] @ found + gram[at, at] * found[at]
            found[at] = max(rest / gram[at, at], 0.0) if gram[at, at] else 0.0
    return found
