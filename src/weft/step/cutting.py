"""Rows to slices in compiled kernels: the second engine, with the slices of the JVM's. Arrow in, Arrow out; no Spark.

Spark evaluates keys, arguments and predicates, and projects them as columns of a row. Here rows are cut by their event
time, grouped by slice, keys and signature, and merged with the monoids that slices are merged with later: a row is a
slice of one row (``algebra.lifting``). Rows are cut a block at a time, all groupings over one block, so that they share
what they have in common: slice starts, numbers of keys, signatures, lifted values. A slice may come once a block; the
turn merges what comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.aggregates.sums import WIDEST_SAFE_DECIMAL
from weft.algebra.lifting import PLAIN, NotLiftedError, lift_of
from weft.algebra.measure import Lift, Lifted
from weft.algebra.numbers import Array, flatten
from weft.plan.asking import argument_column
from weft.plan.model import BITS, BoundCall, Grouping, Partial, Plan, Predicate, digest
from weft.step.cutting_kernels import NONE, Edges, Numbered, accumulated, combined, marked, numbered
from weft.step.key_codes import value_codes
from weft.step.key_values import as_grouped
from weft.step.retained import merged_partials, partial_columns
from weft.step.side_by_side import mapped

TIME = "__weft_time"
"""Event time in microseconds since the epoch; NULL where there is none, and in records that could not be read."""
WORD = "__weft_word_"
"""Columns that hold all predicates of a plan, a bit each."""
BAD = "__weft_bad"
"""Whether a record could not be read, where that may be."""
AT_ONCE = 1 << 20
"""Rows of a block; few blocks share few slices."""
BYTES = 1 << 28
"""How large a block may be, however few rows it has: what is made of it on the way takes a few times as much."""
HELD = 1 << 20
"""Slices that wait for others to be merged with; when there are more, they are sent on."""
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted on the way."""

    rows: int = 0
    """Those that could be read."""
    without_time: int = 0
    bad: int = 0
    smallest: int | None = None
    """Event time."""
    largest: int | None = None

    @classmethod
    def of(cls, rows: pa.Table) -> Counts:
        """Count rows.

        Examples
        --------
        >>> Counts.of(pa.table({TIME: [5, None, None, 3], BAD: [False, True, False, False]}))
        Counts(rows=3, without_time=1, bad=1, smallest=3, largest=5)
        """
        bad = pc.sum(rows.column(BAD)).as_py() or 0 if BAD in rows.column_names else 0
        times = rows.column(TIME)
        extremes = pc.min_max(times).as_py()
        return cls(len(rows) - bad, times.null_count - bad, bad, extremes["min"], extremes["max"])

    def __add__(self, other: Counts) -> Counts:
        smallest = [time for time in (self.smallest, other.smallest) if time is not None]
        largest = [time for time in (self.largest, other.largest) if time is not None]
        return Counts(
            self.rows + other.rows,
            self.without_time + other.without_time,
            self.bad + other.bad,
            min(smallest, default=None),
            max(largest, default=None),
        )


@dataclass(frozen=True, slots=True)
class Lifting:
    """How one partial is made of rows, and which columns they need for it."""

    lift: Lift
    inputs: tuple[tuple[str, str], ...]
    """The columns, each with what it is as Spark SQL over columns of arguments."""

    @classmethod
    def of(cls, partial: Partial, call: BoundCall) -> Lifting:
        """The lifting of a call's partial; refused where the JVM has to make it."""
        wide = next((kind for kind in call.types if is_wide(kind)), None)
        if wide is not None and any(template.startswith("sum(") for template in partial.measure.columns):
            raise NotLiftedError(f"a slice's own sum of {wide} may be too large, which the JVM notices")
        lift = lift_of(partial.measure, call.types)
        arguments = [argument_column(argument, summed=False) for argument in partial.arguments]
        texts = [(text, text.format(*arguments)) for text in lift.inputs]
        named = [(sql if PLAIN.fullmatch(text) else digest("i", sql), sql) for text, sql in texts]
        return cls(lift, tuple(named))

    def rows(self, columns: Callable[[str], pa.Array], length: int) -> Lifted:
        """Rows as slices of one row each."""
        return self.lift.rows([columns(name) for name, _ in self.inputs], length)

    def knows_missing(self, columns: Callable[[str], pa.Array]) -> bool:
        """Whether it tells slices that hold only NULLs from others, or has a number for them, as counts have."""
        nothing = [pa.nulls(1, columns(name).type) for name, _ in self.inputs]
        return self.lift.rows(nothing, 1).decoded.valid is not None


def is_wide(kind: pa.DataType) -> bool:
    """Whether a type has so many digits that sums of few values may have too many."""
    return bool(pa.types.is_decimal(kind) and kind.precision > WIDEST_SAFE_DECIMAL)


def unlifted(plan: Plan) -> dict[int, str]:
    """The groupings that kernels cannot cut, by number, and why."""
    found = {}
    for number, grouping in enumerate(plan.groupings):
        try:
            liftings(grouping)
        except NotLiftedError as error:
            found[number] = str(error)
    return found


def liftings(grouping: Grouping) -> dict[tuple[str, ...], Lifting]:
    """How the partials of a grouping are made of rows, by the names of their columns."""
    return {
        partial.columns(): Lifting.of(partial, call)
        for query in grouping.queries
        for call in query.calls
        for partial in call.partials
    }


@dataclass(frozen=True, slots=True)
class Cut:
    """The slices of some rows: by a grouping's number a table with its own names of columns."""

    tables: dict[int, pa.Table]
    counts: Counts


class Marks:
    """What a plan looks for in rows before they are cut: the edges of slices, and who wants them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._edges = {grouping.slice_column: Edges.of(grouping.progressions) for grouping in plan.groupings}
        self._bits = {predicate: divmod(number, BITS) for number, predicate in enumerate(plan.predicates)}

    def masks(self, predicates: Iterable[Predicate]) -> dict[int, int]:
        """The bits of some predicates, word by word."""
        found: dict[int, int] = {}
        for predicate in predicates:
            word, bit = self._bits[predicate]
            found[word] = found.get(word, 0) | 1 << bit
        return found

    def moves(self, predicates: Iterable[Predicate]) -> dict[tuple[int, int], int]:
        """How bits get from their words to a signature: those of a word that move equally far move at once."""
        found: dict[tuple[int, int], int] = {}
        for to, predicate in enumerate(predicates):
            word, bit = self._bits[predicate]
            found[word, bit - to] = found.get((word, bit - to), 0) | 1 << bit
        return found

    def edges(self, grouping: Grouping) -> Edges:
        """Where a grouping cuts."""
        return self._edges[grouping.slice_column]

    def wanted(self, rows: pa.Table) -> pa.Table:
        """Rows that have a time and that some query wants."""
        if rows.column(TIME).null_count:
            rows = rows.filter(pc.is_valid(rows.column(TIME)))
        if any(grouping.wants_everything for grouping in self.plan.groupings):
            return rows
        asking = {query.predicate for grouping in self.plan.groupings for query in grouping.queries}
        wanted = passing(rows, self.masks(asking))
        return rows if wanted.all() else rows.filter(pa.array(wanted))


class Cutter(Marks):
    """Cuts rows into the slices of all groupings of a plan; raises NotLiftedError for those of :func:`unlifted`."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.liftings = {names: one for grouping in plan.groupings for names, one in liftings(grouping).items()}

    @cached_property
    def inputs(self) -> dict[str, str]:
        """The columns of arguments that rows need, each as Spark SQL over what queries give as arguments."""
        return dict(named for one in self.liftings.values() for named in one.inputs)

    def cut(self, rows: pa.Table) -> Cut:
        """The slices of a block of rows."""
        block = Block(self, self.wanted(rows))
        tables = {number: block.cut(grouping) for number, grouping in enumerate(self.plan.groupings)}
        return Cut(tables, Counts.of(rows))

    def merged(self, number: int, tables: list[pa.Table]) -> pa.Table:
        """Slices of several blocks, each once."""
        table = pa.concat_tables(tables).combine_chunks()
        if len(tables) == 1 or not len(table):
            return table
        grouping = self.plan.groupings[number]
        signatures = [name for name, _ in grouping.signatures]
        parts = [Numbered(*value_codes(flatten(table.column(name)))) for name in grouping.key_columns]
        instants = [_numbered(np.asarray(flatten(table.column(n)))) for n in (grouping.slice_column, *signatures)]
        groups, firsts = numbered(combined([*instants, *parts], len(table)).numbers)
        if len(firsts) == len(table):
            return table
        order = np.argsort(groups, kind="stable")
        pointers = np.append(0, np.cumsum(np.bincount(groups, minlength=len(firsts))))
        partials = merged_partials(grouping, table, order, pointers)
        chosen = pa.array(firsts)
        return pa.table(
            {
                name: partials[name] if name in partials else flatten(table.column(name)).take(chosen)
                for name in table.column_names
            }
        )


def passing(rows: pa.Table, masks: dict[int, int]) -> Array:
    """Which rows have one of the bits."""
    found = np.zeros(len(rows), np.bool_)
    for word, mask in masks.items():
        found |= np.asarray(flatten(rows.column(f"{WORD}{word}"))) & np.int64(mask) != 0
    return found


def _numbered(values: Array) -> Numbered:
    """Integers that lie less than 2**63 apart as small ones."""
    if not len(values):
        return Numbered(values, 1)
    least = values.min()
    groups, firsts = numbered(values - least, int(values.max()) - int(least) + 1)
    return Numbered(groups.astype(np.int64), len(firsts))


@dataclass
class MarkedRows:
    """Rows, and what groupings look for in them: each made when it is first asked for, and shared."""

    marks: Marks
    rows: pa.Table
    _made: dict[object, object] = field(default_factory=dict)

    def _once(self, name: object, make: Callable[[], Made]) -> Made:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]  # type: ignore[return-value]

    def column(self, name: str) -> pa.Array:
        """A column in one piece."""
        return self._once(name, lambda: flatten(self.rows.column(name)))

    def numbers(self, name: str) -> Array:
        """A column of numbers without NULL."""
        return np.asarray(self.column(name))

    def starts(self, grouping: Grouping) -> tuple[Array, Numbered]:
        """Where the slices of rows start."""

        def make() -> tuple[Array, Numbered]:
            starts = self.marks.edges(grouping).starts(self.numbers(TIME))
            return starts, _numbered(starts)

        return self._once(("starts", grouping.slice_column), make)

    def signature(self, name: str, predicates: tuple[Predicate, ...]) -> tuple[Array, Numbered]:
        """Which predicates rows satisfy: their bits, close together."""

        def make() -> tuple[Array, Numbered]:
            bits = np.zeros(len(self.rows), np.int64)
            for (word, distance), mask in self.marks.moves(predicates).items():
                own = self.numbers(f"{WORD}{word}") & np.int64(mask)
                bits |= own >> distance if distance > 0 else own << -distance
            return bits, _numbered(bits)

        return self._once(("signature", name), make)

    def passing(self, predicates: frozenset[Predicate]) -> Array:
        """Which rows satisfy one of the predicates."""
        return self._once(predicates, lambda: passing(self.rows, self.marks.masks(predicates)))


@dataclass
class Block(MarkedRows):
    """Rows that are cut together."""

    marks: Cutter

    def key(self, name: str) -> tuple[pa.Array, Numbered]:
        """A key of rows, as Spark groups by it."""

        def make() -> tuple[pa.Array, Numbered]:
            values = as_grouped(self.column(name))
            return values, Numbered(*value_codes(values))

        return self._once(("key", name), make)

    def lifted(self, names: tuple[str, ...]) -> Lifted:
        """Rows as one-row slices, in the numbers of a partial."""
        lifting = self.marks.liftings[names]
        return self._once(names, lambda: lifting.rows(self.column, len(self.rows)))

    def cut(self, grouping: Grouping) -> pa.Table:
        """The slices of one grouping, in the order in which they begin to hold rows."""
        starts, slices = self.starts(grouping)
        keys = {name: self.key(name) for name in grouping.key_columns}
        signatures = {name: self.signature(name, word) for name, word in grouping.signatures}
        codes = combined(
            [slices, *(own for _, own in keys.values()), *(own for _, own in signatures.values())], len(self.rows)
        )
        wanted = codes.numbers
        if not grouping.wants_everything:
            wanted = np.where(self.passing(frozenset(query.predicate for query in grouping.queries)), wanted, -1)
        groups, firsts = numbered(wanted, codes.room)
        chosen = pa.array(firsts)
        columns = {grouping.slice_column: pa.array(starts[firsts])}
        columns |= {name: values.take(chosen) for name, (values, _) in keys.items()}
        columns |= {name: pa.array(values[firsts]) for name, (values, _) in signatures.items()}
        return pa.table(columns | Merging(self, grouping, groups, len(firsts)).columns())


@dataclass
class Merging:
    """The partials of one grouping's slices."""

    block: Block
    grouping: Grouping
    groups: Array
    """Of which slice each row is."""
    count: int
    _satisfying: dict[Predicate, Array] = field(default_factory=dict)

    def columns(self) -> dict[str, pa.Array]:
        """Every column of partials."""
        found: dict[str, pa.Array] = {}
        asking = {query.predicate for query in self.grouping.queries if not query.predicate.everything}
        for predicate in asking if self.grouping.conditional else ():
            rows = self._groups(predicate)
            found[predicate.name] = pa.array(np.bincount(rows[rows >= 0], minlength=self.count))
        # plain columns first: moments share them, and would give sums back by way of their means
        for (partial, condition), names in sorted(
            partial_columns(self.grouping).items(), key=lambda item: len(item[1])
        ):
            if not all(name in found for name in names):
                for name, column in zip(names, self._encoded(partial, condition), strict=True):
                    found.setdefault(name, column)
        return found

    def _groups(self, condition: Predicate | None) -> Array:
        """Of which slice each row is, as far as rows satisfy a condition."""
        if condition is None:
            return self.groups
        if condition not in self._satisfying:
            satisfying = self.block.passing(frozenset({condition}))
            self._satisfying[condition] = np.where(satisfying, self.groups, NONE)
        return self._satisfying[condition]

    def _encoded(self, partial: Partial, condition: Predicate | None) -> list[pa.Array]:
        """A partial's columns, as Spark would have computed them."""
        names = partial.columns()
        lifted, groups = self.block.lifted(names), self._groups(condition)
        decoded = lifted.decoded
        values = accumulated(decoded.monoid, decoded.values, groups, self.count)
        valid = None
        if decoded.valid is not None:
            valid = marked(groups, self.count, decoded.valid)
        elif condition is not None and self.block.marks.liftings[names].knows_missing(self.block.column):
            valid = marked(groups, self.count)
        return partial.measure.encode(decoded.having(values, valid), lifted.columns)


class Cutting:
    """Cuts a stream of record batches and counts its rows.

    Blocks of a stream in order share few slices, which are sent on at once; others are held, to be merged.

    Parameters
    ----------
    threads
        How many blocks are cut at the same time.
    """

    def __init__(self, cutter: Cutter, at_once: int = AT_ONCE, held: int = HELD, threads: int = 1) -> None:
        self.counts = Counts()
        self._cutter = cutter
        self._at_once = at_once
        self._most = 0 if cutter.plan.ordered else held
        self._held: dict[int, list[pa.Table]] = {}
        self._threads = threads

    def slices(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
        """Tables of slices with the numbers of their groupings."""
        for cut in mapped(self._cutter.cut, blocks(batches, self._at_once), self._threads):
            self.counts += cut.counts
            for number, table in cut.tables.items():
                self._held.setdefault(number, []).append(table)
            if sum(len(table) for tables in self._held.values() for table in tables) > self._most:
                yield from self._emptied()
        yield from self._emptied()

    def _emptied(self) -> Iterator[tuple[int, pa.Table]]:
        for number, tables in self._held.items():
            merged = self._cutter.merged(number, tables)
            if len(merged):
                yield number, merged
        self._held.clear()


def blocks(batches: Iterable[pa.RecordBatch], at_once: int) -> Iterator[pa.Table]:
    """Batches put together until they have ``at_once`` rows, or are large."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= at_once or size >= BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()
