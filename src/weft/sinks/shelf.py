"""One query's folder of Parquet files: what readers see of it, and what is small and waits to be shown as one file.

The rules that it keeps are told in :mod:`weft.sinks.parquet`. Small files wait in a hidden folder of the query; pieces
of packs wait where the packs are, which :mod:`weft.sinks.packed` keeps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from weft.errors import WeftError
from weft.sinks.packed import KeptPack
from weft.step.parquet import parquet_options
from weft.store.folder import Folder
from weft.store.packs import Piece

THROUGH = b"weft.through"
"""The key in a file's footer under which stands the last batch that it holds."""
EMPTY = "part-empty.parquet"
WRITING = ".writing-"
_WAITING = re.compile(r"\.batch-(\d+)-(\d+)-of-(\d+)$")
_SHOWN = re.compile(r"batch-(\d+)\.parquet$")


@dataclass(frozen=True, order=True)
class Waiting:
    """A small file that nobody sees yet."""

    batch: int
    ordinal: int
    count: int
    """How many small files the batch has: while one is missing, its delivery is under way or will come again."""
    size: int

    @property
    def file(self) -> str:
        """Its name, which listings pass over."""
        return f".batch-{self.batch:010}-{self.ordinal:04}-of-{self.count:04}"


@dataclass(frozen=True)
class WaitingPieces:
    """What a pack holds of the query."""

    pieces: tuple[Piece, ...]
    pack: KeptPack
    files: int
    """How many small files the batch has beside them."""

    @property
    def size(self) -> int:
        """How many bytes."""
        return sum(piece.size for piece in self.pieces)


@dataclass
class WaitingBatch:
    """What waits of one batch."""

    number: int
    files: list[Waiting] = field(default_factory=list)
    pieces: WaitingPieces | None = None

    @property
    def is_whole(self) -> bool:
        """Whether everything small of the batch is here."""
        expected = self.files[0].count if self.pieces is None else self.pieces.files
        return len(self.files) == expected

    @property
    def size(self) -> int:
        """How many bytes."""
        return sum(file.size for file in self.files) + (0 if self.pieces is None else self.pieces.size)


class Shelf:
    """The files of one query: ``shown`` is the folder that readers list, ``hidden`` the one that they do not."""

    def __init__(self, shown: Folder, hidden: Folder, query: str = "") -> None:
        self.shown, self.hidden, self.query = shown, hidden, query
        for folder in (shown, hidden):
            filesystem, path = folder.open()
            filesystem.create_dir(path, recursive=True)
        self._waiting: dict[tuple[int, int], Waiting] = {}
        self._packed: dict[int, WaitingPieces] = {}
        """By batch."""
        self._through = -1
        self._placed_at: float | None = None
        for name in _names(hidden):
            if name.startswith(WRITING):  # of a process that was ended meanwhile
                _delete(Folder(f"{hidden.root}/{name}"))
        self._look()

    def _look(self) -> None:
        """Learn from the names that are there what is shown, and what still waits."""
        starts = [int(found[1]) for name in _names(self.shown) if (found := _SHOWN.fullmatch(name))]
        self._through = self._holds_through(max(starts)) if starts else -1
        self._waiting = {}
        for name, size in _names(self.hidden).items():
            if found := _WAITING.fullmatch(name):
                waiting = Waiting(int(found[1]), int(found[2]), int(found[3]), size)
                self._waiting[waiting.batch, waiting.ordinal] = waiting
        self._packed = {batch: pieces for batch, pieces in self._packed.items() if pieces.pack.is_there}
        self._forget([batch for batch in self._batches() if batch.number <= self._through])

    def _holds_through(self, start: int) -> int:
        filesystem, path = self.shown.open(compacted(start))
        said = pq.read_metadata(path, filesystem=filesystem).metadata or {}
        return int(said.get(THROUGH, start))

    def has(self, batch: int) -> bool:
        """Whether everything of a batch is shown."""
        return batch <= self._through

    def take(self, batch: int, files: Sequence[str], small: int) -> None:
        """Show the large files of a batch and let the small ones wait, unless they are here already."""
        tiny = self.take_large(batch, files, small)
        self.take_small(batch, files, tiny)

    def take_large(self, batch: int, files: Sequence[str], small: int) -> dict[int, int]:
        """Show the large files of a batch, which come first; the small ones by their ordinals, and their sizes."""
        if self.has(batch):
            return {}
        sizes = {ordinal: _size(file) for ordinal, file in enumerate(files)}
        for ordinal, size in sizes.items():
            if size >= small:
                appear(files[ordinal], self.shown, alone(batch, ordinal))
        return {ordinal: size for ordinal, size in sizes.items() if size < small}

    def take_pieces(self, batch: int, waiting: WaitingPieces) -> None:
        """Have pieces of a pack wait; before the small files of the batch, of which they know the number."""
        if self.has(batch):
            waiting.pack.forget(self.query)
        else:
            self._packed[batch] = waiting

    def take_small(self, batch: int, files: Sequence[str], tiny: dict[int, int]) -> None:
        """Have the small files of a batch wait; the last to come, so that then nothing of it is left to deliver."""
        for ordinal, size in tiny.items():
            waiting = Waiting(batch, ordinal, len(tiny), size)
            appear(files[ordinal], self.hidden, waiting.file)
            self._waiting[batch, ordinal] = waiting

    def say_schema(self, schema: pa.Schema) -> None:
        """A query without answers so far gets an empty file, which tells its columns and appears whole."""
        if not any(name.endswith(".parquet") for name in _names(self.shown)):
            name = f"{WRITING}{uuid4().hex[:8]}"
            filesystem, path = self.hidden.open(name)
            pq.write_table(schema.empty_table(), path, filesystem=filesystem, store_schema=False)
            written = f"{self.hidden.root}/{name}"
            appear(written, self.shown, EMPTY)
            _delete(Folder(written))

    def due_in(self, now: float, every: float, small: int) -> float | None:
        """Seconds until waiting files are to be shown: 0 for a query's first and for many; None if none waits."""
        if next(self._whole_batches(), None) is None:
            return None
        if self._placed_at is None or sum(batch.size for batch in self._batches()) >= small:
            return 0.0
        return max(self._placed_at + every - now, 0.0)

    def place(self, now: float, small: int) -> bool:
        """Show the oldest of what waits, as much as makes one file that is not small; False if nothing waits."""
        batches: list[WaitingBatch] = []
        size = 0
        for batch in self._whole_batches():
            if size >= small:
                break
            batches.append(batch)
            size += batch.size
        if not batches:
            return False
        self._placed_at = now
        try:
            self._show(batches)
        except FileNotFoundError:
            self._look()  # a process that took over has shown them
        return True

    def _batches(self) -> Iterator[WaitingBatch]:
        """The batches of which something waits, in order."""
        files = {number: list(some) for number, some in groupby(sorted(self._waiting.values()), lambda one: one.batch)}
        for number in sorted(files.keys() | self._packed.keys()):
            yield WaitingBatch(number, files.get(number, []), self._packed.get(number))

    def _whole_batches(self) -> Iterator[WaitingBatch]:
        """The batches that wait, in order, up to the first whose delivery is not complete."""
        for batch in self._batches():
            if not batch.is_whole:
                return
            yield batch

    def _show(self, batches: Sequence[WaitingBatch]) -> None:
        if len(batches) == 1 and batches[0].pieces is None and len(batches[0].files) == 1:
            self._show_as(self._place_of(batches[0].files[0]), batches)
            return
        alike = self._alike(batches)
        made = None if alike is None else self._as_one(*alike)
        if alike is None or made is None:  # types that only Spark can write, or two schemas in one batch
            self._show_each(batches[0])
            return
        self._show_as(made, alike[0])
        _delete(Folder(made))

    def _show_as(self, made: str, batches: Sequence[WaitingBatch]) -> None:
        """Have a file be what readers see of some batches."""
        if appear(made, self.shown, compacted(batches[0].number)):
            self._through = batches[-1].number
            self._forget(batches)
        else:
            self._look()  # a process that took over has shown these batches, and perhaps others with them

    def _alike(
        self, batches: Sequence[WaitingBatch]
    ) -> tuple[Sequence[WaitingBatch], list[pa.Table], pq.ParquetFile | None] | None:
        """The first batches that have the same columns, their rows, and a file of theirs; None if not even one has."""
        rows: list[pa.Table] = []
        first: pq.ParquetFile | None = None
        for count, batch in enumerate(batches):
            files = [self._parquet(waiting.file) for waiting in batch.files]
            some = [file.read() for file in files] + ([] if batch.pieces is None else self._pieces(batch.pieces))
            like = first or next(iter(files), None)
            same = all(file.schema.equals(like.schema) for file in files if like is not None)
            if not same or any(not table.schema.equals((rows or some)[0].schema) for table in some):
                return None if count == 0 else (batches[:count], rows, first)
            rows += some
            first = like
        return batches, rows, first

    @staticmethod
    def _pieces(waiting: WaitingPieces) -> list[pa.Table]:
        """The rows of pieces, as a Parquet file would give them back."""
        return [decoded(table) for table in waiting.pack.read(waiting.pieces)]

    def _as_one(
        self, together: Sequence[WaitingBatch], rows: Sequence[pa.Table], like: pq.ParquetFile | None
    ) -> str | None:
        """One file for all these, still hidden; None if Arrow cannot write the like of them."""
        said = {} if like is None else like.metadata.metadata or {}
        made = self._written(pa.concat_tables(rows), {**said, THROUGH: str(together[-1].number)})
        if like is None or self._parquet(made).schema.equals(like.schema):
            return f"{self.hidden.root}/{made}"
        _delete(Folder(f"{self.hidden.root}/{made}"))
        return None

    def _written(self, rows: pa.Table, said: dict[bytes, str]) -> str:
        """Rows in a hidden file, which tells something in its footer; its name."""
        name = f"{WRITING}{uuid4().hex[:8]}"
        filesystem, path = self.hidden.open(name)
        with pq.ParquetWriter(path, rows.schema, filesystem=filesystem, **parquet_options(rows.schema)) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata(said)
        return name

    def _show_each(self, batch: WaitingBatch) -> None:
        for waiting in batch.files:
            appear(self._place_of(waiting), self.shown, alone(waiting.batch, waiting.ordinal))
        if batch.pieces is not None:
            made = self._written(pa.concat_tables(self._pieces(batch.pieces)), {})
            appear(f"{self.hidden.root}/{made}", self.shown, packed(batch.number))
            _delete(Folder(f"{self.hidden.root}/{made}"))
        self._forget([batch])

    def _place_of(self, waiting: Waiting) -> str:
        return f"{self.hidden.root}/{waiting.file}"

    def _parquet(self, file: str) -> pq.ParquetFile:
        filesystem, path = self.hidden.open(file)
        return pq.ParquetFile(path, filesystem=filesystem)

    def _forget(self, batches: Collection[WaitingBatch]) -> None:
        for batch in batches:
            for waiting in batch.files:
                _delete(Folder(self._place_of(waiting)))
                self._waiting.pop((waiting.batch, waiting.ordinal), None)
            if batch.pieces is not None:
                del self._packed[batch.number]
                batch.pieces.pack.forget(self.query)


def decoded(rows: pa.Table) -> pa.Table:
    """The same rows with texts instead of their numbers in a dictionary."""
    schema = pa.schema(
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in rows.schema
    )
    return rows.cast(schema)


def alone(batch: int, ordinal: int) -> str:
    """The name of a file that is shown as it is.

    Examples
    --------
    >>> alone(12, 3)
    'batch-0000000012-0003.parquet'
    """
    return f"batch-{batch:010}-{ordinal:04}.parquet"


def packed(batch: int) -> str:
    """The name of the file for what packs hold of a batch, where that is shown by itself.

    Examples
    --------
    >>> packed(12)
    'batch-0000000012-packed.parquet'
    """
    return f"batch-{batch:010}-packed.parquet"


def compacted(batch: int) -> str:
    """The name of the file that holds all small ones of a batch, and perhaps of the next ones.

    Examples
    --------
    >>> compacted(12)
    'batch-0000000012.parquet'
    """
    return f"batch-{batch:010}.parquet"


def appear(source: str, target: Folder, name: str) -> bool:
    """Have a whole file stand under a name at once; False if the name is taken."""
    filesystem, path = Folder(source).open()
    target_filesystem, target_path = target.open(name)
    if isinstance(filesystem, fs.LocalFileSystem) and isinstance(target_filesystem, fs.LocalFileSystem):
        try:
            os.link(path, target_path)
        except FileExistsError:
            return False
        except FileNotFoundError:
            raise
        except OSError:
            pass  # another device, or no hard links: copy
        else:
            return True
    if _is_there(target_filesystem, target_path):
        return False
    copy = target.open(f"{WRITING}{uuid4().hex[:8]}")[1]
    fs.copy_files(path, copy, source_filesystem=filesystem, destination_filesystem=target_filesystem)
    return _rename(target_filesystem, copy, target_path)


def _rename(filesystem: fs.FileSystem, path: str, target: str) -> bool:
    """Rename a file unless the name is taken: by a link where there are links, as a rename would replace the other."""
    try:
        if isinstance(filesystem, fs.LocalFileSystem):
            with suppress(PermissionError):  # no hard links here
                os.link(path, target)
                filesystem.delete_file(path)
                return True
        filesystem.move(path, target)
    except OSError:
        if not _is_there(filesystem, target):
            raise
        filesystem.delete_file(path)
        return False
    return True


def _is_there(filesystem: fs.FileSystem, path: str) -> bool:
    return bool(filesystem.get_file_info(path).type != fs.FileType.NotFound)


def _names(folder: Folder) -> dict[str, int]:
    """The files of a folder, hidden ones too, and their sizes."""
    filesystem, path = folder.open()
    infos = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return {info.base_name: info.size for info in infos if info.type == fs.FileType.File}


def _size(file: str) -> int:
    filesystem, path = Folder(file).open()
    info = filesystem.get_file_info(path)
    if info.type != fs.FileType.File:
        raise WeftError(f"{file}, a committed file of answers, is not there")
    return int(info.size)


def _delete(folder: Folder) -> None:
    filesystem, path = folder.open()
    with suppress(FileNotFoundError):
        filesystem.delete_file(path)
