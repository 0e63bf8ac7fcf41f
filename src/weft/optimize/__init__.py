"""Which queries share what: cost models and one optimizer a file."""

from weft.optimize.entry import optimize
from weft.optimize.nodes.replan import replan

__all__ = ["optimize", "replan"]
