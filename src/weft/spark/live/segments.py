"""Files of retained slices, one a segment: a row of Arrow streams, one a grouping, whose schema names the grouping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from weft.spark.live.checkpoint import Checkpoint

FOLDER = "state"
GROUPING_ID = b"weft.grouping"


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


def read(checkpoint: Checkpoint, name: str) -> dict[str, pa.Table]:
    """The tables of a file, by the ids of their groupings."""
    found = {}
    filesystem, path = checkpoint.folder.open(f"{FOLDER}/{name}")
    with filesystem.open_input_file(path) as file:
        size = file.size()
        while file.tell() < size:
            table = pa.ipc.open_stream(file).read_all()
            found[table.schema.metadata[GROUPING_ID].decode()] = table
    return found


def delete(checkpoint: Checkpoint, names: Iterable[str]) -> None:
    """Delete files."""
    for name in names:
        checkpoint.delete(f"{FOLDER}/{name}")
