"""Where the catalog of a checkpoint is: a note in the checkpoint leads every command to it."""

from __future__ import annotations

import json

from pyarrow import fs

from weft.catalog.catalog import Catalog
from weft.catalog.urls import read_url, without_secrets
from weft.errors import UseError
from weft.store.folder import Folder
from weft.store.location import Location
from weft.store.private import begin_private, make_private

NOTE = "catalog.json"
DATABASE = "catalog.db"


def create_catalog(checkpoint: str, url: str | None = None) -> Catalog:
    """The catalog of a job that starts: the checkpoint's own, or a new one, noted there for other processes.

    Without ``url`` it is a SQLite file in the checkpoint.
    """
    note = _read_note(checkpoint)
    if note is not None:
        return _open(checkpoint, note, url)
    chosen = url or _default_url(checkpoint)
    _make_folder(checkpoint)
    catalog = Catalog.open(chosen)
    catalog.claim(Location.of(checkpoint).text)
    _write_note(checkpoint, {"url": _noted(chosen, checkpoint), "uid": catalog.uid()})
    return catalog


def find_catalog(checkpoint: str, url: str | None = None) -> Catalog:
    """The catalog of a checkpoint that some job has been started with."""
    note = _read_note(checkpoint)
    if note is None:
        raise UseError(
            f"no job has been started with the checkpoint {checkpoint}: start one with "
            f"weft stream QUERIES.sql --checkpoint {checkpoint}"
        )
    return _open(checkpoint, note, url)


def _open(checkpoint: str, note: dict[str, str], url: str | None) -> Catalog:
    catalog = Catalog.open(url or note["url"] or _default_url(checkpoint))
    if catalog.uid() != note["uid"]:
        shown_url = catalog.url
        catalog.close()
        raise UseError(
            f"the catalog {shown_url} is not the one that the checkpoint {checkpoint} was started with"
            + (f", which is {note['url']}" if note["url"] else "")
        )
    return catalog


def _noted(url: str, checkpoint: str) -> str:
    """The URL in the note; empty for the checkpoint's own database, which moves with the folder."""
    plain = without_secrets(read_url(url))
    return "" if not Location.of(checkpoint).is_remote and plain == _default_url(checkpoint) else plain


def _default_url(checkpoint: str) -> str:
    location = Location.of(checkpoint)
    if location.is_remote:
        raise UseError(
            f"the checkpoint {checkpoint} is not on this machine, so its catalog needs a database that all can reach: "
            "give --catalog postgresql://USER@HOST:PORT/DATABASE"
        )
    return f"sqlite:///{location.beneath(DATABASE).text}"


def _make_folder(checkpoint: str) -> None:
    if not Folder(checkpoint).exists():
        make_private(Folder(checkpoint))


def _read_note(checkpoint: str) -> dict[str, str] | None:
    filesystem, path = Location.of(checkpoint).for_arrow()
    if filesystem.get_file_info(f"{path}/{NOTE}").type == fs.FileType.NotFound:
        return None
    with filesystem.open_input_stream(f"{path}/{NOTE}") as file:
        note: dict[str, str] = json.loads(file.read())
    return note


def _write_note(checkpoint: str, note: dict[str, str]) -> None:
    """Write it under another name first: who finds the note finds all of it."""
    filesystem, path = Location.of(checkpoint).for_arrow()
    staged = f"{path}/.{NOTE}.{note['uid']}"
    begin_private(filesystem, staged)
    with filesystem.open_output_stream(staged) as file:
        file.write(json.dumps(note).encode())
    filesystem.move(staged, f"{path}/{NOTE}")
