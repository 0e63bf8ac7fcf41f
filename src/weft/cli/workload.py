"""``weft workload``: synthetic queries for ``weft plan``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from weft.optimize.workload import Generator, Workload


def workload_command(
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")],
    max_slide: Annotated[int, typer.Option(min=1, help="The longest slide, in seconds.")] = 1000,
    max_overlap: Annotated[float, typer.Option(min=1, help="The largest range / slide.")] = 10.0,
    zipf: Annotated[float, typer.Option(help="Skew towards long slides; 0 is uniform.")] = 0.0,
    generator: Annotated[
        Generator, typer.Option(help="normal: any slide; diverse: primes; template: factors of the longest.")
    ] = "normal",
    real_overlap: Annotated[
        bool, typer.Option("--real-overlap", help="Overlaps that are no whole numbers: windows with fragments.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal queries.")] = 0,
) -> None:
    """Write queries' windows to stdout, a JSON object a line, drawn as in the papers.

    Example: `weft workload --queries 1000 --max-slide 1000 --zipf 0.5 > windows.jsonl`
    """
    if generator == "diverse" and max_slide < 2:
        raise typer.BadParameter("there is no prime up to 1", param_hint="--max-slide")
    ranges, slides = Workload(queries, max_slide, max_overlap, zipf, generator, real_overlap, seed).draw()
    sys.stdout.writelines(
        f'{{"name": "q{number}", "range": {length}, "slide": {slide}}}\n'
        for number, (length, slide) in enumerate(zip(ranges.tolist(), slides.tolist(), strict=True), 1)
    )
