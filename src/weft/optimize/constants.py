"""What things really cost on a Spark: seconds, measured by ``weft calibrate`` and kept in the user's configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from weft.errors import WeftError

_KERNEL = {
    "panes": 1.0e-9,
    "panes-inv": 1.0e-9,
    "twostacks": 1.2e-9,
    "twostacks-lite": 1.2e-9,
    "daba": 1.4e-9,
    "daba-lite": 1.5e-9,
    "flatfit": 4.0e-9,
    "flatfat": 2.5e-9,
    "b-int": 2.5e-9,
    "slickdeque-inv": 1.0e-9,
    "slickdeque-noninv": 2.5e-9,
}
"""Operations of techniques that are fed a slice at a time; what ``bulk`` does is :attr:`Constants.merge`."""


_CUT = {
    "jvm": {"step": 0.17, "moved": 0.0, "grouped": 4.0e-8, "updated": 6.0e-9, "sliced": 1.3e-7},
    "workers": {"step": 0.36, "moved": 4.0e-8, "grouped": 2.0e-8, "updated": 2.0e-9, "sliced": 1.3e-7},
    "driver": {"step": 0.13, "moved": 3.8e-8, "grouped": 5.0e-9, "updated": 1.0e-9, "sliced": 3.4e-8},
}
"""What cutting costs each engine, see :class:`~weft.optimize.cut_choice.CutWork`."""


@dataclass(frozen=True)
class Constants:
    """Seconds for one of each; the defaults are rough values for two cores, see ``weft calibrate``.

    Examples
    --------
    >>> Constants().row < Constants().slice
    True
    """

    row: float = 2.5e-8
    """A row copied and looked up among the slices in the JVM, for each time that it is cut."""
    update: float = 1.0e-8
    """A row merged into one number of its slice."""
    edge: float = 3.0e-9
    """A row held against one more progression of edges."""
    long: float = 5.0e-9
    """The same for each of them that makes the code too long to be compiled well."""
    slice: float = 8.0e-7
    """A slice of one group shuffled, handed over to Arrow and sorted."""
    number: float = 4.0e-8
    """One number that is kept of a slice, on the same way."""
    again: float = 5.0e-8
    """One number of a slice shuffled and merged by Spark before that, where rows do not come in the order of time."""
    merge: float = 2.0e-9
    """One number of a slice or pane read and merged into a coarser one (level 2 of three)."""
    pane: float = 1.0e-9
    """A slice or pane looked at to find the coarser one that it belongs to, once for all its numbers."""
    kernel: Mapping[str, float] = field(default_factory=lambda: MappingProxyType(dict(_KERNEL)))
    """One operation of each technique's kernel."""
    answer: float = 1.5e-8
    """An answer found and emitted, with its window and keys."""
    value: float = 7.0e-9
    """One aggregate of an answer."""
    read: float = 2.2e-7
    """A row read and its expressions evaluated, once."""
    query: float = 2.8e-3
    """A query's own overhead, whatever it answers: its expressions, its file."""
    step: float = 0.25
    """Fixed cost of a step, whatever the plan."""
    cut: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: MappingProxyType(_CUT))
    """By an engine that cuts rows: the fixed cost of a step, and what a value that it is given, a row that it looks up
    among slices, a number that it updates and a number of a slice that it hands on cost."""
    cores: int = 2
    """How many tasks ran at a time when all this was measured."""

    @classmethod
    def load(cls, spark: str | None = None, path: Path | None = None) -> Constants:
        """What ``weft calibrate`` measured on that Spark, see :func:`spark_name`; the defaults if it never ran there.

        Without a name, this machine's own Spark is meant.
        """
        source = path or default_path()
        if not source.exists():
            return cls()
        try:
            stored = json.loads(source.read_text()).get(spark or this_machine(), {})
            kernel, cut = {**_KERNEL, **stored.get("kernel", {})}, {**_CUT, **stored.get("cut", {})}
            return cls(**{**stored, "kernel": MappingProxyType(kernel), "cut": MappingProxyType(cut)})
        except (AttributeError, TypeError, ValueError) as error:
            raise WeftError(f"{source} does not hold calibrated constants ({error}): run `weft calibrate`") from error

    def save(self, spark: str | None = None, path: Path | None = None) -> Path:
        """Keep them where :meth:`load` looks, beside those of other Sparks; returns the file."""
        target = path or default_path()
        target.parent.mkdir(parents=True, exist_ok=True)
        every = json.loads(target.read_text()) if target.exists() else {}
        plain = {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "kernel": dict(self.kernel)}
        plain["cut"] = {engine: dict(each) for engine, each in self.cut.items()}
        target.write_text(json.dumps({**every, spark or this_machine(): plain}, indent=2) + "\n")
        return target


def spark_name(master: str, cores: int) -> str:
    """What constants are kept under: they are another machine's if the master or its cores are others.

    Examples
    --------
    >>> spark_name("local[2]", 2), spark_name("spark://host:7077", 64)
    ('local, 2 cores', 'spark://host:7077, 64 cores')
    """
    return f"{'local' if master.startswith('local[') else master}, {cores} cores"


def this_machine() -> str:
    """The Spark that Weft starts on this machine unless told otherwise."""
    return spark_name("local[*]", os.cpu_count() or 1)


def default_path() -> Path:
    """``$WEFT_CONSTANTS``, else ``constants.json`` in the user's configuration directory."""
    if named := os.environ.get("WEFT_CONSTANTS"):
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config")) / "weft" / "constants.json"
