"""What a technique is: its card, its requirements, and the templates that are bound to a monoid.

A technique keeps arrays (its *memory*) and a tuple of numbers (its *state*). State travels through the functions by
value, so that a compiled loop holds it in registers; a ring's indices in an array would be stored and loaded for
every item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.algebra.monoid import Kernel, Monoid
from weft.errors import WeftError
from weft.evaluate.compile import bind
from weft.evaluate.operations import COUNTED, PLAIN

Template = Callable[..., Any]
Memory = tuple[Any, ...]
State = tuple[Any, ...]


class TechniqueError(WeftError):
    """A technique that does not exist, or that an aggregate's algebra does not allow."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a technique costs, in aggregate operations a slide and in partials kept, for a window of n partials."""

    order: str
    amortized: str
    worst: str
    multi_query: str
    space: str
    origin: str


@dataclass(frozen=True, slots=True)
class Technique:
    """One way to keep a window's answer up to date.

    ``push(memory, state, partial, tally)`` and ``evict(memory, state, tally)`` return the next state; ``query(memory,
    state, tally)`` returns the window's answer. ``advance(memory, state, partial, ranges, out, at, tally)`` pushes
    and writes the answers of several ranges, longest first, into ``out[at:]``; where it is missing, several ranges
    take a structure each.
    """

    name: str
    card: Card
    allocate: Callable[[Monoid, tuple[int, ...]], tuple[Memory, State]]
    push: Template
    evict: Template
    query: Template
    advance: Template | None = None
    one_range: Template | None = None
    """A loop for one range, in place of :func:`weft.evaluate.drivers.slide_range`, that does the same work faster."""
    parts: tuple[Template, ...] = ()
    """Templates that the ones above call, each after those that it calls itself."""
    requires: tuple[str, ...] = ()
    """Names of :class:`~weft.algebra.monoid.Monoid` properties: ``invertible``, ``selective``, ``commutative``."""
    prefilled: bool = False
    """Whether windows start full of identities, as in 004; one range then advances like several do."""

    def check(self, monoid: Monoid) -> None:
        """Refuse a monoid that lacks what the technique requires.

        Raises
        ------
        TechniqueError
            Naming the property and why it matters.
        """
        for needed in self.requires:
            if not getattr(monoid, needed):
                raise TechniqueError(f"{self.name} cannot run {monoid.name}: {_REASONS[needed]}")

    def bind(self, monoid: Monoid, driver: Template, *, counting: bool = False) -> Kernel:
        """``driver`` compiled around this technique for ``monoid``; a counting one tallies aggregate operations."""
        self.check(monoid)
        names: dict[str, Any] = {}
        operations: dict[str, Template] = COUNTED if counting else PLAIN
        steps: dict[str, Template] = {"push": self.push, "evict": self.evict, "query": self.query}
        if self.advance is not None:
            steps["advance"] = self.advance
        parts: dict[str, Template] = {part.__name__: part for part in self.parts}
        for name, template in {**operations, **parts, **steps}.items():
            names[name] = bind(template, monoid, commutative=monoid.commutative, **names)
        return bind(driver, monoid, **names)


_REASONS = {
    "invertible": "it takes expired partials out again, and this operation has no exact inverse "
    "(sums of doubles have none: 1e16 or an infinity that was added cannot be subtracted without a trace); "
    "use twostacks-lite, daba-lite or auto",
    "selective": "it keeps only partials that can still win, and this operation does not always return one of its two "
    "operands; use twostacks-lite, daba-lite or auto",
    "commutative": "it merges partials out of order, and their order matters to this operation; use auto",
}


def retyped(values: Any, like: Any) -> Any:
    """Numbers that a kernel returned, with the types they had: Python's own would compile another signature."""
    if isinstance(like, tuple):
        return tuple(retyped(value, old) for value, old in zip(values, like, strict=True))
    return type(like)(values) if isinstance(like, np.generic) else values
