"""How partials become answers: one technique a file, compiled kernels."""

from weft.algebra.aggregate import Aggregate, AggregateError
from weft.algebra.aggregates.firsts import string_agg
from weft.algebra.registry import AGGREGATES
from weft.evaluate.registry import TECHNIQUES, choose, technique_named
from weft.evaluate.sliding import slide
from weft.evaluate.technique import Technique, TechniqueError
from weft.evaluate.userdefined import user_defined
from weft.evaluate.window import SlidingWindow

__all__ = [
    "AGGREGATES",
    "TECHNIQUES",
    "Aggregate",
    "AggregateError",
    "SlidingWindow",
    "Technique",
    "TechniqueError",
    "choose",
    "slide",
    "string_agg",
    "technique_named",
    "user_defined",
]
