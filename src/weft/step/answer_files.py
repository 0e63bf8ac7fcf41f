"""Answers become files: the only writer, of a batch run, of the driver's process and of tasks on executors.

Files are named by the attempt that writes them, so that one that is repeated, or goes on when nobody wants it any more,
harms nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.algebra.numbers import Array
from weft.step.answers import Answer
from weft.step.parquet import parquet_options, write_parquet
from weft.step.step_plan import StepPlan
from weft.store.folder import Folder
from weft.store.packs import ENDING, PackWriter

UNDER_WAY = 64
"""So many files wait to be written at most: their rows are in memory."""
PACKED = 1 << 15
"""Answers of a micro-batch that have fewer values share a file: sinks put those of many batches together anyway."""


@dataclass
class Written:
    """What was written of each query, and what failed."""

    files: dict[str, list[str]] = field(default_factory=dict)
    """Relative to the folder that they were written to; pieces of packs too. Those of a sheet hold rows of others."""
    failed: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """How many rows each query has."""
    windows: dict[str, list[bytes]] = field(default_factory=dict)
    """The windows that appear, as :func:`pack` has them, where somebody wants to know."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(self.counts.values())

    def add(self, name: str, files: Iterable[str], rows: int) -> None:
        """Some files of a query."""
        known = self.files.setdefault(name, [])
        known += [file for file in files if file not in known]
        self.counts[name] = self.counts.get(name, 0) + rows

    def join(self, other: Written) -> None:
        """What another task wrote; a query that fails in one has no answers in any."""
        for name, files in other.files.items():
            self.add(name, files, other.counts[name])
        for name, windows in other.windows.items():
            self.windows.setdefault(name, []).extend(windows)
        self.failed |= other.failed

    def leave_out(self, names: Iterable[str]) -> None:
        """Have no answers of these queries."""
        for name in names:
            self.files.pop(name, None)
            self.counts.pop(name, None)

    def share(self, same_as: Mapping[str, str]) -> None:
        """Queries that ask what others ask have their files, or fail as they do."""
        for name, original in same_as.items():
            if original in self.files:
                self.add(name, self.files[original], self.counts[original])
            if original in self.failed:
                self.failed[name] = self.failed[original]


class AnswerFiles:
    """Writes the answers of a step: those that are rows as they are, and the others laid out on the sheet.

    Rows become a Parquet file a query; on a running stream, where they are few, a piece of a pack.

    Parameters
    ----------
    prefix
        How the names of all files begin.
    sheet
        The file for what Spark has yet to compute select lists from; without one, ``laid_out`` has it.
    threads
        How many files are written beside the work on the next ones; Arrow does so without holding Python up.
    """

    def __init__(
        self, plan: StepPlan, folder: Folder, prefix: str = "", *, sheet: str | None = None, threads: int = 0
    ) -> None:
        self.written = Written()
        self.laid_out: dict[str, pa.Table] = {}
        self._plan = plan
        self._folder = folder
        self._prefix = prefix
        self._sheet = sheet
        self._sheet_writer: pq.ParquetWriter | None = None
        self._number = 0
        self._pack: PackWriter | None = None
        self._pool = ThreadPoolExecutor(threads, "weft-answers") if threads else None
        self._under_way: list[tuple[str, Future[None]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._sheet_writer is not None:
            self._sheet_writer.close()
        if self._pack is not None:
            self._pack.close()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=error is not None)
        if error is None:
            self._await(0)
            self.written.leave_out(self.written.failed)

    def take(self, answers: Iterable[Answer]) -> None:
        """Write answers."""
        for answer in answers:
            name = answer.query.name
            if answer.table is None:
                self.written.failed[name] = answer.failure or "it cannot be computed"
            elif answer.query.direct:
                self.write(name, answer.table)
            else:
                self._of_values(name, self._lay_out, name, answer.table)
            if not self._plan.retains and answer.windows is not None and name not in self.written.failed:
                self.written.windows.setdefault(name, []).append(pack(answer.windows.distinct))

    def write(self, name: str, rows: pa.Table) -> None:
        """Begin to write answers of a query."""
        if self._plan.retains and rows.num_rows * rows.num_columns < PACKED:
            self._of_values(name, self._add_to_pack, name, rows)
            return
        file = self._next_file()
        self.written.add(name, [file], len(rows))
        if self._pool is None:
            self._of_values(name, write_parquet, rows, self._folder, file)
            return
        self._under_way.append((name, self._pool.submit(write_parquet, rows, self._folder, file)))
        self._await(UNDER_WAY)

    def _add_to_pack(self, name: str, rows: pa.Table) -> None:
        if self._pack is None:
            self._folder.make_folder("")
            self._pack = PackWriter(self._folder, f"{self._prefix}pack{ENDING}")
        self.written.add(name, [self._pack.add(rows).text], len(rows))

    def _next_file(self) -> str:
        if not self._number:
            self._folder.make_folder("")
        self._number += 1
        return f"{self._prefix}{self._number - 1}.parquet"

    def _await(self, most: int) -> None:
        """Wait until no more files than these are under way."""
        while len(self._under_way) > most:
            name, writing = self._under_way.pop(0)
            self._of_values(name, writing.result)

    def _of_values(self, name: str, work: Callable[..., object], *arguments: object) -> None:
        """Do some work for a query, which fails of its values alone; what a disk or a network does is an OSError."""
        try:
            work(*arguments)
        except pa.ArrowException as error:
            self.written.failed[name] = Answer.reason(error)

    def _lay_out(self, name: str, rows: pa.Table) -> None:
        laid = self._plan.sheet.lay_out(name, rows)
        if self._sheet is None:
            self.laid_out[name] = laid
            return
        if self._sheet_writer is None:
            self._folder.make_folder("")
            filesystem, path = self._folder.open(self._sheet)
            options = parquet_options(laid.schema)
            self._sheet_writer = pq.ParquetWriter(path, laid.schema, filesystem=filesystem, **options)
        self._sheet_writer.write_table(laid)
        self.written.add(name, [self._sheet], len(laid))


def pack(windows: Array) -> bytes:
    """Rising window numbers as runs, first and last of each: few where windows follow each other, as they mostly do.

    Examples
    --------
    >>> np.frombuffer(pack(np.array([5, 6, 7, 9])), np.int64).tolist()
    [5, 7, 9, 9]
    """
    breaks = np.flatnonzero(np.diff(windows) != 1)
    firsts = windows[np.concatenate(([0], breaks + 1))]
    lasts = windows[np.concatenate((breaks, [len(windows) - 1]))]
    return np.column_stack((firsts, lasts)).astype(np.int64).tobytes()


def count_distinct(packed: Iterable[bytes]) -> int:
    """How many distinct windows several tasks saw.

    Examples
    --------
    >>> count_distinct([pack(np.array([5, 6, 9])), pack(np.array([4, 9]))])
    4
    """
    runs = sorted(
        (int(first), int(last)) for part in packed for first, last in np.frombuffer(part, np.int64).reshape(-1, 2)
    )
    count, reached = 0, -(2**63)
    for first, last in runs:
        if last > reached:
            count += last - max(first, reached + 1) + 1
            reached = last
    return count
