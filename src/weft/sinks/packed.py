"""Packs of a Parquet sink: small answers of whole batches, in the files that the batches were committed with.

``DIR/.weft/packs/batch-<n>.json`` lists what a batch has in packs, by query; its packs stand beside it. The list is
written when the packs are here, so a batch with a list is here whole; when all of it is shown to readers, it goes.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import pyarrow as pa
from pyarrow import fs

from weft.store.folder import Folder
from weft.store.packs import Piece

PACKS = "packs"
_LIST = re.compile(r"batch-(\d+)\.json")


@dataclass(frozen=True)
class PackedQuery:
    """What a batch has of a query."""

    pieces: tuple[Piece, ...]
    files: int
    """How many small files it has beside them."""


class KeptPack:
    """The packs of one batch, until all queries have shown what is in them."""

    def __init__(self, folder: Folder, batch: int, queries: Mapping[str, PackedQuery]) -> None:
        self.batch = batch
        self.queries = queries
        self._folder = folder
        self._left = set(queries)
        self._opened: dict[str, pa.NativeFile] = {}
        self._lock = threading.Lock()

    @property
    def is_there(self) -> bool:
        """Whether its files are there still; another process may have shown everything in them."""
        filesystem, _ = self._folder.open()
        infos = filesystem.get_file_info([self._folder.open(name)[1] for name in self._names])
        return all(info.type == fs.FileType.File for info in infos)

    def read(self, pieces: Iterable[Piece]) -> list[pa.Table]:
        """The rows of some pieces."""
        return [piece.within(self._file(piece.file)) for piece in pieces]

    def _file(self, name: str) -> pa.NativeFile:
        if name not in self._opened:
            filesystem, path = self._folder.open(name)
            self._opened[name] = filesystem.open_input_file(path)
        return self._opened[name]

    def forget(self, query: str) -> None:
        """A query needs nothing of it any more."""
        with self._lock:
            self._left.discard(query)
            if self._left:
                return
            for file in self._opened.values():
                file.close()
            for name in self._names:
                filesystem, path = self._folder.open(name)
                with suppress(FileNotFoundError):
                    filesystem.delete_file(path)

    @property
    def _names(self) -> list[str]:
        """Its files; the list first, as it promises the packs."""
        return [_list(self.batch), *sorted({piece.file for some in self.queries.values() for piece in some.pieces})]


class Packs:
    """All packs of a sink that hold something which readers do not see yet.

    Parameters
    ----------
    appear
        Has a file stand in a folder under a name at once, whole; nothing happens if the name is taken.
    """

    def __init__(self, folder: Folder, appear: Callable[[str, Folder, str], object]) -> None:
        self._folder = folder
        self._appear = appear
        self._orphans: list[str] = []
        """Packs without a list: of a delivery that a death cut short, or of a batch that is shown."""

    def found(self) -> list[KeptPack]:
        """The packs of an earlier life, oldest first."""
        filesystem, path = self._folder.open()
        names = [info.base_name for info in filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))]
        batches = sorted(int(found[1]) for name in names if (found := _LIST.fullmatch(name)))
        self._orphans = [name for name in names if _batch(name) not in batches]
        return [self._read(batch) for batch in batches]

    def _read(self, batch: int) -> KeptPack:
        filesystem, path = self._folder.open(_list(batch))
        with filesystem.open_input_stream(path) as file:
            listed = json.loads(bytes(file.read()))
        queries = {
            name: PackedQuery(tuple(Piece(**piece) for piece in some["pieces"]), some["files"])
            for name, some in listed.items()
        }
        return KeptPack(self._folder, batch, queries)

    def keep(self, batch: int, queries: Mapping[str, PackedQuery]) -> KeptPack:
        """Have a batch's packs here, whatever happens to those that it was committed with."""
        filesystem, path = self._folder.open()
        filesystem.create_dir(path, recursive=True)
        sources = dict.fromkeys(piece.file for some in queries.values() for piece in some.pieces)
        # the same name for the same pack, whichever of its queries are still to be shown when a batch comes again
        names = {file: f"batch-{batch:010}-{file.rpartition('/')[2]}" for file in sources}
        for file, name in names.items():
            self._appear(file, self._folder, name)
        kept = {
            name: PackedQuery(tuple(piece.moved(names[piece.file]) for piece in some.pieces), some.files)
            for name, some in queries.items()
        }
        self._write(batch, kept)
        self._sweep(batch)
        return KeptPack(self._folder, batch, kept)

    def _sweep(self, batch: int) -> None:
        """Delete packs that no delivery will want any more, as a later one has come."""
        for name in [name for name in self._orphans if _batch(name) < batch]:
            filesystem, path = self._folder.open(name)
            with suppress(FileNotFoundError):
                filesystem.delete_file(path)
            self._orphans.remove(name)

    def _write(self, batch: int, queries: Mapping[str, PackedQuery]) -> None:
        name = _list(batch)
        filesystem, path = self._folder.open(name)
        with filesystem.open_output_stream(f"{path}.writing") as file:
            file.write(json.dumps({query: asdict(some) for query, some in queries.items()}).encode())
        filesystem.move(f"{path}.writing", path)


def split(files: Sequence[str]) -> tuple[list[str], tuple[Piece, ...]]:
    """Files, and pieces of packs."""
    pieces = {file: Piece.of(file) for file in files}
    whole = [file for file, piece in pieces.items() if piece is None]
    return whole, tuple(piece for piece in pieces.values() if piece is not None)


def _batch(name: str) -> int:
    """The batch that a file belongs to; one before all others for what is no file of a batch."""
    found = re.match(r"batch-(\d+)", name)
    return -1 if found is None else int(found[1])


def _list(batch: int) -> str:
    return f"batch-{batch:010}.json"
