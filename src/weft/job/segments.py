"""Files of retained slices, one a segment: a row of Arrow streams, one a grouping, whose schema names the grouping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from weft.job.checkpoint import Checkpoint
from weft.store.private import begin_private

FOLDER = "state"
GROUPING_ID = b"weft.grouping"


@dataclass(frozen=True)
class BucketFile:
    """What the name of a bucket's file tells.

    Examples
    --------
    >>> name = BucketFile("0000000012-1-5f", 3, since=8, task="a7").name
    >>> name, BucketFile.of(name).bucket, BucketFile.of(name).batch
    ('0000000012-1-5f-b3-8-a7.arrows', 3, 12)
    """

    attempt: str
    """Of the batch, whose number it begins with."""
    bucket: int
    since: int
    """The first batch whose slices may be in it; the last is the one that it was written in."""
    task: str
    """Tasks that are repeated write files of their own."""

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.attempt}-b{self.bucket}-{self.since}-{self.task}.arrows"

    @property
    def batch(self) -> int:
        """The last batch whose slices are in it."""
        return int(self.attempt.split("-")[0])

    @classmethod
    def of(cls, name: str) -> BucketFile:
        """What a name tells."""
        attempt, bucket, since, task = name.removesuffix(".arrows").rsplit("-", 3)
        return cls(attempt, int(bucket.removeprefix("b")), int(since), task)


def write(checkpoint: Checkpoint, name: str, tables: Mapping[str, pa.Table]) -> int:
    """Write the retained slices of some groupings, by their ids; gives the bytes written."""
    filesystem, path = checkpoint.folder.open(f"{FOLDER}/{name}")
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    begin_private(filesystem, path)
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
