"""Options of every command that runs on Spark: which master, how much memory, settings and packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.phases import Phases
from weft.store.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The Spark master, such as spark://HOST:7077; this machine's cores if not given. One without executors is "
        "given up after a minute (--conf spark.weft.executorTimeout=5min).",
    ),
]
Memory = Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of the Spark driver; 3g if not given.")]
Conf = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A setting of the Spark session.")]
Packages = Annotated[
    list[str] | None, typer.Option(metavar="GROUP:NAME:VERSION", help="A Java package for Spark to load.")
]
MEMORY = "3g"


def separated(packages: list[str] | None) -> list[str] | None:
    """``--packages a,b`` as spark-submit has it."""
    return [package for item in packages for package in item.split(",")] if packages else None


def pairs(given: list[str] | None, option: str, form: str = "K=V") -> dict[str, str]:
    """Options that have a name each; what is wrong is not repeated beyond that, as it may be a password."""
    found = {}
    for item in given or []:
        name, equals, value = item.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{name} is not of the form {form}", param_hint=option)
        found[name] = value
    return found


def started(
    phases: Phases,
    master: str | None,
    memory: str | None,
    conf: list[str] | None,
    packages: list[str] | None,
    places: Sequence[Location] = (),
) -> SparkSession:
    """The session that the options ask for, with people told why they wait."""
    options = pairs(conf, "--conf")
    from weft.launch.session import local_session

    return local_session(
        master=master,
        memory=memory or MEMORY,
        config=options,
        packages=separated(packages) or (),
        places=places,
        waiting=phases,
    )
