"""Answers kept in this process, for tests and notebooks.

**Exactly once**: a batch that is delivered again takes its own place. Nothing survives the process: after a restart the
sink holds what is delivered from then on.
"""

from __future__ import annotations

import pyarrow as pa

from weft.job.sink import CommittedBatch


class MemorySink:
    """Holds every answer as Arrow tables.

    Examples
    --------
    >>> sink = MemorySink()
    >>> sink.deliver(CommittedBatch(0, ()))
    >>> sink.queries
    ()
    """

    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self._tables: dict[str, dict[int, pa.Table]] = {}

    def open(self) -> None:
        """Nothing to do."""

    def deliver(self, batch: CommittedBatch) -> None:
        """Keep the rows of a batch."""
        for answers in batch.answers:
            rows = pa.concat_tables([answers.schema.empty_table(), *answers.tables()])
            self._tables.setdefault(answers.query, {})[batch.number] = rows

    def close(self) -> None:
        """Nothing to do: the answers stay."""

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries of which something is known."""
        return tuple(self._tables)

    def table(self, query: str) -> pa.Table:
        """All answers of a query, in the order of their batches."""
        batches = self._tables[query]
        return pa.concat_tables(batches[number] for number in sorted(batches))
