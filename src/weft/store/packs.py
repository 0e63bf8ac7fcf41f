"""Many small tables in one file: Arrow streams one after another, each known by where in the file it lies.

A file a table costs a thirtieth of a second for a hundred of them, however few rows they have; a stream more in a file
that is open costs next to nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from weft.store.folder import Folder

ENDING = ".arrows"
_PIECE = re.compile(rf"(?P<file>.*{re.escape(ENDING)})#(?P<offset>\d+)-(?P<size>\d+)", re.DOTALL)


@dataclass(frozen=True)
class Piece:
    """One table in a pack.

    Examples
    --------
    >>> Piece("answers/pack.arrows", 96, 512).text
    'answers/pack.arrows#96-512'
    >>> Piece.of("answers/pack.arrows#96-512")
    Piece(file='answers/pack.arrows', offset=96, size=512)
    >>> Piece.of("answers/0.parquet") is None
    True
    """

    file: str
    offset: int
    size: int

    @property
    def text(self) -> str:
        """As it is listed among files."""
        return f"{self.file}#{self.offset}-{self.size}"

    @classmethod
    def of(cls, text: str) -> Piece | None:
        """The piece that is listed so; None if a whole file is."""
        found = _PIECE.fullmatch(text)
        return None if found is None else cls(found["file"], int(found["offset"]), int(found["size"]))

    def within(self, file: pa.NativeFile) -> pa.Table:
        """Its rows, from its pack."""
        return pa.ipc.open_stream(file.read_at(self.size, self.offset)).read_all()

    def moved(self, file: str) -> Piece:
        """The same in a copy of the pack."""
        return replace(self, file=file)


def read_answers(listed: str) -> pa.Table:
    """The rows of a piece, or of a Parquet file."""
    piece = Piece.of(listed)
    if piece is None:
        filesystem, path = Folder(listed).open()
        return pq.read_table(path, filesystem=filesystem, partitioning=None)
    filesystem, path = Folder(piece.file).open()
    with filesystem.open_input_file(path) as file:
        return piece.within(file)


class PackWriter:
    """Writes a pack."""

    def __init__(self, folder: Folder, file: str) -> None:
        self._file = file
        filesystem, path = folder.open(file)
        self._stream = filesystem.open_output_stream(path, compression=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def add(self, rows: pa.Table) -> Piece:
        """Write a table; where it lies, relative to the folder."""
        rows = without_long_dictionaries(rows)
        offset = self._stream.tell()
        with pa.ipc.new_stream(self._stream, rows.schema) as stream:
            stream.write_table(rows)
        return Piece(self._file, offset, self._stream.tell() - offset)

    def close(self) -> None:
        """No more tables come."""
        self._stream.close()


def without_long_dictionaries(rows: pa.Table) -> pa.Table:
    """The same rows, without dictionaries that are longer than they are: those of all keys of a stream may be.

    Examples
    --------
    >>> keys = pa.DictionaryArray.from_arrays(pa.array([2, 2], pa.int32()), pa.array(["a", "b", "c"]))
    >>> without_long_dictionaries(pa.table({"k": keys})).schema.field("k").type
    DataType(string)
    """
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            column = rows.column(number)
            if sum(len(chunk.dictionary) for chunk in column.chunks) > len(rows):
                rows = rows.set_column(
                    number, field.with_type(field.type.value_type), column.cast(field.type.value_type)
                )
    return rows
