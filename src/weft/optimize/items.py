"""What is woven: queries with equal edges are one item from the start, since they share everything anyway.

This is also the preprocessing of 004 §6.5.3 (queries with equal slides weave perfectly where there are no fragments),
and the reason why a million queries plan in seconds: there are only as many items as distinct sets of edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from weft.optimize.omega import TechniqueCode
from weft.query.model import Query
from weft.slicing.progression import Alignment, Progression
from weft.slicing.window import Window

Question = tuple[str, Window]
"""A query as the optimizers see it: its name and its window."""


@dataclass(frozen=True)
class Item:
    """Queries whose windows have the same edges."""

    windows: tuple[tuple[Window, tuple[str, ...]], ...]
    """Distinct windows in order of appearance, and the names of the queries that have each."""
    progressions: tuple[Progression, ...]

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of all its queries."""
        return tuple(chain.from_iterable(names for _, names in self.windows))

    @cached_property
    def windows_per_edge(self) -> float:
        """Sum of range / slide over the queries: Ω of the papers' panes (000 Eq. 2)."""
        return sum(window.overlap * len(names) for window, names in self.windows)

    def per_edge(self, technique: TechniqueCode) -> float:
        """What it adds to the Ω of its tree, with techniques whose Ω is a plain sum."""
        return 1.0 if technique is TechniqueCode.BULK else self.windows_per_edge

    @cached_property
    def answers(self) -> float:
        """Answers per second of stream and group."""
        return sum(window.per_second * len(names) for window, names in self.windows)

    @cached_property
    def ranges(self) -> tuple[int, ...]:
        """Distinct ranges in microseconds, ascending: techniques keep one structure or traversal each."""
        return tuple(sorted({window.length for window, _ in self.windows}))


def items_of(queries: Iterable[Query | Question], alignment: Alignment = "start") -> tuple[Item, ...]:
    """Group queries by their edges, in order of first appearance.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> items = items_of([("a", TimeWindow(8, 4)), ("b", TimeWindow(6, 4)), ("c", TimeWindow(16, 4))])
    >>> [item.queries for item in items]
    [('a', 'c'), ('b',)]
    """
    names: dict[Window, list[str]] = {}
    for query in queries:
        name, window = (query.name, query.window) if isinstance(query, Query) else query
        if window in names:
            names[window].append(name)
        else:
            names[window] = [name]
    together: dict[tuple[Progression, ...], list[Window]] = {}
    for window in names:
        together.setdefault(tuple(sorted(window.edges(alignment))), []).append(window)
    return tuple(
        Item(tuple((window, tuple(names[window])) for window in windows), edges) for edges, windows in together.items()
    )
