"""What other packages bring by entry points: aggregates, sinks, sources.

A plug-in that cannot be loaded stops nobody who does not ask for it: it is warned of, by its package and name, and
whoever asks for it is told why it is not there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from weft.errors import WeftError

LOG = logging.getLogger("weft.plugins")

Thing = TypeVar("Thing")


class PluginError(WeftError):
    """Something of another package that cannot be loaded, or that is not what its group of entry points is for."""


@dataclass(frozen=True)
class Plugins(Generic[Thing]):
    """The things of one group of entry points, by the names of these."""

    group: str
    loaded: dict[str, Thing] = field(default_factory=dict)
    broken: dict[str, PluginError] = field(default_factory=dict)

    def get(self, name: str) -> Thing | None:
        """The thing of that name; None if there is none.

        Raises
        ------
        PluginError
            If there is one that could not be loaded.
        """
        if name in self.broken:
            raise self.broken[name]
        return self.loaded.get(name)


def plugged_in(group: str, accept: Callable[[EntryPoint, Any], Thing]) -> Plugins[Thing]:
    """Load a group of entry points.

    Parameters
    ----------
    group
        Its name, such as ``weft.sinks``.
    accept
        What the thing is of what an entry point names; raises whatever says why it is none.

    Examples
    --------
    >>> plugged_in("weft.nothing", lambda entry, found: found).loaded
    {}
    """
    plugins = Plugins[Thing](group)
    for entry in _distinct(group):
        try:
            plugins.loaded[entry.name] = accept(entry, entry.load())
        except Exception as error:
            plugins.broken[entry.name] = told = PluginError(
                f"{group.removeprefix('weft.').removesuffix('s')} {entry.name} of package "
                f"{entry.dist.name if entry.dist else '?'} cannot be used: {entry.value}: {_reason(error)}"
            )
            LOG.warning("%s", told)
    return plugins


def _distinct(group: str) -> Iterator[EntryPoint]:
    """The entry points of a group; of several with one name the first on the path counts, as for modules."""
    return iter({entry.name: entry for entry in reversed(tuple(entry_points(group=group)))}.values())


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, WeftError) else f"{type(error).__name__}: {error}"
