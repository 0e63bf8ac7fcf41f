"""How slices come to the task that answers a bucket: as rows of the JVM's aggregation, or as bundles of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from weft.step.bucketing import BUNDLE_TYPES, unbundled
from weft.step.packing import Packing
from weft.step.parts import HASH
from weft.step.state import GROUPING, NODE


class Arrival(Protocol):
    """What a task knows of the records that come to it."""

    @property
    def packing(self) -> Packing:
        """Which columns of the tables travel in arrays."""

    def tables(self, data: bytes) -> Iterator[pa.Table]:
        """The slices of a record of Arrow, in the columns of the JVM's aggregation."""


@dataclass(frozen=True)
class PackedRows:
    """A row a slice."""

    packing: Packing
    schema: pa.Schema

    def tables(self, data: bytes) -> Iterator[pa.Table]:
        """The slices of a record, packed."""
        yield pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(data), self.schema)])


@dataclass(frozen=True)
class Bundles:
    """A row a task, bucket and grouping; nothing is packed."""

    schema: pa.Schema
    """The columns of the JVM's aggregation."""
    names: Sequence[Mapping[str, str]]
    """By a grouping's number: columns of the aggregation, and what they are called within the grouping."""
    packing: Packing = Packing((), ())  # noqa: RUF009

    def tables(self, data: bytes) -> Iterator[pa.Table]:
        """The slices of a record."""
        placed = pa.schema([*self.schema, pa.field(NODE, pa.int32()), pa.field(HASH, pa.int64())])
        for bundle in unbundled(pa.ipc.read_record_batch(pa.py_buffer(data), BUNDLE_TYPES)):
            own = laid_out(bundle.grouping, bundle.slices, self.names[bundle.grouping])
            own[HASH] = bundle.slices.column(HASH)
            if bundle.node is not None:
                own[NODE] = pa.repeat(pa.scalar(bundle.node, pa.int32()), len(bundle.slices))
            yield filled(own, len(bundle.slices), placed)


def laid_out(number: int, table: pa.Table, names: Mapping[str, str]) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The slices of a grouping under the names of the JVM's aggregation."""
    columns = {slot: table.column(name) for slot, name in names.items()}
    return {**columns, GROUPING: pa.repeat(pa.scalar(number, pa.int32()), len(table))}


def filled(columns: Mapping[str, pa.Array | pa.ChunkedArray], length: int, schema: pa.Schema) -> pa.Table:
    """Columns under a schema, NULL where they have none."""
    arrays = [columns[item.name] if item.name in columns else pa.nulls(length, item.type) for item in schema]
    return pa.Table.from_arrays(arrays, schema.names).cast(schema)
