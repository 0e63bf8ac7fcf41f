"""Slices on their way to the buckets that answer them, as few large records: an Arrow stream a bucket and grouping.

Kernels know the slices of a grouping as a table; sent row by row, with a column for whatever some grouping has, they
took longer on their way than they had taken to be made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.numbers import Array, flatten
from weft.plan.model import Grouping, Plan
from weft.plan.placing import PARTS, hash_cuts, whole_groupings
from weft.step.parts import HASH

SEED = 0x9E3779B97F4A7C15
BUNDLE_TYPES = pa.schema(
    [("bucket", pa.int32()), ("grouping", pa.int32()), ("node", pa.int32()), ("slices", pa.binary())]
)
"""The columns of bundles, as they travel."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Slices of one grouping for one bucket."""

    bucket: int
    grouping: int
    node: int | None
    """Where trees are placed on nodes, the one that the bucket belongs to."""
    slices: pa.Table
    """With a column of hashes: slices that must stay together have the same."""


@dataclass(frozen=True)
class Buckets:
    """Which bucket a slice goes to, as ``weft.plan.placing`` tells; only the hash of its keys is another."""

    plan: Plan
    count: int

    @cached_property
    def _whole(self) -> dict[int, int]:
        return whole_groupings(self.plan, self.count)

    @cached_property
    def _cuts(self) -> list[int]:
        return hash_cuts(self.plan, self._whole, self.count)[:-1]

    def bundles(self, number: int, table: pa.Table) -> Iterator[Bundle]:
        """The slices of a grouping, bucket by bucket."""
        grouping = self.plan.groupings[number]
        hashes = slice_hashes(grouping, number, table)
        hashed = table.append_column(HASH, pa.array(hashes))
        if number in self._whole:
            yield Bundle(self._whole[number], number, None, hashed)
            return
        places: list[tuple[int | None, Array]]
        if not grouping.placed:
            places = [(None, np.searchsorted(self._cuts, hashes, side="right"))]
        else:
            share = max(self.count // self.plan.nodes, 1)
            places = [(node, node * share + hashes % share) for node in grouping.nodes]
        for node, buckets in places:
            order = np.argsort(buckets, kind="stable")
            sorted_ = hashed.take(pa.array(order))
            edges = np.searchsorted(buckets[order], np.arange(self.count + 1))
            for bucket, (begin, end) in enumerate(pairwise(edges.tolist())):
                if end > begin:
                    yield Bundle(bucket, number, node, sorted_.slice(begin, end - begin))


def slice_hashes(grouping: Grouping, number: int, table: pa.Table) -> Array:
    """Numbers below ``PARTS``, equal for slices that have to meet in one bucket."""
    hashes = np.full(len(table), number + 1, np.uint64)
    for name in grouping.placing_columns:
        hashes = mixed(hashes, value_hashes(flatten(table.column(name))))
    return (hashes >> np.uint64(32)).astype(np.int64) % PARTS


def mixed(hashes: Array, others: Array) -> Array:
    """Two hashes as one."""
    spread = (hashes ^ others) * np.uint64(SEED)
    found: Array = spread ^ (spread >> np.uint64(29))
    return found


def value_hashes(column: pa.Array) -> Array:
    """A number for each value, the same for equal ones in whichever process.

    Examples
    --------
    >>> hashes = value_hashes(pa.array(["a", None, "a", "b"]))
    >>> hashes[0] == hashes[2], len(set(hashes.tolist()))
    (np.True_, 3)
    >>> len(set(value_hashes(pa.array([{"a": [1.5, None]}, {"a": [1.5]}, {"a": [1.5, None]}, None])).tolist()))
    3
    """
    if pa.types.is_struct(column.type):
        hashes = np.asarray(pc.is_valid(column)).astype(np.uint64)
        for part in column.flatten():
            hashes = mixed(hashes, value_hashes(part))
        return hashes
    if pa.types.is_list(column.type):
        inner = value_hashes(column.flatten())
        ends = np.cumsum(np.asarray(pc.list_value_length(column).fill_null(0)), dtype=np.int64)
        starts = np.append(0, ends[:-1])
        lists = [inner[start:end].tobytes().hex() for start, end in zip(starts, ends, strict=True)]
        hashes = np.asarray(pc.is_valid(column)).astype(np.uint64)
        return mixed(hashes, _hashed(lists))
    encoded = column.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    if pa.types.is_temporal(distinct.type):
        # as numbers: Python's dates end earlier than Spark's
        distinct = distinct.view(pa.int32() if pa.types.is_date32(distinct.type) else pa.int64())
    own: Array = _hashed([repr(value) for value in distinct.to_pylist()])[np.asarray(encoded.indices)]
    return own


def _hashed(texts: list[str]) -> Array:
    hashes: Array = pd.util.hash_array(np.array(texts, object), categorize=False)
    return hashes


def bundled(bundles: Iterator[Bundle]) -> pa.RecordBatch:
    """Bundles as they travel."""
    rows = [(one.bucket, one.grouping, one.node, _written(one.slices)) for one in bundles]
    columns = zip(*rows, strict=True) if rows else [[]] * len(BUNDLE_TYPES)
    arrays = [pa.array(column, item.type) for column, item in zip(columns, BUNDLE_TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=BUNDLE_TYPES)


def unbundled(batch: pa.RecordBatch) -> Iterator[Bundle]:
    """The bundles of a record that came; their slices are not copied."""
    for row, slices in zip(batch.drop_columns(["slices"]).to_pylist(), batch.column("slices"), strict=True):
        yield Bundle(**row, slices=pa.ipc.open_stream(slices.as_buffer()).read_all())


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
