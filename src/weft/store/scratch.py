"""Folders that a process writes to until they are complete, and that nobody needs if it dies before.

Their name says whose they are, ``answers.writing-<host>-<pid>-<token>``, so that whoever writes to the same target next
can tell those of dead processes from one that is being written to, and sweeps them.
"""

from __future__ import annotations

import os
import re
import socket
import time
from datetime import datetime
from uuid import uuid4

from pyarrow import fs

from weft.store.folder import Folder

STRANGE = 86_400.0
"""Seconds after which a folder is taken for left behind whose process is on another machine, where nobody sees it."""

_OWNER = re.compile(r"(?P<host>.+)-(?P<pid>\d+)-(?P<token>[0-9a-f]{8})")
_mine: set[str] = set()
"""The tokens of this process: another one in a container may have had its number before."""


def scratch(target: Folder, kind: str) -> Folder:
    """A new place beside ``target`` for what is to become it, or is needed for that; the dead's are swept.

    It is not made yet. Whoever is done with it removes it, or moves it to its place.
    """
    sweep(target, kind)
    token = uuid4().hex[:8]
    _mine.add(token)
    return Folder(f"{target.root.rstrip('/')}.{kind}-{_host()}-{os.getpid()}-{token}")


def sweep(target: Folder, kind: str, now: float | None = None) -> list[str]:
    """Delete what dead processes have left beside ``target``; gives the names."""
    filesystem, path = target.open()
    parent, _, name = path.rstrip("/").rpartition("/")
    begins = f"{name}.{kind}-"
    swept = []
    for info in filesystem.get_file_info(fs.FileSelector(parent or "/", allow_not_found=True)):
        if info.type == fs.FileType.Directory and info.base_name.startswith(begins):
            age = _age(info.mtime, time.time() if now is None else now)
            if _is_left_behind(info.base_name.removeprefix(begins), age):
                filesystem.delete_dir(info.path)
                swept.append(info.base_name)
    return swept


def _is_left_behind(owner: str, age: float) -> bool:
    found = _OWNER.fullmatch(owner)
    if found is None or found["host"] != _host():
        return age > STRANGE
    if int(found["pid"]) == os.getpid():
        return found["token"] not in _mine
    return not _lives(int(found["pid"]))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _age(modified: datetime | None, now: float) -> float:
    """Seconds since a folder was last written to; 0 where the store does not know."""
    return 0.0 if modified is None else now - modified.timestamp()


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())
