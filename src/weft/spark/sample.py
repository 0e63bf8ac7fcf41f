"""What only the data can tell: which groupings to join, and whether predicates make shards or conditional partials.

A sample of the rows is looked at through hashes: how many distinct slices a grouping would have among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.algebra.measures import Array
from weft.optimize.weaving import Seen, one_tree
from weft.plan.build import join
from weft.plan.model import Grouping, Plan
from weft.slicing.edge_rate import MICROSECONDS
from weft.spark.fetching import brought
from weft.spark.rows import prepare

SAMPLE_ROWS = 20_000
FEW_PREDICATES = 4
"""So few predicates make at most 16 shards a slice: no sample needed."""
OWN_SIGNATURE = 0.5
"""From so many shards a row on, nearly every row is its own shard, and conditional partials take over."""
ROW_COST = 0.2
"""What a row costs in one more grouping set, as a share of what a slice costs (measured, docs/decisions/0002)."""
FEW_FALLS = 0.05
"""Rows with at most so many steps back in time count as ordered by time."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio in 64 bits: multiplying by it spreads low bits over all."""
SMALL = 0.3
"""Groupings with at most so many slices a row are small: joined, they may end in one bucket."""


@dataclass(frozen=True)
class Sampled:
    """One grouping's slices, shards and keys of the sampled rows, as numbers that are equal where those are."""

    grouping: Grouping
    starts: Array
    shards: Array
    keys: Array

    @classmethod
    def unseen(cls, grouping: Grouping) -> Sampled:
        """A grouping of which no row was looked at; all its queries in one tree."""
        nothing = np.empty(0, np.int64)
        return cls(replace(grouping, trees=(one_tree(grouping),)), nothing, nothing, nothing)

    @property
    def seen(self) -> Seen:
        """Rows a second, and how many keys."""
        if not len(self.starts):
            return Seen(1.0, 1.0)
        seconds = (self.starts.max() - self.starts.min()) / MICROSECONDS
        return Seen(len(self.starts) / max(seconds, 1.0), float(len(np.unique(self.keys))))

    @property
    def slices(self) -> int:
        """How many distinct slices and keys the sample holds."""
        return count_rows(self.starts, self.keys)

    @property
    def pieces(self) -> int:
        """The same, split into shards."""
        return count_rows(self.starts, self.keys, self.shards)


def count_rows(*columns: Array) -> int:
    """How many distinct rows some columns of numbers have.

    Examples
    --------
    >>> count_rows(np.array([1, 1, 2]), np.array([5, 5, 5]))
    2
    """
    return len(np.unique(mixed(columns)))


def adapt(plan: Plan, rows: DataFrame) -> Plan:
    """Fit the plan to the data, as far as a sample shows it."""
    if not depends_on_data(plan):
        return plan
    return with_groupings(plan, joined(look(plan, rows)))


def depends_on_data(plan: Plan) -> bool:
    """Whether groupings might be joined, or predicates be too many for shards."""
    return len(plan.groupings) > 1 or len(plan.predicates) > FEW_PREDICATES


def joined(sample: Sequence[Sampled]) -> list[Sampled]:
    """Groupings with few slices as one; those that are hashed and those that are sorted stay apart."""
    return [one for hashed in (True, False) for one in join_small([s for s in sample if s.grouping.hashed is hashed])]


def with_groupings(plan: Plan, sample: Sequence[Sampled]) -> Plan:
    """The plan with these groupings."""
    groupings = tuple(choose_sharding(one) for one in sample)
    loads = tuple(float(max(one.pieces, 1)) for one in sample)
    return replace(plan, groupings=groupings, loads=loads, ordered=all(is_ordered(one.starts) for one in sample))


def is_ordered(times: Array) -> bool:
    """Whether times rise, but for a few.

    Examples
    --------
    >>> is_ordered(np.array([1, 1, 2, 5])), is_ordered(np.array([5, 1, 2, 1]))
    (True, False)
    """
    falls = np.count_nonzero(np.diff(times) < 0)
    return bool(falls <= FEW_FALLS * len(times))


def look(plan: Plan, rows: DataFrame) -> list[Sampled]:
    """The sample, grouping by grouping."""
    columns = []
    for number, grouping in enumerate(plan.groupings):
        shards = [name for name, _ in grouping.signatures]
        columns += [
            F.col(grouping.slice_column).alias(f"starts{number}"),
            F.xxhash64(F.lit(0), *shards).alias(f"shards{number}"),
            F.xxhash64(F.lit(0), *grouping.key_columns).alias(f"keys{number}"),
        ]
    found = brought(prepare(rows.limit(SAMPLE_ROWS), plan).select(*columns))
    arrays = [np.asarray(found.column(name).combine_chunks()) for name in found.column_names]
    parts = [arrays[at : at + 3] for at in range(0, len(arrays), 3)]
    return [Sampled(grouping, *part) for grouping, part in zip(plan.groupings, parts, strict=True)]


def join_small(sample: Sequence[Sampled]) -> list[Sampled]:
    """Join groupings with few slices into one over all their keys, where a copy of every row costs more than that.

    Each grouping of an aggregation is a copy of every row. Queries by venue, by side and by nothing can all be
    answered from slices by venue and side.
    """
    rows = max((len(one.starts) for one in sample), default=0)
    small = [one for one in sample if one.pieces <= SMALL * rows]
    if len(small) < 2:
        return list(sample)
    grouping = join([one.grouping for one in small])
    together = Sampled(
        grouping,
        np.maximum.reduce([one.starts for one in small]),
        mixed([one.shards for one in small]),
        mixed([one.keys for one in small]),
    )
    saved = ROW_COST * rows * (len(small) - 1)
    if together.pieces > min(SMALL * rows, sum(one.pieces for one in small) + saved):
        return list(sample)
    return [one for one in sample if one not in small] + [together]


def mixed(columns: Sequence[Array]) -> Array:
    """A number for each row of several columns, the same for equal rows and, but for a hash's odds, only for these.

    Examples
    --------
    >>> first, second, third = mixed([np.array([1, 1, 2]), np.array([5, 5, 1])])
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found = (found ^ column.astype(np.int64).view(np.uint64)) * ODD
        found ^= found >> np.uint64(29)
    return found.view(np.int64)


def choose_sharding(sampled: Sampled) -> Grouping:
    """Put predicates into the partials where they would make nearly every row a shard of its own.

    Shards cost rows: every combination of predicates that occurs in a slice is one. Conditional partials cost columns:
    every predicate has its own.
    """
    grouping = sampled.grouping
    if len(grouping.predicates) <= FEW_PREDICATES or sampled.pieces <= OWN_SIGNATURE * len(sampled.starts):
        return grouping
    conditional = replace(grouping, conditional=True)
    cheaper = sampled.slices * columns_of(conditional) < sampled.pieces * columns_of(grouping)
    return conditional if cheaper else grouping


def columns_of(grouping: Grouping) -> int:
    """How many columns a slice of this grouping has."""
    columns = set()
    for query in grouping.queries:
        if grouping.conditional:
            columns.add(query.predicate.name)
        for call in query.calls:
            predicate = query.predicate_of(call) if grouping.conditional else None
            columns |= {name for partial in call.partials for name in partial.columns(predicate)}
    return len(columns) + len(grouping.keys) + 1
