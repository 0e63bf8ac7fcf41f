"""Who cuts rows into slices: Spark's own aggregation in the JVM, or compiled kernels in workers or in this process."""

from __future__ import annotations

from typing import Literal, get_args

from weft.errors import WeftError

CutEngine = Literal["jvm", "workers", "driver"]
CutWish = Literal["auto", "jvm", "workers", "driver"]
"""An engine, or the one that should be the fastest."""


def check_cut(cut: str) -> None:
    """Refuse what is no engine."""
    if cut not in get_args(CutWish):
        raise WeftError(f"rows cannot be cut by {cut!r}: there are {', '.join(get_args(CutWish))}")
