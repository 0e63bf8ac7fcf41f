"""Folders that workers write to and the driver tidies, on any file system that Arrow reaches."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import quote, unquote

from pyarrow import fs

from weft.store.location import Location


@dataclass(frozen=True)
class Folder:
    """A folder with one sub-folder a query: ``root/query=<name>/``.

    ``root`` is a path on this machine, or a URL such as ``hdfs://host/path`` or ``s3a://bucket/path``.
    """

    root: str

    def __post_init__(self) -> None:
        location = Location.of(self.root)
        location.refuse_without_arrow()
        object.__setattr__(self, "root", location.text)

    @property
    def location(self) -> Location:
        """Where it is."""
        return Location(self.root)

    def open(self, path: str = "") -> tuple[fs.FileSystem, str]:
        """The file system and the path on it."""
        filesystem, root = self.location.for_arrow()
        return filesystem, f"{root}/{path}" if path else root

    def url(self, file: str = "") -> str:
        """Where Spark finds it."""
        root = self.location.for_spark
        return f"{root}/{file}" if file else root

    @staticmethod
    def encoded(name: str) -> str:
        """A query's name as part of a path.

        Examples
        --------
        >>> Folder.encoded("delays/by carrier")
        'delays%2Fby%20carrier'
        """
        return quote(name, safe="")

    def file(self, name: str, file: str) -> str:
        """A file of a query, relative to the root."""
        return f"query={self.encoded(name)}/{file}"

    def of(self, name: str) -> Folder:
        """The sub-folder of a query."""
        return Folder(f"{self.root}/query={self.encoded(name)}")

    def make(self, name: str) -> None:
        """Make the sub-folder of a query, if it is not there."""
        self.make_folder(f"query={self.encoded(name)}")

    def make_folder(self, folder: str) -> None:
        """Make a sub-folder, if it is not there."""
        filesystem, path = self.open(folder)
        filesystem.create_dir(path, recursive=True)

    def exists(self) -> bool:
        """Whether anything stands here."""
        return self.location.exists()

    def files(self) -> list[str]:
        """The names of the data files, relative to the root; not those that Spark and Hadoop write for themselves."""
        filesystem, root = self.open()
        infos = filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        return [
            info.path[len(root) :].lstrip("/")
            for info in infos
            if info.type == fs.FileType.File and not info.base_name.startswith(("_", "."))
        ]

    def folders(self) -> list[str]:
        """The names of the folders that stand directly in it."""
        filesystem, root = self.open()
        infos = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))
        return sorted(info.base_name for info in infos if info.type == fs.FileType.Directory)

    def queries(self) -> list[str]:
        """The queries that have a sub-folder."""
        return [unquote(name.removeprefix("query=")) for name in self.folders() if name.startswith("query=")]

    def is_empty(self) -> bool:
        """Whether it holds no data file."""
        return not self.files()

    def remove(self) -> None:
        """Delete it and everything in it, if it is there."""
        filesystem, path = self.open()
        if self.exists():
            filesystem.delete_dir(path)

    def move_to(self, other: Folder) -> None:
        """Rename the whole folder."""
        filesystem, path = self.open()
        target = other.open()[1]
        filesystem.create_dir(target.rsplit("/", 1)[0], recursive=True)
        filesystem.move(path, target)

    def link(self, file: str, other: Folder, name: str) -> None:
        """Have the same file in another folder: a hard link where the file system has them, else a copy."""
        filesystem, path = self.open(file)
        other_filesystem, other_path = other.open(name)
        if isinstance(filesystem, fs.LocalFileSystem) and isinstance(other_filesystem, fs.LocalFileSystem):
            try:
                os.link(path, other_path)
                return
            except OSError:
                pass  # another device: copy
        fs.copy_files(path, other_path, source_filesystem=filesystem, destination_filesystem=other_filesystem)
