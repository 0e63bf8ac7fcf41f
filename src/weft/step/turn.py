"""The turn, the only one: new slices and the state become answers and the next state. No Spark, and no files, in here.

A batch run is the turn from an empty state with the watermark at infinity; a micro-batch is one from the state that the
last one left. It runs in the driver's process or on executors, for all keys or for those of a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from weft.step.answers import Answer
from weft.step.emission import Emission
from weft.step.finals import Finals
from weft.step.new_slices import NewSlices
from weft.step.state import State, fresh_of
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


def turn(
    plan: StepPlan,
    new: NewSlices,
    state: State,
    emission: Emission,
    finals: Finals | None = None,
    threads: int = 1,
) -> Turned:
    """Answers that are due, and the next state.

    Parameters
    ----------
    emission
        From which watermark to which; no bound at the end closes all windows, and leaves no state.
    finals
        Caches that the last turn under this plan left, which hold all of ``state``; made from it if there are none.
    threads
        How many work at the same time where nothing is kept.
    """
    finals = finals or finals_over(plan, state, emission.after, threads)
    finals.absorb(new.fresh)

    def after() -> State:
        return State() if emission.until is None else state.after(plan, new.tables, emission.until)

    return Turned(finals.answers(emission), after, finals)


def finals_over(plan: StepPlan, state: State, watermark: int | None, threads: int) -> Finals:
    """The caches that hold all of a state; a plan that retains nothing has none to hold."""
    if not plan.retains:
        return Finals(plan, keeps=False, threads=threads)
    return Finals.over(plan, fresh_of(plan, state.tables(plan, watermark)))
