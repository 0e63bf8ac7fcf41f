"""Java's classes in one archive, so that a session starts sooner.

Spark loads fifteen thousand classes from a hundred jars before the first answer. Java writes those that a program has
loaded to a file when it ends, read and checked, and maps that file into memory when it starts again. An archive that
does not fit any more, as Spark or Java have changed, is passed over by Java without a word.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

from weft.java.home import java
from weft.store.cache import cache_folder

QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def class_archive() -> Path:
    """Where the archive for this Java and this Spark lies, if there is one."""
    runs = java().resolve()
    told = (runs, runs.stat().st_mtime_ns, version("pyspark"), os.environ.get("SPARK_HOME"), platform.machine())
    digest = blake2b("\n".join(map(str, told)).encode(), digest_size=8).hexdigest()
    return cache_folder() / "classes" / f"{digest}.jsa"


def archive_options() -> tuple[str, ...]:
    """What Java is told so that it uses the archive: nothing if there is none."""
    with suppress(OSError):
        archive = class_archive()
        # options are parted at spaces
        if archive.exists() and " " not in str(archive):
            return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *QUIET)
    return ()


def writing_options(archive: Path) -> tuple[str, ...]:
    """What Java is told so that it writes an archive when it ends."""
    return (f"-XX:ArchiveClassesAtExit={archive}", *QUIET)
