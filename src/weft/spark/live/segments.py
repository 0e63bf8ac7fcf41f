"""Files of retained slices: what a batch added, or, now and then, everything there is.

A file is a row of Arrow streams, one a grouping, whose schema names the grouping. State is what all files that the
manifest lists say together, without what no open window covers any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from weft.spark.live.checkpoint import Checkpoint

FOLDER = "state"
GROUPING_ID = b"weft.grouping"
MOST_FILES = 32
"""From so many files on, they are written as one."""


def write(checkpoint: Checkpoint, name: str, tables: Mapping[str, pa.Table]) -> int:
    """Write the retained slices of some groupings, by their ids; gives the bytes written."""
    filesystem, path = checkpoint.folder.open(f"{FOLDER}/{name}")
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    with filesystem.open_output_stream(path, compression=None) as file:
        for grouping, table in tables.items():
            metadata = {**(table.schema.metadata or {}), GROUPING_ID: grouping.encode()}
            schema = table.schema.with_metadata(metadata)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with pa.ipc.new_stream(file, schema, options=options) as stream:
                stream.write_table(table.replace_schema_metadata(metadata))
        return int(file.tell())


def read(checkpoint: Checkpoint, names: Iterable[str]) -> Iterator[tuple[str, pa.Table]]:
    """The tables of some files in order, each with the id of its grouping."""
    for name in names:
        filesystem, path = checkpoint.folder.open(f"{FOLDER}/{name}")
        with filesystem.open_input_file(path) as file:
            size = file.size()
            while file.tell() < size:
                table = pa.ipc.open_stream(file).read_all()
                yield table.schema.metadata[GROUPING_ID].decode(), table


def delete(checkpoint: Checkpoint, names: Iterable[str]) -> None:
    """Delete files."""
    for name in names:
        checkpoint.delete(f"{FOLDER}/{name}")
