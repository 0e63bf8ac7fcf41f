"""Which checkpoint a command means, and the catalog that goes with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.catalog import Catalog, find_catalog
from weft.config import Settings, find_file, read_file
from weft.config.merge import overlaid

Checkpoint = Annotated[
    str | None, typer.Option(metavar="DIR", help="The checkpoint of the job; from weft.yaml if not given.")
]
CatalogUrl = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="URL",
        envvar="WEFT_CATALOG",
        show_envvar=True,
        help="The job's catalog; the checkpoint knows it. Passwords: PGPASSWORD, or a URL in WEFT_CATALOG.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The settings; weft.yaml here or in a folder above if not given."),
]


def settings_of(config: Path | None) -> Settings:
    """The settings file that the user named, or the nearest one, or none."""
    if config is not None and not config.is_file():
        raise typer.BadParameter(f"there is no file {config}", param_hint="--config")
    found = config or find_file()
    return read_file(found.absolute()) if found else Settings()


def catalog_at(checkpoint: str | None, catalog: str | None, config: Path | None) -> Catalog:
    """The catalog of the job that the user means."""
    if checkpoint is None:
        # other settings may want environment variables that only the job has
        settings = overlaid(settings_of(config).only("checkpoint", "catalog").filled(), {})
        checkpoint = settings.values.get("checkpoint")
        catalog = catalog or settings.values.get("catalog")
    if not isinstance(checkpoint, str):
        raise typer.BadParameter("say which job: its --checkpoint DIR, or one in weft.yaml", param_hint="--checkpoint")
    return find_catalog(checkpoint, catalog)
