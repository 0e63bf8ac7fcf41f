"""Failures of Spark in a few lines: people see what went wrong, and the whole trace if they ask for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from weft.errors import WeftError


@contextmanager
def told_in_short(where: str = "") -> Iterator[None]:
    """Have a failure of Spark leave the block as an error of ours that says where, with the trace behind it."""
    try:
        yield
    except WeftError:
        raise
    except Exception as error:
        message = _spark_failure(error)
        if message is None:
            raise
        raise WeftError(f"Spark failed{where}: {message}\n  weft --debug shows the whole trace") from error


def _spark_failure(error: Exception) -> str | None:
    if "pyspark" not in sys.modules:  # a command that needs no Spark does not wait for its import
        return None
    from weft.spark.failures import spark_failure

    return spark_failure(error)
