"""Where Weft keeps what it can get again: fetched packages, compiled kernels."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

KERNELS = "NUMBA_CACHE_DIR"
"""The variable by which numba is told where to keep what it compiles; workers on this machine inherit it."""


def cache_folder() -> Path:
    """``WEFT_CACHE`` if it is set, else ``weft`` among the user's caches; nobody has made it yet."""
    if named := os.environ.get("WEFT_CACHE"):
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or home_folder() / ".cache") / "weft"


def home_folder() -> Path:
    """The user's home, also where ``HOME`` is set to nothing, as services have it."""
    if os.environ.get("HOME"):
        return Path.home()
    import pwd

    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def place_kernels(package: Path) -> None:
    """Have numba keep kernels beside their sources; among our caches where nobody may write there.

    numba would fail where neither the package nor the home can be written to, as in many a container: there kernels
    last as long as the machine's temporary files.
    """
    if os.environ.get(KERNELS) or _writable(package / "__pycache__"):
        return
    folder = cache_folder() / "kernels"
    if not _writable(folder):
        folder = Path(tempfile.gettempdir()) / f"weft-kernels-{os.getuid()}"
    os.environ[KERNELS] = str(folder)
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = str(folder)


def _writable(folder: Path) -> bool:
    """Whether files can be made there, as numba finds out."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
