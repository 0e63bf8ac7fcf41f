"""Semantics 4, 5 and 8 in plain Python: slow, and nothing to get wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.slicing.time_window import TimeWindow

Row = tuple[Any, ...]


@dataclass
class NaiveQuery:
    """A query: rows that pass, grouped, aggregated; windows that start before ``first`` are not its own."""

    window: TimeWindow
    passes: Callable[[Row], bool]
    key: Callable[[Row], Any]
    answer: Callable[[int, int, Any, Sequence[Row]], Row]
    first: int | None = None
    keeps: Callable[[Sequence[Row]], bool] = bool
    groups: dict[tuple[int, Any], list[Row]] = field(default_factory=dict)
    answers: Counter[Row] = field(default_factory=Counter)

    def starts(self, t: int) -> list[int]:
        """The starts of the windows that hold the instant ``t``."""
        window = self.window
        last = window.start + (t - window.start) // window.slide * window.slide
        starts = []
        while last + window.range > t:
            if self.first is None or last >= self.first:
                starts.append(last)
            last -= window.slide
        return starts


@dataclass
class NaiveStream:
    """All queries over one stream, batch by batch."""

    lateness: int
    queries: dict[str, NaiveQuery]
    watermark: int | None = None
    largest: int | None = None
    late: int = 0

    def feed(self, rows: Sequence[Row]) -> None:
        """One micro-batch: rows count in the windows that were not emitted when it starts; then windows are emitted."""
        for row in rows:
            if row[0] is None:
                continue
            open_ = [self._count(query, row) for query in self.queries.values() if query.passes(row)]
            if self.watermark is not None and row[0] < self.watermark and open_ and not any(open_):
                self.late += 1
        instants = [row[0] for row in rows if row[0] is not None]
        if instants:
            self.largest = max([*instants, *([] if self.largest is None else [self.largest])])
            reached = self.largest - self.lateness
            self.watermark = reached if self.watermark is None else max(reached, self.watermark)
            self._emit(self.watermark)

    def drain(self) -> None:
        """Close all windows."""
        self._emit(None)

    def _count(self, query: NaiveQuery, row: Row) -> bool:
        starts = [
            start
            for start in query.starts(row[0])
            if self.watermark is None or start + query.window.range > self.watermark
        ]
        for start in starts:
            query.groups.setdefault((start, query.key(row)), []).append(row)
        return bool(starts)

    def _emit(self, watermark: int | None) -> None:
        for query in self.queries.values():
            for start, key in list(query.groups):
                end = start + query.window.range
                if watermark is None or end <= watermark:
                    rows = query.groups.pop((start, key))
                    if query.keeps(rows):
                        query.answers[query.answer(start, end, key, rows)] += 1
