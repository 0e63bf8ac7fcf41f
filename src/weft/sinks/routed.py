"""A sink that takes only some queries.

**Exactly once**: as the sink behind it. A route that is changed holds from the next batch on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from weft.job.sink import CommittedBatch, Sink


class RoutedSink:
    """Delivers the queries whose names match one of the patterns, as of a shell, to another sink.

    Examples
    --------
    >>> from weft.sinks.memory import MemorySink
    >>> RoutedSink(MemorySink(), ["delays*"]).takes("delays_by_hour")
    True
    """

    def __init__(self, sink: Sink, queries: Sequence[str], name: str | None = None) -> None:
        self.sink = sink
        self.queries = tuple(queries)
        # the sink behind it bears the name too: two routes to one place are told apart there as well
        self.name = sink.name = name or f"{','.join(self.queries)}={sink.name}"

    def takes(self, query: str) -> bool:
        """Whether the answers of a query go here."""
        return any(fnmatchcase(query, pattern) for pattern in self.queries)

    def open(self) -> None:
        """Open the other sink."""
        self.sink.open()

    def deliver(self, batch: CommittedBatch) -> None:
        """Deliver what is for it."""
        self.sink.deliver(replace(batch, answers=tuple(one for one in batch.answers if self.takes(one.query))))

    def close(self) -> None:
        """Close the other sink."""
        self.sink.close()
