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


@dataclass(frozen=True)
class Constants:
    """Seconds for one of each; the defaults were measured on two cores (shared design notes, measured.md).

    Examples
    --------
    >>> Constants().row < Constants().slice
    True
    """

    row: float = 1.6e-7
    """A row cut and aggregated in the JVM."""
    slice: float = 9.0e-7
    """A slice of one group shuffled and handed over to Arrow."""
    merge: float = 2.0e-8
    """A fine slice read and merged into a tree's own slice (level 2 of three)."""
    kernel: Mapping[str, float] = field(default_factory=lambda: MappingProxyType(dict(_KERNEL)))
    """One operation of each technique's kernel."""
    answer: float = 7.0e-8
    """An answer emitted."""
    step: float = 0.2
    """Fixed cost of a step, whatever the plan."""

    @classmethod
    def load(cls, path: Path | None = None) -> Constants:
        """The measured constants, or the defaults where ``weft calibrate`` was never run."""
        source = path or default_path()
        if not source.exists():
            return cls()
        try:
            stored = json.loads(source.read_text())
            return cls(**{**stored, "kernel": MappingProxyType({**_KERNEL, **stored.get("kernel", {})})})
        except (TypeError, ValueError) as error:
            raise WeftError(f"{source} does not hold calibrated constants ({error}): run `weft calibrate`") from error

    def save(self, path: Path | None = None) -> Path:
        """Keep them where :meth:`load` looks; returns the file."""
        target = path or default_path()
        target.parent.mkdir(parents=True, exist_ok=True)
        plain = {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "kernel": dict(self.kernel)}
        target.write_text(json.dumps(plain, indent=2) + "\n")
        return target


def default_path() -> Path:
    """``$WEFT_CONSTANTS``, else ``constants.json`` in the user's configuration directory."""
    if named := os.environ.get("WEFT_CONSTANTS"):
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config")) / "weft" / "constants.json"
