"""``weft.yaml``: where it is, what it says, and on which line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from weft.errors import UseError

FILE = "weft.yaml"

Place = tuple[str | int, ...]
"""The way to a value: ``("source", "event_time")``."""

_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ConfigError(UseError):
    """Settings that cannot be: where, what is wrong, what would be right."""


@dataclass(frozen=True)
class Settings:
    """Values as they were written, with the place of each."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Place, str] = field(default_factory=dict)
    """Where a value was written: ``weft.yaml, line 7``."""
    file: Path | None = None

    def place(self, at: Place) -> str:
        """Where the value stands, or the nearest one that it should stand in."""
        for length in range(len(at), 0, -1):
            if at[:length] in self.places:
                return self.places[at[:length]]
        return str(self.file.name) if self.file else "command line"

    def only(self, *names: str) -> Settings:
        """Some of the settings."""
        return replace(self, values={name: value for name, value in self.values.items() if name in names})

    def filled(self, environment: Mapping[str, str] | None = None) -> Settings:
        """With ``${NAME}`` and ``${NAME:-default}`` replaced from the environment, and ``$$`` by a dollar.

        Examples
        --------
        >>> Settings({"catalog": "postgresql://ada:${PW}@db/weft"}).filled({"PW": "engine"}).values
        {'catalog': 'postgresql://ada:engine@db/weft'}
        """
        return replace(self, values=_filled(self.values, (), self, os.environ if environment is None else environment))


def find_file(start: Path | None = None) -> Path | None:
    """``weft.yaml`` in this folder or the nearest one above it."""
    folder = (start or Path.cwd()).absolute()
    found = (parent / FILE for parent in (folder, *folder.parents) if (parent / FILE).is_file())
    return next(found, None)


def read_file(path: Path) -> Settings:
    """The settings of a file, as they are written."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}") from None
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return Settings(file=path)
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(f"{path.name}: write settings as NAME: VALUE, a line each")
        places = dict(_places(root, (), path.name))
        values = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path.name}{line}: this is not YAML: {error.problem}") from None
    finally:
        loader.dispose()
    return Settings(values, places, path)


def _places(node: yaml.Node, at: Place, name: str) -> Iterator[tuple[Place, str]]:
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in seen:
                raise ConfigError(f"{name}, line {line}: {key.value} is there twice, first on line {seen[key.value]}")
            seen[key.value] = line
            yield (*at, key.value), f"{name}, line {line}"
            yield from _places(value, (*at, key.value), name)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*at, number), f"{name}, line {value.start_mark.line + 1}"
            yield from _places(value, (*at, number), name)


def _filled(value: Any, at: Place, settings: Settings, environment: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _substituted(value, settings.place(at), environment)
    if isinstance(value, dict):
        return {key: _filled(one, (*at, key), settings, environment) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, (*at, number), settings, environment) for number, one in enumerate(value)]
    return value


def _substituted(text: str, place: str, environment: Mapping[str, str]) -> str:
    def replaced(found: re.Match[str]) -> str:
        name, default = found.groups()
        if name is None:
            return "$"
        given = environment.get(name, default)
        if given is None:
            raise ConfigError(
                f"{place}: there is no environment variable {name}: set it, or write a default as ${{{name}:-default}}"
            )
        return given

    return _VARIABLE.sub(replaced, text)
