"""What every sink must do: readers find every row of every batch once, however often a batch is delivered."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from weft.checks.check import Check
from weft.checks.sink_batches import Row, committed, rows_of
from weft.job.sink import Sink


class SinkPlace(Protocol):
    """A place that a sink delivers to and that can be read back; every check gets an empty one."""

    def sink(self) -> Sink:
        """A new sink for this place, as after a restart; the old one where nothing outlives it."""

    def rows(self, query: str) -> Iterable[Row]:
        """The rows of a query that readers find, in any order; nothing if nobody has heard of the query."""


SinkCheck = Check[[SinkPlace]]


def checks_of_sinks(name: str) -> list[SinkCheck]:
    """The checks of a kind of sink, each to be called with a new place.

    Examples
    --------
    >>> from weft.sinks.memory import MemorySink
    >>> class Memory:
    ...     def __init__(self):
    ...         self.kept = MemorySink()
    ...     def sink(self):
    ...         return self.kept
    ...     def rows(self, query):
    ...         return self.kept.table(query).to_pylist() if query in self.kept.queries else []
    >>> for check in checks_of_sinks("memory"):
    ...     check(Memory())
    """
    return [
        Check(name, "bears its name over restarts", named),
        Check(name, "delivers several batches", partial(delivered, numbers=(0, 1, 2))),
        Check(name, "is not changed by a batch that comes again", partial(delivered, numbers=(0, 0, 1, 1, 1, 2))),
        Check(name, "goes on after it was closed", partial(restarted, closed=True)),
        Check(name, "goes on after a death without a close", partial(restarted, closed=False)),
        Check(name, "takes batches without a row", silent),
        Check(name, "takes queries that come and go", changing),
        Check(name, "can be opened and closed for nothing", nothing),
    ]


Deliver = Callable[..., None]


@contextmanager
def _opened(place: SinkPlace, *, closed: bool = True) -> Iterator[Deliver]:
    """A sink that is open; delivers batches by their numbers, whose files are gone when it has them."""
    sink = place.sink()
    sink.open()

    def deliver(number: int, queries: Sequence[str] = ("a", "b"), silent: Sequence[str] = ()) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sink.deliver(committed(Path(folder), number, queries, silent))

    yield deliver
    if closed:
        sink.close()


def named(place: SinkPlace) -> None:
    """The job records under the name how far it has delivered."""
    first, second = place.sink(), place.sink()
    assert isinstance(first, Sink), "it lacks something of weft.job.sink.Sink"
    assert first.name == second.name and first.name, f"it is {first.name}, then {second.name}"


def delivered(place: SinkPlace, numbers: Sequence[int]) -> None:
    """Readers find every row once."""
    with _opened(place) as deliver:
        for number in numbers:
            deliver(number)
    found(place, "a", numbers)
    found(place, "b", numbers)


def restarted(place: SinkPlace, *, closed: bool) -> None:
    """A new sink is given the last batch once more, as nobody knows whether the old one took it."""
    with _opened(place, closed=closed) as deliver:
        for number in (0, 1):
            deliver(number)
    with _opened(place) as deliver:
        for number in (1, 2):
            deliver(number)
    found(place, "a", (0, 1, 2))
    found(place, "b", (0, 1, 2))


def silent(place: SinkPlace) -> None:
    """Queries without files tell their schemas, and a batch may hold nothing at all."""
    with _opened(place) as deliver:
        deliver(0, queries=(), silent=("a", "b"))
        deliver(1, queries=())
        deliver(2, queries=("a",), silent=("b",))
        deliver(2, queries=("a",), silent=("b",))
        deliver(3, queries=(), silent=("a",))
    found(place, "a", (2,))
    found(place, "b", ())


def changing(place: SinkPlace) -> None:
    """A query may end, begin, and come back."""
    with _opened(place) as deliver:
        deliver(0, queries=("a",))
        deliver(1, queries=("b",))
        deliver(2, queries=("a", "b"))
    found(place, "a", (0, 2))
    found(place, "b", (1, 2))


def nothing(place: SinkPlace) -> None:
    """Nobody has to deliver."""
    for _ in range(2):
        with _opened(place):
            pass
    found(place, "a", ())


def found(place: SinkPlace, query: str, batches: Iterable[int]) -> None:
    """Readers find the rows of these batches, each once, and no others."""
    expected = [row for batch in dict.fromkeys(batches) for row in rows_of(query, batch)]
    ours = sorted(([row[name] for name in ("start", "end", "city", "total")] for row in place.rows(query)), key=str)
    theirs = sorted((list(row.values()) for row in expected), key=str)
    assert ours == theirs, f"query {query}: {len(ours)} rows are found, {len(theirs)} were delivered"
