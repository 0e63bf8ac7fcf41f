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
appeared or until they are no longer small together, and appear as one file. Answers that are smaller still come as
pieces of packs (:mod:`weft.store.packs`), a file a batch, which wait there as they are: only what appears is Parquet.

**Names.** ``batch-<n>-<ordinal>.parquet`` is a large file of batch n. ``batch-<n>.parquet`` holds the small files of
batch n and of the batches after it, up to the one that its footer names. On disks of this machine names are taken by
linking, which only one process can: where an old driver still runs beside its successor and both compact the same
files, one of them fails to take the name and throws its copy away. Elsewhere (HDFS, object stores) a name is looked for
and then taken by a rename, which would replace a file that came in between: there the lease of the checkpoint alone
keeps the old driver out. Everywhere the process that opened the folder last owns it: others show nothing any more.
"""

from __future__ import annotations

import threading
import time
from uuid import uuid4

from weft.errors import UseError, WeftError
from weft.job.sink import CommittedBatch
from weft.sinks.packed import PACKS, PackedQuery, Packs, split
from weft.sinks.shelf import Shelf, WaitingPieces, appear
from weft.store.folder import Folder

HIDDEN = ".weft"
RUN = ".run"
"""The file that names the checkpoint whose answers these are."""
OWNER = ".owner"
"""The file that names the process which opened the folder last."""
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
        self._packs = Packs(Folder(f"{self._hidden.root}/{PACKS}"), appear)
        self._shelves: dict[str, Shelf] = {}
        self._owner = ""
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
        self._owner = uuid4().hex
        self._write(OWNER, self._owner)
        self._shelves = {name: self._shelf(name) for name in self._hidden.queries()}
        for pack in self._packs.found():
            for name, some in pack.queries.items():
                self._of(name).take_pieces(pack.batch, WaitingPieces(some.pieces, pack, some.files))
        self._run = self._read(RUN)
        self._keeper = threading.Thread(target=self._keep, name="weft-parquet", daemon=True)
        self._keeper.start()

    def deliver(self, batch: CommittedBatch) -> None:
        """Take the files of a batch: large ones appear at once, small ones wait to be compacted."""
        self._raise_failure()
        self._claim(batch.run)
        with self._lock:
            self._take(batch)
        self._wake.set()

    def _take(self, batch: CommittedBatch) -> None:
        """Large files first, then packs, then small files: whatever has come of these, the rest will come again."""
        tiny: dict[str, tuple[list[str], dict[int, int]]] = {}
        packed: dict[str, PackedQuery] = {}
        for answers in batch.answers:
            shelf = self._of(answers.query)
            files, pieces = split(answers.files)
            tiny[answers.query] = files, shelf.take_large(batch.number, files, self.small)
            if pieces and not shelf.has(batch.number):
                packed[answers.query] = PackedQuery(pieces, len(tiny[answers.query][1]))
            if not answers.files:
                shelf.say_schema(answers.schema)
        if packed:
            pack = self._packs.keep(batch.number, packed)
            for name, some in pack.queries.items():
                self._of(name).take_pieces(batch.number, WaitingPieces(some.pieces, pack, some.files))
        for name, (files, small) in tiny.items():
            self._of(name).take_small(batch.number, files, small)

    def flush(self) -> None:
        """Show everything that was delivered, now."""
        self._raise_failure()
        for shelf in tuple(self._shelves.values()):
            with self._lock:
                while shelf.due_in(time.monotonic(), self.every, self.small) is not None:
                    self._place(shelf)

    def close(self) -> None:
        """Show everything that was delivered, and stop."""
        self._closing = True
        self._wake.set()
        if self._keeper is not None:
            self._keeper.join()
            self._keeper = None
        self.flush()

    def _shelf(self, query: str) -> Shelf:
        return Shelf(self.folder.of(query), self._hidden.of(query), query)

    def _of(self, query: str) -> Shelf:
        """The shelf of a query."""
        if query not in self._shelves:
            self._shelves[query] = self._shelf(query)
        return self._shelves[query]

    def _place(self, shelf: Shelf) -> None:
        """Show what waits of a query."""
        if self._read(OWNER) != self._owner:
            raise WeftError(f"{self.folder.root} belongs to another process, which opened it since")
        shelf.place(time.monotonic(), self.small)

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
                    self._place(shelf)
                    pause = shelf.due_in(time.monotonic(), self.every, self.small)
            if pause is not None:
                pauses.append(pause)
        return min(pauses, default=None)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise WeftError(f"sink {self.name}: small answers could not be shown: {self._failure}") from self._failure

    def _claim(self, run: str) -> None:
        """Take the folder for the answers of one checkpoint: the batches of another one have the same numbers."""
        if self._run is None:
            if self.folder.queries():
                raise UseError(f"{self.folder.root} holds answers of another run: give another folder")
            self._write(RUN, run)
            self._run = run
        if self._run != run:
            raise UseError(f"{self.folder.root} holds the answers of another checkpoint: give another folder")

    def _read(self, name: str) -> str | None:
        filesystem, path = self._hidden.open(name)
        try:
            with filesystem.open_input_stream(path, compression=None) as file:
                return bytes(file.read()).decode()
        except FileNotFoundError:
            return None

    def _write(self, name: str, text: str) -> None:
        filesystem, path = self._hidden.open(name)
        filesystem.create_dir(self._hidden.open()[1], recursive=True)
        with filesystem.open_output_stream(f"{path}.writing", compression=None) as file:
            file.write(text.encode())
        filesystem.move(f"{path}.writing", path)
