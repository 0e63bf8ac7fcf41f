"""Options of the commands that weave queries: which optimizer, by which cost model, on which nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from weft.optimize.entry import ModelName
from weft.optimize.registry import NAMES

Optimizer = Annotated[str, typer.Option(metavar="NAME", help=", ".join(NAMES))]
Model = Annotated[
    ModelName, typer.Option(help="What the optimizer goes by: seconds on this Spark, or as papers count.")
]
Nodes = Annotated[
    str | None,
    typer.Option(
        metavar="N[,CAPACITIES]", help="Over how many nodes trees of queries are spread, and how fast each is."
    ),
]


@dataclass(frozen=True, slots=True)
class Weave:
    """What the command line says about weaving; wrong names are refused before anything starts."""

    optimizer: str
    model: ModelName
    nodes: str | None

    def __post_init__(self) -> None:
        check_optimizer(self.optimizer)

    @property
    def capacities(self) -> list[float] | None:
        """Of the nodes, if any were asked for."""
        return None if self.nodes is None else capacities(self.nodes)


def check_optimizer(name: str) -> None:
    """Refuse an optimizer that does not exist."""
    if name not in NAMES:
        raise typer.BadParameter(f"no optimizer {name!r}: one of {', '.join(NAMES)}", param_hint="--optimizer")


def capacities(nodes: str) -> list[float]:
    """``4`` is four equal nodes; ``3,2,1,1`` three nodes of which the first is twice as fast.

    Examples
    --------
    >>> capacities("2"), capacities("3,2,1,1")
    ([1.0, 1.0], [2.0, 1.0, 1.0])
    """
    try:
        count, *given = nodes.split(",")
        speeds = [float(one) for one in given] or [1.0] * int(count)
        if int(count) < 1 or len(speeds) != int(count) or min(speeds) <= 0:
            raise ValueError
    except ValueError:
        message = "write the number of nodes, and then nothing or one positive capacity for each: 3,2,1,1"
        raise typer.BadParameter(message, param_hint="--nodes") from None
    return speeds
