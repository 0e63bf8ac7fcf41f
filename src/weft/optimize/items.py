"""What is woven: queries with equal edges are one item from the start, since they share everything anyway.

This is also the preprocessing of 004 §6.5.3 (queries with equal slides weave perfectly where there are no fragments),
and the reason why a million queries plan in seconds: there are only as many items as distinct sets of edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from weft.query.model import Query, Window
from weft.slicing.edge_rate import MICROSECONDS
from weft.slicing.progression import Alignment, Progression, edges_of

Question = tuple[str, Window]
"""A query as the optimizers see it: its name and its window."""


@dataclass(frozen=True)
class Item:
    """Queries whose windows have the same edges."""

    queries: tuple[str, ...]
    windows: tuple[tuple[Window, int], ...]
    """Distinct windows, and how many of the queries have each."""
    progressions: tuple[Progression, ...]

    @cached_property
    def windows_per_edge(self) -> float:
        """Sum of range / slide over the queries: Ω of the papers' panes (000 Eq. 2)."""
        return sum(window.overlap * count for window, count in self.windows)

    @cached_property
    def answers(self) -> float:
        """Answers per second of stream and group."""
        return sum(MICROSECONDS / window.slide * count for window, count in self.windows)

    @cached_property
    def ranges(self) -> tuple[int, ...]:
        """Distinct ranges in microseconds, ascending: techniques keep one structure or traversal each."""
        return tuple(sorted({window.range for window, _ in self.windows}))


def items_of(
    queries: Iterable[Query | Question], alignment: Alignment = "start", *, merge_equal: bool = True
) -> tuple[Item, ...]:
    """Group queries by their edges, in order of first appearance.

    Examples
    --------
    >>> items = items_of([("a", Window(8, 4)), ("b", Window(6, 4)), ("c", Window(16, 4))])
    >>> [item.queries for item in items]
    [('a', 'c'), ('b',)]
    """
    together: dict[object, list[Question]] = {}
    edges: dict[Window, tuple[Progression, ...]] = {}
    for query in queries:
        name, window = (query.name, query.window) if isinstance(query, Query) else query
        if window not in edges:
            edges[window] = tuple(sorted(edges_of(window, alignment)))
        same = edges[window] if merge_equal else len(together)
        together.setdefault(same, []).append((name, window))
    return tuple(_item(group, edges[group[0][1]]) for group in together.values())


def _item(group: list[Question], progressions: tuple[Progression, ...]) -> Item:
    windows = Counter(window for _, window in group)
    return Item(tuple(name for name, _ in group), tuple(sorted(windows.items(), key=_by_range)), progressions)


def _by_range(entry: tuple[Window, int]) -> tuple[int, int, int]:
    window = entry[0]
    return window.range, window.slide, window.start
