"""Retained slices of one grouping: what open windows may still need. Pure Arrow; no Spark and no files in here.

A retained slice is a row: where it starts and ends, its keys, which predicates its rows satisfy, its partials. Columns
are named by what they are, so that slices cut under one plan serve the next. Rows of the same slice, keys and shard
may stand there several times, as they came with several micro-batches; they are merged now and then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from weft.algebra.numbers import Array, flatten
from weft.plan.asking import asked_by
from weft.plan.model import BoundQuery, Grouping, Partial, Predicate, key_column
from weft.slicing.progression import Progression
from weft.slicing.window import Window
from weft.step.panes import group_starts
from weft.step.slices import number_rows, reduce, take

START = "start"
END = "end"
SIGNATURES = b"weft.signatures"
"""Schema metadata: which predicates the bits of the signature columns stand for."""


def slice_ends(starts: Array, progressions: Iterable[Progression]) -> Array:
    """The first edge after each start.

    Examples
    --------
    >>> slice_ends(np.array([0, 9, 10]), [Progression(10), Progression(10, 9)]).tolist()
    [9, 10, 19]
    """
    ends = [(starts - edge.offset) // edge.step * edge.step + edge.step + edge.offset for edge in progressions]
    first: Array = np.minimum.reduce(ends)
    return first


def open_slices(starts: Array, windows: Mapping[Window, int | None], watermark: int | None) -> Array:
    """Which slices some window covers that ends after ``watermark`` and does not start before its query's first.

    Parameters
    ----------
    windows
        The windows of all queries, each with the instant before which none of its windows counts; None is no limit.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> open_slices(np.array([0, 10, 20, 30]), {TimeWindow(range=20, slide=10): None}, 20).tolist()
    [False, True, True, True]
    >>> open_slices(np.array([0, 10, 20, 30]), {TimeWindow(range=10, slide=30): None}, 0).tolist()
    [True, False, False, True]
    """
    covered = np.zeros(len(starts), np.bool_)
    for window, first in windows.items():
        since = window.open_since(first, watermark)
        reaching = np.ones(len(starts), np.bool_) if since is None else starts >= since
        covering = window.covers(starts)
        if covering is not None:
            reaching &= covering
        covered |= reaching
        if covered.all():
            break
    return covered


def coarsened(table: pa.Table, windows: Mapping[Window, int | None], watermark: int | None) -> pa.Table:
    """Slices that end before the watermark, cut only where an open window starts: other edges have done their work.

    What long windows need of the past is little once the short ones are closed; slices that now begin together can be
    merged.
    """
    starts, ends = (np.asarray(flatten(table.column(name))) for name in (START, END))
    past = np.zeros(len(starts), np.bool_) if watermark is None else ends <= watermark
    if not past.any():
        return table
    edges = starts[past]
    last = last_starts(edges, windows, watermark)
    begun, which = np.unique(last, return_inverse=True)
    ended = np.full(len(begun), edges.min())
    np.maximum.at(ended, which, ends[past])
    starts, ends = starts.copy(), ends.copy()
    starts[past], ends[past] = last, ended[which]
    places = {START: starts, END: ends}
    arrays = [pa.array(places[name]) if name in places else table.column(name) for name in table.column_names]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def last_starts(edges: Array, windows: Mapping[Window, int | None], watermark: int | None) -> Array:
    """The last start of an open window at or before each edge; the edge itself where there is none.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> windows = {TimeWindow(range=60, slide=30): None, TimeWindow(range=10, slide=5): None}
    >>> last_starts(np.array([60, 65, 90, 95]), windows, 100).tolist()
    [60, 60, 90, 95]
    """
    found = np.full(len(edges), np.iinfo(np.int64).min)
    for window, first in windows.items():
        since = window.open_since(first, watermark)
        last = window.last_starts(edges)
        found = np.maximum(found, last if since is None else np.where(edges >= since, last, found))
    return np.where(found == np.iinfo(np.int64).min, edges, found)


def straddled(starts: Array, ends: Array, edges: Iterable[Progression]) -> Array:
    """Which slices have one of the edges inside.

    Examples
    --------
    >>> straddled(np.array([0, 10]), np.array([10, 25]), [Progression(20)]).tolist()
    [False, True]
    """
    inside = np.zeros(len(starts), np.bool_)
    for edge in edges:
        last = (ends - 1 - edge.offset) // edge.step * edge.step + edge.offset
        inside |= last > starts
    return inside


def tagged(table: pa.Table, grouping: Grouping) -> pa.Table:
    """The table with a note of what its signature bits stand for."""
    note = ";".join(f"{column}={','.join(p.name for p in word)}" for column, word in grouping.signatures)
    return table.replace_schema_metadata({SIGNATURES: note.encode()})


def conform(table: pa.Table, grouping: Grouping, schema: pa.Schema) -> pa.Table:
    """Slices of an earlier plan in the columns of this one: what was not kept is NULL, what nobody asks for is gone."""
    note = (table.schema.metadata or {}).get(SIGNATURES, b"").decode()
    kept = dict(zip(table.column_names, table.columns, strict=True))
    kept |= _signatures(table, grouping, note)
    columns = [
        kept[item.name].cast(item.type) if item.name in kept else pa.nulls(len(table), item.type) for item in schema
    ]
    return tagged(pa.Table.from_arrays(columns, schema=schema.remove_metadata()), grouping)


def _signatures(table: pa.Table, grouping: Grouping, note: str) -> dict[str, pa.ChunkedArray]:
    """Signature columns for the grouping's predicates from those for an earlier plan's."""
    before = dict(part.split("=", 1) for part in note.split(";") if part)
    found: dict[str, pa.ChunkedArray] = {}
    for column, word in grouping.signatures:
        if column in before:
            continue
        bits = np.zeros(len(table), np.int64)
        for bit, predicate in enumerate(word):
            for old, names in before.items():
                places = names.split(",")
                if predicate.name in places:
                    values = np.asarray(flatten(table.column(old)))
                    bits |= ((values >> places.index(predicate.name)) & 1) << bit
        found[column] = pa.chunked_array([pa.array(bits)])
    return found


def merged(grouping: Grouping, table: pa.Table) -> pa.Table:
    """One row a slice, keys and shard; as it is if nothing can be merged."""
    columns = [flatten(table.column(name)) for name in (*grouping.key_columns, *(n for n, _ in grouping.signatures))]
    numbers, _ = number_rows(columns, len(table))
    starts, ends = (np.asarray(flatten(table.column(name))) for name in (START, END))
    order = np.lexsort((ends, starts, numbers))
    firsts = group_starts(numbers[order], _stretches(starts[order], ends[order]))
    if len(firsts) == len(table):
        return table
    pointers = np.append(firsts, len(order))
    try:
        partials = merged_partials(grouping, table, order, pointers)
    except Exception:
        # too large for a column of partials, or whatever: the pieces stay apart, and the answers of one query will tell
        return table
    rows = pa.array(order[firsts])
    arrays = [
        partials[name] if name in partials else flatten(table.column(name)).take(rows) for name in table.column_names
    ]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _stretches(starts: Array, ends: Array) -> Array:
    """A number that changes where start or end does; both rise within a key and shard."""
    changes = np.ones(len(starts), np.int64)
    changes[1:] = (np.diff(starts) != 0) | (np.diff(ends) != 0)
    return changes.cumsum()


def merged_partials(grouping: Grouping, table: pa.Table, order: Array, pointers: Array) -> dict[str, pa.Array]:
    """Every partial column, merged over stretches of the rows in ``order``."""
    found: dict[str, pa.Array] = {}
    for predicate in grouping.predicates if grouping.conditional else ():
        if predicate.name in table.column_names:
            counts = np.asarray(flatten(table.column(predicate.name)).fill_null(0))
            found[predicate.name] = pa.array(np.add.reduceat(counts[order], pointers[:-1]))
    # plain columns first: moments share them, and would give sums back by way of their means
    for partial, names in sorted(partial_columns(grouping).items(), key=lambda item: len(item[1])):
        if all(name in found for name in names):
            continue
        originals = [flatten(table.column(name)) for name in names]
        decoded = reduce(take(partial[0].measure.decode(originals), order), pointers)
        for name, column in zip(names, partial[0].measure.encode(decoded, originals), strict=True):
            found.setdefault(name, column)
    return found


def partial_columns(grouping: Grouping) -> dict[tuple[Partial, Predicate | None], tuple[str, ...]]:
    """Every partial of a grouping, with its condition where there is one, and its columns."""
    found: dict[tuple[Partial, Predicate | None], tuple[str, ...]] = {}
    for query in grouping.queries:
        for call in query.calls:
            predicate = query.predicate_of(call)
            condition = predicate if grouping.conditional and not predicate.everything else None
            for partial in call.partials:
                found.setdefault((partial, condition), partial.columns(condition))
    return found


def kept_names(grouping: Grouping) -> set[str]:
    """The names of all that a grouping keeps of a slice."""
    return {name for query in grouping.queries for name in _own_names(grouping.conditional, query)} | {
        asked.name for query in grouping.queries for asked in asked_by(query)
    }


def needs(conditional: bool, query: BoundQuery) -> list[set[str]]:
    """All that a query reads of a slice; each need by the names of what would meet it.

    A key or an argument was evaluated for the rows of those who asked: it serves who asks for the same rows, and
    everybody if somebody asked for all.
    """
    own = [{name} for name in _own_names(conditional, query)]
    return own + [{asked.name, asked.for_all.name} for asked in asked_by(query)]


def _own_names(conditional: bool, query: BoundQuery) -> set[str]:
    """The names of a query's keys, predicates and partials."""
    names = {key_column(key) for key in query.query.keys}
    # its own predicate also if that lets everything through: where nobody asked for all rows, they were not all kept
    names |= {query.predicate.name, *(predicate.name for predicate in query.predicates if not predicate.everything)}
    for call in query.calls:
        predicate = query.predicate_of(call)
        condition = predicate if conditional and not predicate.everything else None
        names |= {name for partial in call.partials for name in partial.columns(condition)}
    return names
