"""Jars that were fetched, each with its checksum: a folder that is there is complete, and a damaged one shows."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from tempfile import mkdtemp
from zipfile import BadZipFile, ZipFile

RECORD = "SHA256"
"""The file beside the jars that tells their checksums, as ``sha256sum --check`` reads it."""
BUILDING = ".fetching-"


class DamagedJarError(Exception):
    """A jar that arrived is none."""


@dataclass(frozen=True)
class KeptJars:
    """The folder of the jars of one request."""

    place: Path

    def whole(self) -> tuple[Path, ...] | None:
        """The jars, if all that were fetched are there and as they were fetched."""
        try:
            lines = (self.place / RECORD).read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        known = {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}
        jars = tuple(sorted(self.place / name for name in known))
        return jars if jars and all(_checksum(jar) == known[jar.name] for jar in jars) else None

    def building(self) -> Path:
        """A folder beside it to fetch into, under a name that nobody else has."""
        self.place.parent.mkdir(parents=True, exist_ok=True)
        return Path(mkdtemp(prefix=BUILDING, dir=self.place.parent))

    def keep(self, building: Path) -> tuple[Path, ...]:
        """Put what was fetched in place, by one rename, and what was damaged away."""
        jars = sorted(building.glob("*.jar"))
        for jar in jars:
            _open(jar)
        record = "".join(f"{_checksum(jar)}  {jar.name}\n" for jar in jars)
        (building / RECORD).write_text(record, encoding="utf-8")
        if self.place.exists():
            shutil.rmtree(self.place.rename(building / "damaged"))
        building.rename(self.place)
        return tuple(self.place / jar.name for jar in jars)


def sweep(folder: Path) -> None:
    """Remove what processes have left that were killed while they fetched; for who alone may fetch."""
    for left in folder.glob(f"{BUILDING}*"):
        shutil.rmtree(left, ignore_errors=True)


def _checksum(jar: Path) -> str | None:
    try:
        with jar.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _open(jar: Path) -> None:
    """A jar whose list of contents can be read; a repository without checksums may send half of one."""
    try:
        ZipFile(jar).close()
    except (BadZipFile, OSError) as error:
        raise DamagedJarError(f"{jar.name} arrived damaged: {error}") from None
