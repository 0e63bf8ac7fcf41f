"""One query's folder of Parquet files: what readers see of it, and the small files that wait to be shown as one.

The rules that it keeps are told in :mod:`weft.sinks.parquet`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, takewhile
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from weft.errors import WeftError
from weft.step.parquet import parquet_options
from weft.store.folder import Folder

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


class Shelf:
    """The files of one query: ``shown`` is the folder that readers list, ``hidden`` the one that they do not."""

    def __init__(self, shown: Folder, hidden: Folder) -> None:
        self.shown, self.hidden = shown, hidden
        for folder in (shown, hidden):
            filesystem, path = folder.open()
            filesystem.create_dir(path, recursive=True)
        self._waiting: dict[tuple[int, int], Waiting] = {}
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
        self._forget([waiting for waiting in self._waiting.values() if waiting.batch <= self._through])

    def _holds_through(self, start: int) -> int:
        filesystem, path = self.shown.open(compacted(start))
        said = pq.read_metadata(path, filesystem=filesystem).metadata or {}
        return int(said.get(THROUGH, start))

    def take(self, batch: int, files: Sequence[str], small: int) -> None:
        """Show the large files of a batch and let the small ones wait, unless they are here already."""
        if batch <= self._through:
            return
        sizes = [_size(file) for file in files]
        tiny = [ordinal for ordinal, size in enumerate(sizes) if size < small]
        # the large ones first: once all small files of a batch are here, nothing of it is left to deliver
        for ordinal in sorted(set(range(len(files))) - set(tiny)):
            appear(files[ordinal], self.shown, alone(batch, ordinal))
        for ordinal in tiny:
            waiting = Waiting(batch, ordinal, len(tiny), sizes[ordinal])
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
        if self._placed_at is None or sum(waiting.size for waiting in self._waiting.values()) >= small:
            return 0.0
        return max(self._placed_at + every - now, 0.0)

    def place(self, now: float, small: int) -> bool:
        """Show the oldest waiting files, as many as make one file that is not small; False if none waits."""
        batches: list[list[Waiting]] = []
        size = 0
        for batch in self._whole_batches():
            if size >= small:
                break
            batches.append(batch)
            size += sum(waiting.size for waiting in batch)
        if not batches:
            return False
        self._placed_at = now
        try:
            self._show(batches)
        except FileNotFoundError:
            self._look()  # a process that took over has shown them
        return True

    def _whole_batches(self) -> Iterator[list[Waiting]]:
        """The batches that wait, in order, up to the first whose delivery is not complete."""
        for _, group in groupby(sorted(self._waiting.values()), lambda waiting: waiting.batch):
            batch = list(group)
            if len(batch) < batch[0].count:
                return
            yield batch

    def _show(self, batches: list[list[Waiting]]) -> None:
        opened = [[self._parquet(waiting.file) for waiting in batch] for batch in batches]
        schema = opened[0][0].schema
        alike = list(takewhile(lambda files: all(file.schema.equals(schema) for file in files), opened))
        together = [waiting for batch in batches[: len(alike)] for waiting in batch]
        made = self._as_one(together, [file for files in alike for file in files])
        if made is None:  # types that only Spark can write, or two schemas in one batch
            self._show_each(batches[0])
        elif appear(made, self.shown, compacted(together[0].batch)):
            self._through = together[-1].batch
            self._forget(together)
        else:
            self._look()  # a process that took over has shown these batches, and perhaps others with them
        if made is not None and len(together) > 1:
            _delete(Folder(made))

    def _as_one(self, together: list[Waiting], files: list[pq.ParquetFile]) -> str | None:
        """The one file for these small ones, still hidden; None if Arrow cannot write the like of them."""
        if len(together) < 2:
            return self._place_of(together[0]) if together else None
        name = f"{WRITING}{uuid4().hex[:8]}"
        rows = pa.concat_tables(file.read() for file in files)
        filesystem, path = self.hidden.open(name)
        with pq.ParquetWriter(path, rows.schema, filesystem=filesystem, **parquet_options(rows.schema)) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({**(files[0].metadata.metadata or {}), THROUGH: str(together[-1].batch)})
        made = f"{self.hidden.root}/{name}"
        if self._parquet(name).schema.equals(files[0].schema):
            return made
        _delete(Folder(made))
        return None

    def _show_each(self, batch: list[Waiting]) -> None:
        for waiting in batch:
            appear(self._place_of(waiting), self.shown, alone(waiting.batch, waiting.ordinal))
        self._forget(batch)

    def _place_of(self, waiting: Waiting) -> str:
        return f"{self.hidden.root}/{waiting.file}"

    def _parquet(self, file: str) -> pq.ParquetFile:
        filesystem, path = self.hidden.open(file)
        return pq.ParquetFile(path, filesystem=filesystem)

    def _forget(self, some: Sequence[Waiting]) -> None:
        for waiting in some:
            _delete(Folder(self._place_of(waiting)))
            self._waiting.pop((waiting.batch, waiting.ordinal), None)


def alone(batch: int, ordinal: int) -> str:
    """The name of a file that is shown as it is.

    Examples
    --------
    >>> alone(12, 3)
    'batch-0000000012-0003.parquet'
    """
    return f"batch-{batch:010}-{ordinal:04}.parquet"


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
