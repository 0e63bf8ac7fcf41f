"""What workers need of the driver, as bytes: read once by each of them, however many tasks it gets."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark import cloudpickle


def sendable(what: object) -> bytes:
    """A plan, or what was made of one, for the workers; functions in it ask for more than pickle."""
    data: bytes = cloudpickle.dumps(what)  # type: ignore[no-untyped-call]
    return data


@lru_cache(maxsize=4)
def sent(data: bytes) -> Any:
    """The same again, once for all tasks that a worker sees of it."""
    return cloudpickle.loads(data)
