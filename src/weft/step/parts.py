"""The slices of one bucket in tables that fit into memory: what is too much at once waits on disk, by its keys' hash.

Slices of one key stay together, as a window is made from all slices of its key.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from weft.algebra.numbers import Array
from weft.step.packing import Packing

HASH = "__weft_hash"
"""The column that holds the hash by which a slice was placed."""
AT_ONCE = 2_000_000
"""So many slices a worker has in memory; with a few dozen columns, half a gigabyte. Of what waited on disk, half."""
FINENESS = 4
"""Parts on disk for each ``AT_ONCE`` slices; small ones are taken together again."""


class Parts:
    """Takes the slices of a bucket as they come and gives them back in as few tables as are small enough.

    Parameters
    ----------
    at_once
        How many slices are small enough; None: all are.

    Examples
    --------
    >>> from weft.step.packing import INTEGERS
    >>> with Parts(Packing((HASH,), ()), at_once=3) as parts:
    ...     for keys in ([1, 9, 1], [9, 5, 1]):
    ...         parts.add(pa.table({INTEGERS: [[key] for key in keys]}))
    ...     [sorted(table.column(HASH).to_pylist()) for table in parts.tables()]
    [[1, 1, 1], [5], [9, 9]]
    """

    def __init__(self, packing: Packing, at_once: int | None) -> None:
        self._packing = packing
        self._at_once = at_once
        self._held: list[pa.Table] = []
        self._rows = 0
        self._aside: Aside | None = None

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._aside is not None:
            self._aside.remove()

    def add(self, table: pa.Table) -> None:
        """Take some slices, packed as they came."""
        self._held.append(table)
        self._rows += len(table)
        if self._aside is not None:
            self._put_aside(self._aside)
        elif self._at_once is not None and self._rows > self._at_once:
            hashes = [np.asarray(self._packing.unpack(table).column(HASH)) for table in self._held]
            # what is read back is there twice for a moment
            self._aside = Aside(_quantiles(hashes, FINENESS * 2), self._at_once // 2)
            self._put_aside(self._aside)

    def _put_aside(self, aside: Aside) -> None:
        for table in self._held:
            aside.add(self._packing.unpack(table))
        self._held = []

    def tables(self) -> Iterator[pa.Table]:
        """All slices, each key's in one table; a table is let go of before the next one is made."""
        if self._aside is not None:
            yield from self._aside.tables()
        elif self._held:
            held, self._held = self._held, []
            yield self._packing.joined(held)


class Aside:
    """Slices on disk, a file for each range of hashes."""

    def __init__(self, cuts: Array, at_once: int) -> None:
        self._cuts = cuts
        self._at_once = at_once
        self._folder = tempfile.TemporaryDirectory(prefix="weft-slices-")
        self._files: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self._rows = [0] * (len(cuts) + 1)

    def add(self, table: pa.Table) -> None:
        """Put slices into the files of their ranges."""
        ranges = np.searchsorted(self._cuts, np.asarray(table.column(HASH)), side="right")
        for number in np.unique(ranges):
            some = table.take(pa.array(np.flatnonzero(ranges == number)))
            if number not in self._files:
                self._files[number] = pa.ipc.new_file(self._path(number), table.schema)
            self._files[number].write_table(some)
            self._rows[number] += len(some)

    def tables(self) -> Iterator[pa.Table]:
        """What was put aside: neighbouring ranges together, as long as they are few slices."""
        for file in self._files.values():
            file.close()
        some: list[int] = []
        for number in sorted(self._files):
            if some and sum(self._rows[one] for one in (*some, number)) > self._at_once:
                yield self._read(some)
                some = []
            some.append(number)
        if some:
            yield self._read(some)

    def _read(self, numbers: list[int]) -> pa.Table:
        return pa.concat_tables(pa.ipc.open_file(self._path(number)).read_all() for number in numbers).combine_chunks()

    def _path(self, number: int) -> str:
        return str(Path(self._folder.name) / f"{number}.arrow")

    def remove(self) -> None:
        """Leave nothing on disk."""
        self._folder.cleanup()


def _quantiles(hashes: list[Array], parts: int) -> Array:
    """Hashes that cut the slices seen so far into about equal parts."""
    return np.unique(np.quantile(np.concatenate(hashes), np.linspace(0, 1, parts + 1)[1:-1], method="higher"))
