"""Answers as Delta tables, one a query: ``DIR/query=<name>``.

They are written by the ``deltalake`` package (``pip install 'weft[delta]'``), without Spark and without jars.

**Exactly once.** A batch of a query is one commit of its table, which records the batch's number as the version of the
application ``weft-<checkpoint>``, as Delta's protocol provides. A batch that is delivered again finds its number
there and changes nothing. A reader of the table sees all answers of a batch, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weft.errors import UseError
from weft.job.sink import CommittedBatch, QueryAnswers
from weft.store.folder import Folder
from weft.store.location import STORES, Location

if TYPE_CHECKING:
    from deltalake import DeltaTable

REACHED = (*STORES, "az", "adl", "azure")
"""How URLs may begin for ``deltalake``; anything else it would take for a folder here."""


class DeltaSink:
    """Appends to ``path/query=<name>``.

    Parameters
    ----------
    path
        The folder of the tables: a path on this machine, or a URL that ``deltalake`` reaches.
    """

    def __init__(self, path: str, *, name: str | None = None) -> None:
        self.location = Location.of(path)
        if self.location.is_remote and self.location.scheme not in REACHED:
            known = ", ".join(f"{scheme}://" for scheme in REACHED)
            raise UseError(f"delta:{path}: no table can be written there; give a folder or a URL of {known}")
        self.name = name or f"delta:{self.location.text}"
        self._tables: dict[str, DeltaTable] = {}

    def open(self) -> None:
        """See that the package is there."""
        try:
            import deltalake  # noqa: F401
        except ImportError:
            raise UseError(f"sink {self.name} needs the package deltalake: pip install 'weft[delta]'") from None
        self._tables = {}

    def deliver(self, batch: CommittedBatch) -> None:
        """One commit a query, unless the table has it."""
        application = f"weft-{batch.run}"
        for answers in batch.answers:
            table = self._table(answers)
            done = table.transaction_version(application)
            if answers.files and (done is None or done < batch.number):
                self._append(table, answers, application, batch.number)

    def close(self) -> None:
        """Nothing is held open."""
        self._tables = {}

    def _table(self, answers: QueryAnswers) -> DeltaTable:
        from deltalake import DeltaTable

        if answers.query in self._tables:
            self._tables[answers.query].update_incremental()
        else:
            place = self.location.beneath(f"query={Folder.encoded(answers.query)}").for_delta
            self._tables[answers.query] = DeltaTable.create(place, storable(answers.schema), mode="ignore")
        return self._tables[answers.query]

    def _append(self, table: DeltaTable, answers: QueryAnswers, application: str, batch: int) -> None:
        from deltalake import CommitProperties, Transaction, write_deltalake

        rows = pa.concat_tables(answers.tables()).cast(storable(answers.schema))
        said = CommitProperties(app_transactions=[Transaction(application, batch)])
        write_deltalake(table, rows, mode="append", commit_properties=said)


def storable(schema: pa.Schema) -> pa.Schema:
    """The schema that a table gets: every column may be NULL, as later queries of the name may leave it so."""
    return pa.schema([field.with_nullable(True) for field in schema])
