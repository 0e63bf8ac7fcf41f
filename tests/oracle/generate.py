"""Hypothesis strategies for whole workloads: a stream and a batch of queries over it.

Hypothesis draws a seed; the *shape* (how many rows, which types, how long a time, ...) and then rows and queries follow
from it: thousands of choices that hypothesis would be slow to draw one by one, and would bunch near zero. The shape
that a failing test prints is all that is needed to make the same workload again: ``workload(Shape(...))``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import strategies as st

from oracle import data
from oracle.queries import Asked, QueryWriter


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that a workload is made from."""

    seed: int
    rows: int
    event_time_type: str
    span: int
    types: tuple[str, ...]
    partitions: int
    queries: int
    many_predicates: bool = False
    """Whether every query has a predicate of its own, more of them than bits in a word."""
    ansi: bool = True
    """Whether Spark raises where a value does not fit."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A stream and the queries over it."""

    shape: Shape
    stream: data.Stream
    queries: tuple[Asked, ...]

    @property
    def text(self) -> str:
        """The file of queries that Weft is given."""
        return "\n".join(query.statement for query in self.queries)


def shapes(queries: int) -> st.SearchStrategy[Shape]:
    """Shapes of workloads with a number of queries."""
    return st.integers(0, 2**63 - 1).map(lambda seed: shape(seed, queries))


def shape(seed: int, queries: int) -> Shape:
    """The shape of a seed."""
    rnd = random.Random(seed)
    reach = rnd.choice(((0, 1), (2, 40), (2, 40), *[(40, 300)] * 5))
    return Shape(
        seed=seed,
        rows=rnd.randint(*reach),
        event_time_type=rnd.choice(("timestamp", "timestamp", "timestamp_ntz")),
        span=rnd.choice(data.SPANS),
        types=tuple(rnd.choice(data.TYPES) for _ in range(rnd.randint(2, 6))),
        partitions=rnd.randint(1, 4),
        queries=queries,
        many_predicates=queries > 64 and rnd.random() < 0.5,
        ansi=rnd.random() < 0.75,
    )


def workload(of: Shape) -> Workload:
    """The workload of a shape, the same each time."""
    rnd = random.Random(of.seed)
    stream = data.stream(
        rnd,
        rows=of.rows,
        types=of.types,
        event_time_type=of.event_time_type,
        span=of.span,
        partitions=of.partitions,
    )
    writer = QueryWriter(rnd, stream, of.span, of.ansi)
    if of.many_predicates:
        writer.predicates = [writer.scalars.predicate(1) for _ in range(3 * of.queries)]
    queries = tuple(writer.query(f"q_{i}") for i in range(of.queries))
    return Workload(of, stream, queries)
