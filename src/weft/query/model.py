"""What was asked: frozen, free of Spark, and the same whatever language it was asked in.

Texts of expressions are the user's own, so that Spark and not a re-rendering of ours decides what they mean.
Where an output refers to something that the engine computes, the reference stands in the text as a placeholder
column: ``__key_0``, ``__agg_0`` (backquoted never needed) and ``__window`` (a struct with ``start`` and ``end``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from weft.slicing.window import Window

KEY = "__key_"
AGGREGATE = "__agg_"
WINDOW = "__window"


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar expression over the stream's columns: equal where ``canonical`` is equal, run as ``sql``."""

    canonical: str
    """Normalized text (letter case of names, white space): identity only, never handed to Spark."""
    sql: str = field(compare=False)
    """The user's own text."""
    at: int = field(default=0, compare=False)
    """Where it begins in the text that was registered."""
    column: str | None = field(default=None, compare=False)
    """The column's name if the expression is nothing but a column: it cannot raise."""


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate call: ``sum(price * volume) FILTER (WHERE side = 'B')``."""

    function: str
    """Lower-case name with Spark's synonyms folded (mean -> avg, any -> bool_or, ...)."""
    arguments: tuple[Expression, ...]
    """Empty for ``count(*)``."""
    filter: Expression | None = None
    ignore_nulls: bool = False
    at: int = field(default=0, compare=False)


class Part(Enum):
    """What a bare output column is: nothing has to be computed for it after the aggregation."""

    WINDOW = "window"
    WINDOW_START = "window.start"
    WINDOW_END = "window.end"
    KEY = "key"
    AGGREGATE = "aggregate"


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the select list, as an expression over placeholders."""

    sql: str
    """The user's text with keys, aggregates and window replaced by placeholders; no alias."""
    alias: str | None
    """The user's alias; without one the column is named as Spark names it."""
    part: Part | None = None
    """Set where the column is a bare window field, key or aggregate; then ``index`` says which."""
    index: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """An aggregate continuous query."""

    name: str
    stream: str
    event_time: str | None
    """The column that the user gave to ``window``; None in CQL, which leaves it to the stream."""
    window: Window
    """As it was asked for."""
    where: Expression | None
    keys: tuple[Expression, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Output, ...]
    having: str | None
    """HAVING over placeholders."""
    text: str = field(compare=False)
    """The statement as it was registered."""
    shape: str = field(compare=False)
    """Spark SQL with the same output schema, whatever the window's length and the WHERE: bound once for all
    queries alike. The stream's name stands in it as the user wrote it, the event time as ``{event_time}``."""
    at: int = field(default=0, compare=False)
    """Where the statement begins in the file."""

    @property
    def condition(self) -> str | None:
        """The HAVING as Spark applies it, which makes a condition of any value: ``HAVING sum(n)`` holds unless 0."""
        return None if self.having is None else f"CAST(({self.having}\n) AS BOOLEAN)"

    @property
    def bare(self) -> bool:
        """Whether its rows can be written as they leave the kernels, with nothing left for Spark to compute."""
        return self.having is None and all(output.part is not None for output in self.outputs)
