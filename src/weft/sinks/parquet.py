"""Answers as Parquet files, in the layout of ``weft run``: ``DIR/query=<name>/*.parquet``.

**Exactly once.** A file appears under its final name only after the commit of its batch, complete, by one rename or
link; its name follows from its batch, so a batch that is delivered again finds its files in place. A reader
that lists the folder sees every row at most once, and every row that was shown before: it may see part of the last
batches, never a row that is not committed and never one twice.

**The rule for readers, and for compaction.** *A file that readers can see never changes and never goes away.*
A reader lists a folder first and opens the files later. Whatever it has listed must therefore stay as it is, and
what is in the folder is listed: so a file that replaces others would, for some reader, either stand beside them (rows
twice) or be missed (rows lost, and Hadoop's listing skips vanished files without a word). No order of renames avoids
this. Small files are therefore compacted *before* anybody sees them: they wait in the hidden folder ``DIR/.weft``,
a query's first one not at all, the next ones until ``every`` seconds have passed since the query's last file
appeared or until they are no longer small together, and appear as one file.

**Names.** ``batch-<n>-<ordinal>.parquet`` is a large file of batch n. ``batch-<n>.parquet`` holds the small files of
batch n and of the batches after it, up to the one that its footer names. On disks of this machine names are taken by
linking, which only one process can: where an old driver still runs beside its successor and both compact the same
files, one of them fails to take the name and throws its copy away. Elsewhere (HDFS, object stores) a name is looked for
and then taken by a rename, which would replace a file that came in between: there the lease of the checkpoint alone
keeps the old driver out.
"""

from __future__ import annotations

import threading
import time

from pyarrow import fs

from weft.errors import UseError, WeftError
from weft.job.sink import CommittedBatch
from weft.sinks.shelf import Shelf
from weft.store.folder import Folder

HIDDEN = ".weft"
RUN = ".run"
"""The file that names the checkpoint whose answers these are."""
SMALL = 32 << 20
EVERY = 10.0


class ParquetSink:
    """Writes ``path/query=<name>/*.parquet``.

    Parameters
    ----------
    path
        The folder: a path on this machine, or a URI that Arrow reaches.
    every
        At most one file a query appears in so many seconds, as long as the files are small.
    small
        Files of fewer bytes are compacted.
    """

    def __init__(self, path: str, *, every: float = EVERY, small: int = SMALL, name: str | None = None) -> None:
        self.folder = Folder(path)
        self.name = name or f"parquet:{self.folder.root}"
        self.every = every
        self.small = small
        self._hidden = Folder(f"{self.folder.root}/{HIDDEN}")
        self._shelves: dict[str, Shelf] = {}
        self._run: str | None = None
        self._lock = threading.Lock()
        """Held for a whole delivery, and while the files of one query are compacted: a delivery goes first."""
        self._wake = threading.Event()
        self._keeper: threading.Thread | None = None
        self._closing = False
        self._failure: Exception | None = None

    def open(self) -> None:
        """Find what waits from an earlier life, and begin to show it."""
        self._closing = False
        self._failure = None
        self._shelves = {name: self._shelf(name) for name in self._hidden.queries()}
        self._run = self._read_run()
        self._keeper = threading.Thread(target=self._keep, name="weft-parquet", daemon=True)
        self._keeper.start()

    def deliver(self, batch: CommittedBatch) -> None:
        """Take the files of a batch: large ones appear at once, small ones wait to be compacted."""
        self._raise_failure()
        self._claim(batch.run)
        with self._lock:
            for answers in batch.answers:
                if answers.query not in self._shelves:
                    self._shelves[answers.query] = self._shelf(answers.query)
                shelf = self._shelves[answers.query]
                shelf.take(batch.number, answers.files, self.small)
                if not answers.files:
                    shelf.say_schema(answers.schema)
        self._wake.set()

    def flush(self) -> None:
        """Show everything that was delivered, now."""
        self._raise_failure()
        for shelf in tuple(self._shelves.values()):
            with self._lock:
                while shelf.place(time.monotonic(), self.small):
                    pass

    def close(self) -> None:
        """Show everything that was delivered, and stop."""
        self._closing = True
        self._wake.set()
        if self._keeper is not None:
            self._keeper.join()
            self._keeper = None
        self.flush()

    def _shelf(self, query: str) -> Shelf:
        return Shelf(self.folder.of(query), self._hidden.of(query))

    def _keep(self) -> None:
        """Show what is due, until the sink is closed."""
        try:
            while not self._closing:
                self._wake.wait(self._show_due())
                self._wake.clear()
        except Exception as error:
            self._failure = error

    def _show_due(self) -> float | None:
        """Show what is due; seconds until more will be, None if nothing waits."""
        pauses: list[float] = []
        for shelf in tuple(self._shelves.values()):
            with self._lock:
                pause = shelf.due_in(time.monotonic(), self.every, self.small)
                if pause == 0 and not self._closing:
                    shelf.place(time.monotonic(), self.small)
                    pause = shelf.due_in(time.monotonic(), self.every, self.small)
            if pause is not None:
                pauses.append(pause)
        return min(pauses, default=None)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise WeftError(f"sink {self.name}: small files could not be compacted: {self._failure}") from self._failure

    def _claim(self, run: str) -> None:
        """Take the folder for the answers of one checkpoint: the batches of another one have the same numbers."""
        if self._run is None:
            if self.folder.queries():
                raise UseError(f"{self.folder.root} holds answers of another run: give another folder")
            self._write_run(run)
            self._run = run
        if self._run != run:
            raise UseError(f"{self.folder.root} holds the answers of another checkpoint: give another folder")

    def _read_run(self) -> str | None:
        filesystem, path = self._hidden.open(RUN)
        if filesystem.get_file_info(path).type == fs.FileType.NotFound:
            return None
        with filesystem.open_input_stream(path) as file:
            return bytes(file.read()).decode()

    def _write_run(self, run: str) -> None:
        filesystem, path = self._hidden.open(RUN)
        filesystem.create_dir(self._hidden.open()[1], recursive=True)
        with filesystem.open_output_stream(f"{path}.writing") as file:
            file.write(run.encode())
        filesystem.move(f"{path}.writing", path)
