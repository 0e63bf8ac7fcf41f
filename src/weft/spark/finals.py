"""Slices to answers: a pure function of one bucket's slices, run wherever the bucket is. No Spark in here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from weft.algebra.lower import Answered
from weft.algebra.measures import Array
from weft.algebra.monoids import add_int
from weft.errors import WeftError
from weft.evaluate.bulk import slide_prefix
from weft.evaluate.sliding import slide
from weft.plan.forest import Tree
from weft.plan.layout import layouts
from weft.plan.model import BoundCall, BoundQuery, Grouping, Partial, Plan, Predicate
from weft.query.model import AGGREGATE, KEY, WINDOW, Expression, Output, Part, Window
from weft.slicing.progression import Progression, contains, edges_of, may_nest
from weft.spark.emission import EVERYTHING, Emission
from weft.spark.panes import Answers, Measured, Panes, Passing, Slices, Stretch, windows_of

GROUPING = "grouping"
"""The column that tells which grouping a slice belongs to."""
NODE = "node"
"""The column that tells which node a slice went to, where trees are placed on nodes."""


@dataclass(frozen=True)
class Answer:
    """All answers of one query in one bucket, or why there are none."""

    query: BoundQuery
    table: pa.Table | None
    windows: Array
    """The numbers of the distinct windows that appear."""
    failure: str | None = None

    @classmethod
    def failed(cls, query: BoundQuery, error: Exception) -> Answer:
        """None, as something went wrong: with a value, or in here, which must not cost the other queries theirs."""
        reason = str(error) if isinstance(error, WeftError) else f"it cannot be computed: {error!r}"
        if isinstance(error, MemoryError):
            reason = "it needs more memory than there is"
        return cls(query, None, np.empty(0, np.int64), reason)


def guarded(queries: Sequence[BoundQuery], answers: Iterator[Answer]) -> Iterator[Answer]:
    """The answers of some queries; what goes wrong in work that they share fails those that have none yet."""
    answered = set()
    try:
        for answer in answers:
            answered.add(answer.query.name)
            yield answer
    except Exception as error:
        yield from (Answer.failed(query, error) for query in queries if query.name not in answered)


def finals(plan: Plan, slices: pa.Table, emission: Emission = EVERYTHING) -> Iterator[Answer]:
    """The answers of every query of ``plan`` from the slices of one bucket, as far as they are due."""
    groups = np.asarray(slices.column(GROUPING).combine_chunks()) if len(slices) else np.empty(0, np.int64)
    columns = layouts(plan)
    for number, grouping in enumerate(plan.groupings):
        chosen = np.flatnonzero(groups == number)
        if len(chosen):
            names = columns[number].names(number, grouping)
            own = slices.select(list(names)).rename_columns(list(names.values()))
            # a bucket belongs to one node
            here = int(slices.column(NODE)[chosen[0]].as_py()) if grouping.placed else None
            yield from grouping_finals(grouping, own, plan.technique, emission, here, chosen)


def grouping_finals(
    grouping: Grouping,
    table: pa.Table,
    technique: str = "auto",
    emission: Emission = EVERYTHING,
    node: int | None = None,
    rows: Array | None = None,
) -> Iterator[Answer]:
    """The answers of all queries of a grouping, or of those on one node; those that share most next to each other.

    All rows of the table are its slices, or those that ``rows`` names.
    """
    by_keys: dict[frozenset[Expression], list[BoundQuery]] = {}
    for query in grouping.queries:
        if node is not None and grouping.tree_of[query.name].node != node:
            continue
        least, most = emission.of(query)
        if least <= most:
            by_keys.setdefault(frozenset(query.query.keys), []).append(query)
    for keys, queries in by_keys.items():
        by = sorted(keys, key=lambda key: key.canonical)
        yield from guarded(queries, keyed_finals(grouping, table, by, rows, queries, technique, emission))


def keyed_finals(
    grouping: Grouping,
    table: pa.Table,
    by: Sequence[Expression],
    rows: Array | None,
    queries: Sequence[BoundQuery],
    technique: str,
    emission: Emission,
) -> Iterator[Answer]:
    """The answers of queries over the same keys."""
    slices = Slices.of(grouping, table, by, rows)
    by_predicate: dict[Predicate, list[BoundQuery]] = {}
    for query in queries:
        by_predicate.setdefault(query.predicate, []).append(query)
    for predicate, some in by_predicate.items():
        yield from guarded(some, passing_finals(slices, predicate, some, technique, emission))


def passing_finals(
    slices: Slices, predicate: Predicate, queries: Sequence[BoundQuery], technique: str, emission: Emission
) -> Iterator[Answer]:
    """The answers of queries with the same WHERE."""
    passing = slices if predicate.everything else Passing.of(slices, predicate)
    if len(passing.keys):
        whole = Panes.whole(passing)
        for tree, woven in by_tree(slices.grouping, queries):
            finest = whole if tree is None else Panes.cut(whole, tree.progressions)
            yield from tree_finals(Shared(slices.key_values, finest, technique, emission), woven)


def tree_finals(shared: Shared, queries: Sequence[BoundQuery]) -> Iterator[Answer]:
    """The answers of queries that are woven together."""
    for query in sorted(queries, key=lambda query: (query.query.window.slide, query.query.window.range)):
        answer = shared.answer(query)
        if answer.failure or len(answer.windows):
            yield answer


def by_tree(grouping: Grouping, queries: Sequence[BoundQuery]) -> list[tuple[Tree | None, list[BoundQuery]]]:
    """Queries by the tree that they are woven into; all together where slices are that of the only tree already."""
    trees: dict[tuple[Progression, ...], tuple[Tree | None, list[BoundQuery]]] = {}
    for query in queries:
        tree = grouping.tree_of.get(query.name)
        cuts = grouping.progressions if tree is None else tree.progressions
        coarser = None if cuts == grouping.progressions else tree
        trees.setdefault(cuts, (coarser, []))[1].append(query)
    return list(trees.values())


@dataclass
class Shared:
    """What queries with the same keys and the same WHERE make together: panes, and the windows over them."""

    key_values: Mapping[Expression, pa.Array]
    passing: Stretch
    technique: str
    emission: Emission = EVERYTHING
    _panes: dict[Window, Panes] = field(default_factory=dict)
    _answers: dict[tuple[Window, tuple[int, int]], Answers] = field(default_factory=dict)

    def answer(self, query: BoundQuery) -> Answer:
        """The answers of one query, or why there are none."""
        try:
            return self._answer(query)
        except Exception as error:
            return Answer.failed(query, error)

    def _answer(self, query: BoundQuery) -> Answer:
        window = query.query.window
        panes = self.panes(window)
        answers = self.windows(window, panes, self.emission.of(query))
        if not len(answers.windows):
            return Answer(query, None, answers.windows)
        aggregates = [self._aggregate(query, call, panes, answers) for call in query.calls]
        rows = Assembly(query, self.key_values, answers, aggregates).table()
        return Answer(query, rows, answers.distinct)

    def panes(self, window: Window) -> Measured:
        """The panes of a window's slicing, made from the coarsest there are that are fine enough."""
        slicing = slicing_of(window)
        if slicing not in self._panes:
            self._panes[slicing] = Panes.of(self._coarsest_below(slicing), slicing)
        return self._panes[slicing]

    def _coarsest_below(self, slicing: Window) -> Stretch:
        best: Stretch = self.passing
        for other, panes in self._panes.items():
            if len(panes.keys) < len(best.keys) and is_finer(other, slicing):
                best = panes
        return best

    def windows(self, window: Window, panes: Measured, bounds: tuple[int, int]) -> Answers:
        """The windows that appear."""
        wanted = (window, bounds)
        if wanted not in self._answers:
            # one range after another: only the last is worth its memory
            self._answers = {wanted: windows_of(panes, window, bounds)}
        return self._answers[wanted]

    def _aggregate(self, query: BoundQuery, call: BoundCall, panes: Measured, answers: Answers) -> pa.Array:
        predicate = query.predicate_of(call)
        merged = [merge(panes, partial, predicate, answers, self.technique) for partial in call.partials]
        return call.recipe.lower(merged, call.result)


def slicing_of(window: Window) -> Window:
    """The panes of a window, written as a window: those with the same panes share them.

    Examples
    --------
    >>> slicing_of(Window(range=30, slide=10)), slicing_of(Window(range=35, slide=10))
    (Window(range=10, slide=10, start=0), Window(range=5, slide=10, start=0))
    """
    return Window(range=window.fragment or window.slide, slide=window.slide, start=window.start)


@lru_cache(maxsize=1 << 16)
def is_finer(finer: Window, coarser: Window) -> bool:
    """Whether panes of one slicing can be put together to those of another.

    Examples
    --------
    >>> is_finer(Window(range=5, slide=5), Window(range=15, slide=15)), is_finer(Window(9, 9), Window(15, 15))
    (True, False)
    """
    return may_nest(finer, coarser) and contains(edges_of(finer), edges_of(coarser))


def merge(panes: Measured, partial: Partial, predicate: Predicate, answers: Answers, technique: str) -> Answered:
    """One partial over every window."""
    lo, hi = answers.lo, answers.hi
    measured = panes.measure(partial, predicate)
    if technique == "auto" and measured.monoid.invertible:
        values = slide_prefix(measured.monoid, panes.prefix(partial, predicate), lo, hi)
    else:
        values = slide(measured.monoid, measured.values, lo, hi, technique)
    valid = None
    if measured.valid is not None:
        (present,) = slide(add_int, (measured.valid,), lo, hi)
        valid = present > 0
    return Answered(values, valid, measured.dictionary, measured.scale)


@dataclass
class Assembly:
    """Answers become the rows of a query: its own columns if they are bare, else what Spark computes them from."""

    query: BoundQuery
    key_values: Mapping[Expression, pa.Array]
    answers: Answers
    aggregates: list[pa.Array]

    def table(self) -> pa.Table:
        """The rows."""
        query = self.query.query
        if self.query.direct:
            arrays = [self._column(output) for output in query.outputs]
            return pa.Table.from_arrays(arrays, names=list(self.query.columns))
        names = [WINDOW, *(f"{KEY}{i}" for i in range(len(query.keys)))]
        names += [f"{AGGREGATE}{i}" for i in range(len(query.calls))]
        arrays = [self._window(), *(self._key(i) for i in range(len(query.keys))), *self.aggregates]
        return pa.Table.from_arrays(arrays, names=names)

    def _column(self, output: Output) -> pa.Array:
        if output.part is Part.KEY:
            return self._key(output.index)
        if output.part is Part.AGGREGATE:
            return self.aggregates[output.index]
        if output.part is Part.WINDOW_START:
            return self._instants(0)
        if output.part is Part.WINDOW_END:
            return self._instants(self.query.query.window.range)
        return self._window()

    def _window(self) -> pa.Array:
        return pa.StructArray.from_arrays(
            [self._instants(0), self._instants(self.query.query.window.range)], names=["start", "end"]
        )

    def _instants(self, shift: int) -> pa.Array:
        window = self.query.query.window
        instants = self.answers.windows * window.slide + (window.start + shift)
        return pa.array(instants, pa.int64()).view(self.query.event_type)

    def _key(self, index: int) -> pa.Array:
        values = self.key_values[self.query.query.keys[index]]
        numbers = pa.array(self.answers.keys)
        if pa.types.is_string(values.type) and values.null_count == 0:
            return pa.DictionaryArray.from_arrays(numbers, values)
        return values.take(numbers)
