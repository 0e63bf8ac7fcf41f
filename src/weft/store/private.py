"""Files and folders of this machine that nobody but their owner may read: they hold rows, answers and queries."""

from __future__ import annotations

import os
from pathlib import Path

from pyarrow import fs

from weft.store.folder import Folder

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def make_private(folder: Folder) -> Folder:
    """Make a folder that only its owner can enter, or have the one that is there be so, if it is ours."""
    filesystem, path = folder.open()
    if not isinstance(filesystem, fs.LocalFileSystem):
        filesystem.create_dir(path, recursive=True)  # a store has its own rules
        return folder
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        Path(path).mkdir(FOLDER_MODE)
    except FileExistsError:
        _close(Path(path), FOLDER_MODE)
    return folder


def begin_private(filesystem: fs.FileSystem, path: str) -> None:
    """Have a file that is written next be its owner's alone from its first byte on: begin it, empty."""
    if isinstance(filesystem, fs.LocalFileSystem):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, FILE_MODE))


def close_file(path: Path) -> None:
    """Have a file of ours be its owner's alone; begin it, empty, if it is not there."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, FILE_MODE))
    _close(path, FILE_MODE)


def close_all(folder: Folder) -> None:
    """Have a folder and all that others wrote into it be its owner's alone."""
    filesystem, path = folder.open()
    if isinstance(filesystem, fs.LocalFileSystem):
        for inner in (Path(path), *Path(path).rglob("*")):
            _close(inner, FOLDER_MODE if inner.is_dir() else FILE_MODE)


def _close(path: Path, mode: int) -> None:
    """Take from others what they may; what is another user's stays as that user has it."""
    status = path.stat()
    if status.st_uid == os.getuid() and status.st_mode & 0o077:
        path.chmod(mode)
