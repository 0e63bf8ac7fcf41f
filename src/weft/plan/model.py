"""The plan: what is computed once, for whom, and what comes out. Frozen, free of Spark, sent to the workers as it is.

Columns are named by what they are (a digest of their canonical text), never by position, so that two plans which share
a partial call it the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import TypeVar

import pyarrow as pa

from weft.algebra.measure import Measure, Recipe
from weft.plan.forest import Tree
from weft.query.limits import DEFAULT, Limits
from weft.query.model import Call, Expression, Part, Query
from weft.slicing.progression import Progression
from weft.slicing.window import Window

Item = TypeVar("Item")

BITS = 63
"""Predicates a signature column; the sign bit stays free."""


def batched(items: Sequence[Item], size: int) -> list[tuple[Item, ...]]:
    """``items`` in order, ``size`` at a time."""
    return [tuple(items[at : at + size]) for at in range(0, len(items), size)]


@lru_cache(maxsize=1 << 16)
def digest(prefix: str, *texts: str) -> str:
    """A column name that depends on nothing but ``texts``.

    Examples
    --------
    >>> digest("k", "upper(symbol)") == digest("k", "upper(symbol)")
    True
    """
    return f"{prefix}_{blake2b(chr(0).join(texts).encode(), digest_size=6).hexdigest()}"


def key_column(key: Expression) -> str:
    """The column of a group key."""
    return digest("k", key.canonical)


def without_hash(item: object) -> dict[str, object]:
    """What is kept of an item that remembers its hash: in another process it has another."""
    return {name: value for name, value in vars(item).items() if name != "_hash"}


@dataclass(frozen=True)
class Predicate:
    """Which rows an aggregate sees: a WHERE, and perhaps a FILTER that is looked at only where the WHERE holds."""

    where: Expression | None = None
    filter: Expression | None = None

    @cached_property
    def _hash(self) -> int:
        return hash((self.where, self.filter))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, object]:
        return without_hash(self)

    @cached_property
    def everything(self) -> bool:
        """Whether it lets every row through."""
        return self.where is None and self.filter is None

    @cached_property
    def name(self) -> str:
        """Its column."""
        return digest("b", *(part.canonical if part else "" for part in (self.where, self.filter)))


@dataclass(frozen=True)
class Partial:
    """A measure over argument expressions: computed once a slice, for all who ask for it."""

    measure: Measure
    arguments: tuple[Expression, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.measure.columns, self.arguments))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, object]:
        return without_hash(self)

    def columns(self, predicate: Predicate | None = None) -> tuple[str, ...]:
        """The names of its columns; those of conditional partials carry their predicate."""
        condition = predicate.name if predicate else ""
        arguments = [argument.canonical for argument in self.arguments]
        return tuple(digest("p", template, condition, *arguments) for template in self.measure.columns)


@dataclass(frozen=True)
class BoundCall:
    """An aggregate call with types: what to keep for it and what type comes out."""

    call: Call
    types: tuple[pa.DataType, ...]
    recipe: Recipe
    result: pa.DataType

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """What it is computed from."""
        return tuple(Partial(measure, self.call.arguments) for measure in self.recipe.measures)

    @cached_property
    def hashed(self) -> bool:
        """Whether Spark aggregates all of it by hashing."""
        return all(measure.hashed for measure in self.recipe.measures)


@dataclass(frozen=True)
class BoundQuery:
    """A query that was checked against the stream's schema."""

    query: Query
    calls: tuple[BoundCall, ...]
    key_types: tuple[pa.DataType, ...]
    event_type: pa.DataType
    columns: tuple[str, ...]
    """The names of the output columns, as Spark gives them."""
    chosen: Window | None = None
    """The window that the planner runs, where that is not the one that was asked for."""

    @cached_property
    def window(self) -> Window:
        """The window that is run: as chosen, or else as asked."""
        return self.chosen or self.query.window

    @property
    def name(self) -> str:
        """The query's name."""
        return self.query.name

    @cached_property
    def direct(self) -> bool:
        """Whether workers write its rows as they are: bare columns that show the window and every key."""
        outputs = self.query.outputs
        shown = {output.index for output in outputs if output.part is Part.KEY}
        window = any(output.part in {Part.WINDOW, Part.WINDOW_START, Part.WINDOW_END} for output in outputs)
        distinct = len({column.lower() for column in self.columns}) == len(self.columns)
        # Parquet has no intervals: Spark writes them as numbers, with a note that only it knows how to write
        plain = not any(pa.types.is_duration(kind) for kind in self.key_types)
        return self.query.bare and window and distinct and plain and len(shown) == len(self.query.keys)

    @cached_property
    def identity(self) -> tuple[tuple[str | None, str | None], tuple[str, ...] | None]:
        """The columns that hold a window's start and end, and those of the group's keys if all are shown."""
        start = end = None
        keys: dict[int, str] = {}
        for output, column in zip(self.query.outputs, self.columns, strict=True):
            if output.part is Part.WINDOW:
                start, end = f"{column}.start", f"{column}.end"
            elif output.part is Part.WINDOW_START:
                start = column
            elif output.part is Part.WINDOW_END:
                end = column
            elif output.part is Part.KEY:
                keys[output.index] = column
        shown = tuple(keys[index] for index in sorted(keys)) if len(keys) == len(self.query.keys) else None
        return (start, end), shown

    @cached_property
    def predicate(self) -> Predicate:
        """The rows it sees."""
        return Predicate(self.query.where)

    def predicate_of(self, call: BoundCall) -> Predicate:
        """The rows that one of its aggregates sees."""
        return self.predicate if call.call.filter is None else Predicate(self.query.where, call.call.filter)

    @cached_property
    def predicates(self) -> frozenset[Predicate]:
        """Its own predicate and those of its filtered aggregates."""
        return frozenset({self.predicate, *(self.predicate_of(call) for call in self.calls)})


@dataclass(frozen=True)
class Grouping:
    """Queries that share slices: one grouping set of the shared aggregation, by all the keys that they group by."""

    keys: tuple[Expression, ...]
    queries: tuple[BoundQuery, ...]
    progressions: tuple[Progression, ...] = ()
    conditional: bool = False
    """Whether predicates stand inside the partials instead of splitting slices into shards."""
    trees: tuple[Tree, ...] = ()
    """How its queries are woven: each tree puts slices of its own together; without any, every query does."""
    placed: bool = False
    """Whether each tree is answered on its own node; otherwise keys are spread over all of them."""
    node: int | None = None
    """The one node that keeps its slices, where that was said."""

    @cached_property
    def hashed(self) -> bool:
        """Whether Spark aggregates it by hashing, not by sorting."""
        return all(call.hashed for query in self.queries for call in query.calls)

    @cached_property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(key_column(key) for key in self.keys)

    @cached_property
    def placing_columns(self) -> tuple[str, ...]:
        """The columns of the keys that all its queries group by: slices that share them must meet in one bucket."""
        shared = [key for key in self.keys if all(key in query.query.keys for query in self.queries)]
        return tuple(key_column(key) for key in shared)

    @cached_property
    def slice_column(self) -> str:
        """The column that holds the start of a row's slice."""
        return digest("s", *(f"{progression.step}+{progression.offset}" for progression in self.progressions))

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that its slices go to, where its trees are placed."""
        return tuple(sorted({tree.node for tree in self.trees})) if self.placed else ()

    @cached_property
    def tree_of(self) -> dict[str, Tree]:
        """The tree of each query, by its name."""
        return {name: tree for tree in self.trees for name in tree.queries}

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        """Every distinct predicate of its queries but the one that lets all rows through, in a fixed order."""
        distinct = {predicate for query in self.queries for predicate in query.predicates if not predicate.everything}
        return tuple(sorted(distinct, key=lambda predicate: predicate.name))

    @cached_property
    def signatures(self) -> tuple[tuple[str, tuple[Predicate, ...]], ...]:
        """The columns that tell which predicates a row satisfies, with the predicates of their bits from the lowest."""
        if self.conditional:
            return ()
        words = batched(self.predicates, BITS)
        return tuple((digest("g", *(predicate.name for predicate in word)), word) for word in words)

    def bit(self, predicate: Predicate) -> tuple[str, int]:
        """Which bit of which signature column stands for ``predicate``."""
        for column, word in self.signatures:
            if predicate in word:
                return column, word.index(predicate)
        raise KeyError(predicate)

    @cached_property
    def wants_everything(self) -> bool:
        """Whether some query looks at every row."""
        return any(query.predicate.everything for query in self.queries)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The distinct windows of its queries."""
        return tuple(dict.fromkeys(query.window for query in self.queries))


@dataclass(frozen=True)
class Plan:
    """Everything that one step over one stream computes."""

    stream: str
    event_time: str
    queries: tuple[BoundQuery, ...]
    groupings: tuple[Grouping, ...] = ()
    same_as: dict[str, str] = field(default_factory=dict)
    """Names of queries that ask what an earlier one asks, and that one's name."""
    technique: str = "auto"
    loads: tuple[float, ...] = ()
    """How many slices each grouping has of a sample, where there was one."""
    sampled: int = 0
    """Rows of that sample."""
    ordered: bool = False
    """Whether rows seem to come in the order of time, so that the tasks which read them share few slices."""
    nodes: int = 1
    """Over how many nodes trees are spread, in groupings whose trees are placed."""
    limits: Limits = DEFAULT
    """What each of its queries may cause."""

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        """Every distinct predicate."""
        distinct = {predicate for grouping in self.groupings for predicate in grouping.predicates}
        return tuple(sorted(distinct, key=lambda predicate: predicate.name))

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """Every distinct partial."""
        return tuple(
            dict.fromkeys(
                partial
                for grouping in self.groupings
                for query in grouping.queries
                for call in query.calls
                for partial in call.partials
            )
        )
