"""``weft calibrate``: measure what things cost on this Spark."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from weft.cli.logs import begin_log
from weft.cli.phases import Phases
from weft.cli.spark_options import Conf, Master, Memory, Packages, started


def calibrate_command(
    master: Master = None,
    memory: Memory = None,
    conf: Conf = None,
    packages: Packages = None,
    staging: Annotated[
        str | None, typer.Option(metavar="DIR", help="A folder that all workers reach; on this machine if not given.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each trial; their median counts.")] = 5,
) -> None:
    """Measure what rows, slices, merges and answers cost on this Spark, and keep that for planning.

    Takes a few minutes on a machine that has nothing else to do. Example: `weft calibrate`
    """
    from weft.launch.calibrate import calibrate
    from weft.launch.session import name_of
    from weft.optimize.work import Work
    from weft.store.folder import Folder
    from weft.store.scratch import scratch

    console = Console(highlight=False)
    folder = scratch(Folder(f"{Folder(staging or tempfile.gettempdir()).root}/weft"), "calibration")
    begin_log("warning")
    try:
        with Phases() as phases:
            spark = started(phases, master, memory, conf, packages, [folder.location])
            constants, trials = calibrate(spark, folder, repeats, lambda what: phases.begin(f"measuring {what}"))
    finally:
        folder.remove()
    path = constants.save(name_of(spark))
    table = Table("one", "nanoseconds", box=None, header_style="dim")
    table.columns[1].justify = "right"
    for item in fields(Work):
        table.add_row(item.name, f"{getattr(constants, item.name) * 1e9:,.1f}")
    for name, seconds in constants.kernel.items():
        table.add_row(f"operation of {name}", f"{seconds * 1e9:,.1f}")
    for engine, each in constants.cut.items():
        for name, seconds in each.items():
            table.add_row(f"{name}, cut by {engine}", f"{seconds * 1e9:,.1f}")
    console.print(table)
    for name, seconds, predicted in trials:
        console.print(f"[dim]{name}: {seconds:.2f} s, by these constants {predicted:.2f} s[/]")
    console.print(f"kept for {name_of(spark)} in {path}")
