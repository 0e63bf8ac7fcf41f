"""The turn, the only one: new slices and the state become answers and the next state. No Spark, and no files, in here.

A batch run is the turn from an empty state with the watermark at infinity; a micro-batch is one from the state that the
last one left. It runs in the driver's process or on executors, for all keys or for those of a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from weft.step.answers import Answer
from weft.step.emission import Emission
from weft.step.finals import Finals, Fresh
from weft.step.state import State, Tables, fresh_of
from weft.step.step_plan import StepPlan


@dataclass(frozen=True)
class Turned:
    """What comes out of a turn."""

    answers: Iterator[Answer]
    """To be read once."""
    state: Callable[[], State]
    """The next state, made when it is asked for: answers do not wait for it."""
    finals: Finals
    """The caches, as new as the next state; good for the next turn once the answers were read."""


def turn(plan: StepPlan, fresh: Tables, state: State, emission: Emission, finals: Finals | None = None) -> Turned:
    """Answers that are due, and the next state.

    Parameters
    ----------
    fresh
        New slices by the id of their grouping, as they are retained.
    emission
        From which watermark to which; no bound at the end closes all windows, and leaves no state.
    finals
        Caches that the last turn under this plan left, which hold all of ``state``; made from it if there are none.
    """
    if finals is None:
        finals = Finals.over(plan, fresh_of(plan, state.tables(plan, emission.after)))
    finals.absorb(fresh_of(plan, fresh))

    def after() -> State:
        return State() if emission.until is None else state.after(plan, fresh, emission.until)

    return Turned(finals.answers(emission), after, finals)


def turn_once(plan: StepPlan, fresh: Mapping[str, Fresh], emission: Emission) -> Iterator[Answer]:
    """The turn from an empty state that leaves none: with caches that keep nothing."""
    finals = Finals(plan, keeps=False)
    finals.absorb(fresh)
    return finals.answers(emission)
