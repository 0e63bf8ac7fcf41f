"""Where Weft keeps what it can get again: fetched packages, compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path


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
