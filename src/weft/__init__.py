"""Weft: thousands of sliding-window queries over one stream for the price of one, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._version import __version__
from weft.errors import QueriesError, QueryError, WeftError
from weft.query.limits import Limits
from weft.store.cache import place_kernels

if TYPE_CHECKING:
    from weft.evaluate.window import SlidingWindow
    from weft.launch.engine import Engine
    from weft.spark.answers import Answers
    from weft.spark.live.engine import LiveEngine

__all__ = [
    "Answers",
    "Engine",
    "Limits",
    "LiveEngine",
    "QueriesError",
    "QueryError",
    "SlidingWindow",
    "WeftError",
    "__version__",
]

place_kernels(Path(__file__).parent / "evaluate")

_ROOMS = {
    "Answers": "weft.spark.answers",
    "Engine": "weft.launch.engine",
    "LiveEngine": "weft.spark.live.engine",
    "SlidingWindow": "weft.evaluate.window",
}


def __getattr__(name: str) -> Any:
    """Import what needs Spark or numba only when it is asked for: kernels and plans work without a session."""
    if name not in _ROOMS:
        raise AttributeError(f"module weft has no attribute {name}")
    from importlib import import_module

    return getattr(import_module(_ROOMS[name]), name)
