"""``weft plan``: which queries share what, without running anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from weft.cli.weaving import Optimizer, capacities, check_optimizer
from weft.optimize import optimize
from weft.optimize.entry import ModelName
from weft.optimize.items import Question, items_of
from weft.optimize.omega import TechniqueCode
from weft.optimize.windows_file import windows_of
from weft.plan.forest import Forest
from weft.plan.forest_svg import forest_svg
from weft.slicing.progression import Alignment

_MOST_TREES = 20
_MOST_NAMES = 4


def plan_command(
    queries: Annotated[Path, typer.Argument(metavar="QUERIES", help="Spark SQL (.sql), or a window a line (.jsonl).")],
    rate: Annotated[float, typer.Option(metavar="R", help="Rows per second.")],
    optimizer: Optimizer = "weft",
    technique: Annotated[
        str | None, typer.Option(metavar="T", help=", ".join(technique.label for technique in TechniqueCode))
    ] = None,
    model: Annotated[
        ModelName | None, typer.Option(help="calibrated unless tri-weave is asked for, which is three-level.")
    ] = None,
    alignment: Annotated[Alignment, typer.Option(help="Which end of windows is on multiples of the slide.")] = "start",
    nodes: Annotated[str, typer.Option(metavar="N[,CAPACITIES]", help="How many nodes, and how fast each is.")] = "1",
    as_json: Annotated[bool, typer.Option("--json", help="Only JSON on stdout.")] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw each tree's composite slide.")] = None,
    seed: Annotated[int, typer.Option(help="For optimizers that draw random numbers.")] = 0,
) -> None:
    """Find which queries to weave into which trees, and on which nodes.

    Example: `weft plan queries.sql --rate 50000 --nodes 4`
    """
    speeds = capacities(nodes)
    if technique is not None and technique not in {one.label for one in TechniqueCode}:
        raise typer.BadParameter(f"no technique {technique!r}", param_hint="--technique")
    check_optimizer(optimizer)
    questions = _read(queries)

    def planned(name: str) -> Forest:
        return optimize(
            items, rate, name, model=model, technique=technique, alignment=alignment, nodes=speeds, seed=seed
        )

    began = perf_counter()
    items = items_of(questions, alignment)
    forest = planned(optimizer)
    seconds = perf_counter() - began
    if svg is not None:
        svg.write_text(forest_svg(forest, dict(questions), alignment))
    if as_json:
        json.dump(forest.as_json(seconds), sys.stdout)
        sys.stdout.write("\n")
    else:
        _show(forest, [planned("no-share"), planned("shared")], seconds, len(questions), len(items))


def _read(path: Path) -> Sequence[Question]:
    if not path.is_file():
        raise typer.BadParameter(f"there is no file {path}", param_hint="QUERIES")
    if path.suffix == ".jsonl":
        with path.open() as lines:
            questions: list[Question] = list(windows_of(lines))
    else:
        from weft.query.sparksql import parse_file

        questions = [(query.name, query.window) for query in parse_file(path.read_text())]
    if not questions:
        raise typer.BadParameter(f"there are no queries in {path}", param_hint="QUERIES")
    return questions


def _show(forest: Forest, baselines: list[Forest], seconds: float, queries: int, items: int) -> None:
    console = Console(highlight=False)
    unit = "seconds of work a second" if forest.model == "calibrated" else "operations a second"
    console.print(
        f"[bold]{queries:,} queries[/], {items:,} with different edges: [bold]{len(forest.trees):,} trees[/] by "
        f"{forest.optimizer} in {seconds:.2f} s"
    )
    console.print(_tree_table(forest))
    if len(forest.trees) > _MOST_TREES:
        console.print(f"and {len(forest.trees) - _MOST_TREES:,} cheaper trees")
    console.print(_cost_table(forest, baselines, unit))
    if forest.levels == 3:
        console.print(f"rows are cut once for all trees, at a cost of {forest.shared_cost:.6g}")
    if len(forest.capacities) > 1:
        loads = ", ".join(f"{cost:.6g}" for cost in forest.node_costs)
        console.print(f"nodes: {loads}; the dearest {forest.max_cost:.6g}")
    if not forest.exact:
        bounded = sum(not tree.edge_rate.exact for tree in forest.trees)
        console.print(f"[yellow]{bounded} trees have too many fragments for an exact edge rate; theirs is bounded[/]")


def _tree_table(forest: Forest) -> Table:
    table = Table(
        "tree", "queries", "shares", "edges/s", "Ω", "cost", "technique", "node", box=None, header_style="dim"
    )
    for number, tree in enumerate(sorted(forest.trees, key=lambda one: -one.cost)[:_MOST_TREES], 1):
        names = ", ".join(tree.queries[:_MOST_NAMES]) + (", ..." if len(tree.queries) > _MOST_NAMES else "")
        sharing = f"{len(tree.queries):,} on {len(tree.progressions):,} cuts" if len(tree.queries) > 1 else "alone"
        rate = f"{tree.edge_rate.per_second:.4g}" + ("" if tree.edge_rate.exact else " ±")
        table.add_row(
            str(number), names, sharing, rate, f"{tree.overlap:.4g}", f"{tree.cost:.6g}", tree.technique, str(tree.node)
        )
    return table


def _cost_table(forest: Forest, baselines: list[Forest], unit: str) -> Table:
    table = Table("plan", f"cost ({forest.model}, {unit})", "", box=None, header_style="dim")
    table.add_row(f"[bold]{forest.optimizer}[/]", f"[bold]{forest.cost:.6g}[/]", "")
    for other in baselines:
        table.add_row(other.optimizer, f"{other.cost:.6g}", f"{other.cost / forest.cost:.2f} times as much")
    return table
