"""Every aggregate by its name: built in, a user's own, or of another package (entry points ``weft.aggregates``)."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint

from weft.algebra.aggregate import Aggregate, AggregateError
from weft.algebra.aggregates import FAMILIES
from weft.plugins import Plugins, plugged_in

GROUP = "weft.aggregates"
"""The entry points by which another package brings aggregates: each names an :class:`Aggregate` or several."""


class Registry(Mapping[str, Aggregate]):
    """Aggregates by name and synonym, in lower case.

    Examples
    --------
    >>> AGGREGATES["mean"].name, AGGREGATES["count"].takes
    ('avg', 'at least 1 argument')
    """

    def __init__(self) -> None:
        self._known: dict[str, Aggregate] = {}

    def add(self, aggregate: Aggregate) -> Aggregate:
        """Know an aggregate from now on; no name may be taken."""
        names = [name.lower() for name in (aggregate.name, *aggregate.synonyms)]
        taken = [name for name in names if name in self._known and self._known[name] is not aggregate]
        if taken:
            raise AggregateError(f"there is an aggregate {taken[0]} already: choose another name")
        self._known |= dict.fromkeys(names, aggregate)
        return aggregate

    def named(self, name: str) -> Aggregate:
        """The aggregate of that name.

        Examples
        --------
        >>> AGGREGATES.named("summ")
        Traceback (most recent call last):
            ...
        weft.algebra.aggregate.AggregateError: no aggregate "summ"; did you mean sum?
        """
        found = self.get(name.lower())
        if found is not None:
            return found
        near = difflib.get_close_matches(name.lower(), self, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self)}"
        raise AggregateError(f'no aggregate "{name}"; {hint}')

    def __getitem__(self, name: str) -> Aggregate:
        plugins = _plugged_in()
        if name not in self._known:
            plugins.get(name)  # says why it could not be loaded, if that is so
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        _plugged_in()
        return iter(self._known)

    def __len__(self) -> int:
        _plugged_in()
        return len(self._known)


AGGREGATES = Registry()
for _family in FAMILIES:
    for _aggregate in _family:
        AGGREGATES.add(_aggregate)
register: Callable[[Aggregate], Aggregate] = AGGREGATES.add


@cache
def _plugged_in() -> Plugins[None]:
    """Take in what other packages bring, once."""
    return plugged_in(GROUP, _taken_in)


def _taken_in(_: EntryPoint, found: Aggregate | Iterable[Aggregate]) -> None:
    for aggregate in (found,) if isinstance(found, Aggregate) else tuple(found):
        if not isinstance(aggregate, Aggregate):
            raise AggregateError(f"{aggregate!r} is no Aggregate")
        AGGREGATES.add(aggregate)
