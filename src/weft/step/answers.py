"""Panes to answers: windows over them, aggregates lowered, rows assembled in the columns of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from weft.algebra.measure import Answered
from weft.algebra.monoids import add_int
from weft.algebra.numbers import Array
from weft.errors import WeftError
from weft.evaluate.bulk import slide_prefix
from weft.evaluate.sliding import slide
from weft.plan.model import BoundCall, BoundQuery, Partial, Predicate
from weft.query.model import AGGREGATE, KEY, WINDOW, Expression, Output, Part
from weft.slicing.window import Window
from weft.step.emission import EVERYTHING, Emission
from weft.step.panes import Measured, Panes, WindowRows, windows_of
from weft.step.slices import Stretch


@dataclass(frozen=True)
class Answer:
    """All answers of one query in one bucket, or why there are none."""

    query: BoundQuery
    table: pa.Table | None
    windows: WindowRows | None = None
    """The windows that appear."""
    failure: str | None = None

    @classmethod
    def failed(cls, query: BoundQuery, error: Exception) -> Answer:
        """None, as something went wrong: with a value, or in here, which must not cost the other queries theirs."""
        return cls(query, None, failure=cls.reason(error))

    @staticmethod
    def reason(error: Exception) -> str:
        """Why there are none."""
        if isinstance(error, MemoryError):
            return "it needs more memory than there is"
        return str(error) if isinstance(error, WeftError) else f"it cannot be computed: {error!r}"


@dataclass
class Shared:
    """What queries with the same keys and the same WHERE make together: panes, and the windows over them."""

    key_values: Mapping[Expression, pa.Array]
    passing: Stretch
    technique: str
    emission: Emission = EVERYTHING
    _panes: dict[Window, Panes] = field(default_factory=dict)
    _answers: dict[tuple[Window, tuple[int, int]], WindowRows] = field(default_factory=dict)

    def answer(self, query: BoundQuery) -> Answer:
        """The answers of one query, or why there are none."""
        try:
            return self._answer(query)
        except Exception as error:
            return Answer.failed(query, error)

    def _answer(self, query: BoundQuery) -> Answer:
        window = query.window
        panes = self.panes(window)
        answers = self.windows(window, panes, self.emission.of(query))
        if not len(answers.windows):
            return Answer(query, None)
        aggregates = [self._aggregate(query, call, panes, answers) for call in query.calls]
        rows = Assembly(query, self.key_values, answers, aggregates).table()
        return Answer(query, rows, answers)

    def panes(self, window: Window) -> Measured:
        """The panes of a window's slicing, made from the coarsest there are that are fine enough."""
        slicing = window.slicing
        if slicing not in self._panes:
            self._panes[slicing] = Panes.of(self._coarsest_below(slicing), slicing)
        return self._panes[slicing]

    def _coarsest_below(self, slicing: Window) -> Stretch:
        best: Stretch = self.passing
        for other, panes in self._panes.items():
            if len(panes.keys) < len(best.keys) and slicing.panes_nest_in(other):
                best = panes
        return best

    def windows(self, window: Window, panes: Measured, bounds: tuple[int, int]) -> WindowRows:
        """The windows that appear."""
        wanted = (window, bounds)
        if wanted not in self._answers:
            # one range after another: only the last is worth its memory
            self._answers = {wanted: windows_of(panes, window, bounds, self.emission.limits)}
        return self._answers[wanted]

    def _aggregate(self, query: BoundQuery, call: BoundCall, panes: Measured, answers: WindowRows) -> pa.Array:
        predicate = query.predicate_of(call)
        merged = [merge(panes, partial, predicate, answers, self.technique) for partial in call.partials]
        return call.recipe.lower(merged, call.result)


def merge(panes: Measured, partial: Partial, predicate: Predicate, answers: WindowRows, technique: str) -> Answered:
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
    answers: WindowRows
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
            return self._starts()
        if output.part is Part.WINDOW_END:
            return self._ends()
        return self._window()

    def _window(self) -> pa.Array:
        return pa.StructArray.from_arrays([self._starts(), self._ends()], names=["start", "end"])

    def _starts(self) -> pa.Array:
        return self._instants(self.query.window.starts(self.answers.windows))

    def _ends(self) -> pa.Array:
        return self._instants(self.query.window.ends(self.answers.windows))

    def _instants(self, instants: Array) -> pa.Array:
        return pa.array(instants, pa.int64()).view(self.query.event_type)

    def _key(self, index: int) -> pa.Array:
        values = self.key_values[self.query.query.keys[index]]
        numbers = pa.array(self.answers.keys)
        if pa.types.is_string(values.type) and values.null_count == 0:
            return pa.DictionaryArray.from_arrays(numbers, values)
        return values.take(numbers)
