"""The engine's own folder next to Spark's checkpoint: small records that appear whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from pyarrow import fs

from weft.errors import WeftError
from weft.store.folder import Folder
from weft.store.private import begin_private, make_private


@dataclass(frozen=True)
class Checkpoint:
    """``root/weft``: records, state and answers that wait for their sinks.

    ``root`` is a path on this machine, or a URI such as ``hdfs://host/path``.
    """

    root: str

    @property
    def folder(self) -> Folder:
        """Where everything of ours lies."""
        return Folder(f"{Folder(self.root).root}/weft")

    @property
    def spark(self) -> str:
        """Where Spark keeps its own checkpoint."""
        return Folder(f"{Folder(self.root).root}/spark").url()

    def make(self) -> None:
        """Have folders for us and for Spark that only their owner can enter; those that are there stay as they are."""
        if not Folder(self.root).exists():
            make_private(Folder(self.root))
        make_private(self.folder)
        make_private(Folder(f"{Folder(self.root).root}/spark"))

    def forget_unbegun(self, committed: int) -> None:
        """Delete what Spark left of a start that was ended before its first batch: it would not begin beside that.

        Parameters
        ----------
        committed
            The last batch that counts, -1 if there is none: if there is one, Spark has lost what it wrote of it, and
            would count from 0 again, so that rows would be taken for answered.
        """
        filesystem, root = Folder(f"{Folder(self.root).root}/spark").open()
        infos = filesystem.get_file_info(fs.FileSelector(f"{root}/offsets", allow_not_found=True))
        if not infos or any(info.base_name.isdecimal() for info in infos):
            return
        if committed >= 0:
            raise WeftError(
                f"{self.spark}/offsets holds no batch of Spark's, though batch {committed} is committed: "
                "restore the folder from a backup, or begin a new checkpoint"
            )
        filesystem.delete_dir_contents(root)

    def exists(self) -> bool:
        """Whether a job ever used it."""
        return self.folder.exists()

    def read(self, name: str) -> bytes | None:
        """A record, None if it is not there."""
        filesystem, path = self.folder.open(name)
        try:
            with filesystem.open_input_stream(path, compression=None) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        """Write a record, in the place of an earlier one if there is one."""
        filesystem, path, written = self._write_beside(name, data)
        filesystem.move(written, path)

    def claim(self, name: str, data: bytes) -> bool:
        """Write a record unless it is there already: of several writers one succeeds.

        Where the file system has no links, two writers at the very same instant are told apart by the lease alone.
        """
        filesystem, path, written = self._write_beside(name, data)
        if isinstance(filesystem, fs.LocalFileSystem):
            try:
                os.link(written, path)
                return True
            except FileExistsError:
                return False
            finally:
                filesystem.delete_file(written)
        if filesystem.get_file_info(path).type != fs.FileType.NotFound:
            filesystem.delete_file(written)
            return False
        filesystem.move(written, path)
        return True

    def _write_beside(self, name: str, data: bytes) -> tuple[fs.FileSystem, str, str]:
        filesystem, path = self.folder.open(name)
        folder, _, file = path.rpartition("/")
        written = f"{folder}/.{file}.{uuid4().hex[:12]}"
        try:
            begin_private(filesystem, written)
        except FileNotFoundError:
            filesystem.create_dir(folder, recursive=True)
            begin_private(filesystem, written)
        with filesystem.open_output_stream(written, compression=None) as file:
            file.write(data)
        return filesystem, path, written

    def names(self, folder: str) -> list[str]:
        """What lies in a sub-folder, in order, without what is being written."""
        filesystem, path = self.folder.open(folder)
        infos = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in infos if not info.base_name.startswith("."))

    def delete(self, name: str) -> None:
        """Delete a record or a folder, if it is there."""
        filesystem, path = self.folder.open(name)
        with suppress(FileNotFoundError):
            if filesystem.get_file_info(path).type == fs.FileType.Directory:
                filesystem.delete_dir(path)
            else:
                filesystem.delete_file(path)
