"""Settings of a file and of the command line into one configuration; the command line wins."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from weft.config.model import StreamConfig
from weft.config.settings import ConfigError, Place, Settings
from weft.config.sinks import SINK_TYPES, sink_plugins

_PATHS: tuple[Place, ...] = (("queries",), ("checkpoint",), ("out",), ("source", "spec"), ("source", "dead_letter"))
"""Paths in a file are relative to the file."""
_FILE_SINKS = ("parquet", "delta")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def stream_config(file: Settings, options: Mapping[Place, tuple[str, Any]]) -> StreamConfig:
    """The configuration of a job.

    Parameters
    ----------
    file
        What ``weft.yaml`` says.
    options
        What the command line says: the place of each value, the option's name, and the value.

    Examples
    --------
    >>> source = {"name": "trades", "spec": "trades", "event_time": "ts", "lateness": "5 s"}
    >>> file = Settings({"source": source, "checkpoint": "state", "out": "answers"})
    >>> config = stream_config(file, {("source", "lateness"): ("--lateness", "1 minute")})
    >>> config.source.lateness, config.source.event_time
    (60000000, 'ts')
    """
    merged = overlaid(file, options)
    try:
        return StreamConfig.model_validate(merged.values)
    except ValidationError as error:
        raise ConfigError("\n".join(explained(error, merged, StreamConfig))) from None


def overlaid(file: Settings, options: Mapping[Place, tuple[str, Any]]) -> Settings:
    """The settings of the file with those of the command line over them."""
    values = _anchored(file)
    places = dict(file.places)
    for place, (option, value) in options.items():
        *above, last = place
        section = values
        for name in above:
            inner = section.get(str(name))
            section[str(name)] = section = dict(inner) if isinstance(inner, dict) else {}
        section[str(last)] = value
        places = {known: where for known, where in places.items() if known[: len(place)] != place}
        places[place] = option
    return Settings(values, places, file.file)


def _anchored(file: Settings) -> dict[str, Any]:
    values = dict(file.values)
    if file.file is None:
        return values
    folder = file.file.parent
    for place in _PATHS:
        section = values
        for name in place[:-1]:
            if not isinstance(section.get(str(name)), dict):
                break
            section[str(name)] = section = dict(section[str(name)])
        else:
            if isinstance(section.get(str(place[-1])), str):
                section[str(place[-1])] = _under(section[str(place[-1])], folder)
    if isinstance(values.get("sinks"), list):
        values["sinks"] = [_anchored_sink(sink, folder) for sink in values["sinks"]]
    return values


def _anchored_sink(sink: Any, folder: Path) -> Any:
    if isinstance(sink, str):
        return _anchored_word(sink, folder)
    if isinstance(sink, dict):
        paths = {"path": _under, "to": _anchored_word}
        return {
            key: paths[key](value, folder) if key in paths and isinstance(value, str) else value
            for key, value in sink.items()
        }
    return sink


def _anchored_word(word: str, folder: Path) -> str:
    """``parquet:DIR``, perhaps with the queries that it is for before it."""
    queries, equals, to = word.rpartition("=")
    kind, colon, path = to.partition(":")
    return f"{queries}{equals}{kind}:{_under(path, folder)}" if colon and kind in _FILE_SINKS else word


def _under(path: str, folder: Path) -> str:
    """A path of the file as seen from anywhere; a URI or ``kafka:...`` is one already."""
    return path if _SCHEME.match(path) else str(folder / path)


def explained(error: ValidationError, settings: Settings, model: type[BaseModel]) -> Iterator[str]:
    """A line for each mistake: where, what is wrong, what would be right; never the value, which may be secret."""
    for mistake in error.errors(include_url=False, include_input=False):
        place, fields = _walk(mistake["loc"], model)
        dotted = ".".join(str(part) for part in place)
        where = settings.place(place) if place else ""
        # an option says by itself which setting it is
        what = _sentence(mistake, "" if where.startswith("--") else dotted, place, fields)
        yield f"{where}: {what}" if where else what


def _sentence(mistake: ErrorDetails, dotted: str, place: Place, fields: list[str]) -> str:
    kind = mistake["type"]
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(str(place[-1]), fields, 1)
        hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(fields)}"
        return f"there is no setting {dotted}; {hint}"
    if kind == "missing":
        return f"{dotted} is missing: write it into weft.yaml{_or_option(place)}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return f"{dotted} needs a type: one of {', '.join((*SINK_TYPES, *sink_plugins().loaded))}"
    message = mistake["msg"].removeprefix("Value error, ")
    message = f"{message[:1].lower()}{message[1:]}"
    return f"{dotted}: {message}" if dotted else message


def _or_option(place: Place) -> str:
    if place in (("source",), ("source", "name"), ("source", "spec")):
        return ", or say --source NAME=SPEC"
    return "" if place[0] == "sinks" else f", or say --{str(place[-1]).replace('_', '-')}"


def _walk(loc: tuple[int | str, ...], model: type[BaseModel]) -> tuple[Place, list[str]]:
    """The place without the tags that pydantic puts in for a kind of sink, and the fields that there are."""
    place: list[str | int] = []
    here: Any = model
    fields: list[str] = []
    for part in loc:
        kinds = _models(here)
        tagged = {_tag(kind): kind for kind in kinds if "type" in kind.model_fields}
        if part in tagged and isinstance(place[-1], int):
            here = tagged[part]
            continue
        place.append(part)
        if kinds and isinstance(part, str):
            names = {field.alias or name: field.annotation for name, field in kinds[0].model_fields.items()}
            fields, here = list(names), names.get(part)
    return tuple(place), fields


def _tag(kind: type[BaseModel]) -> int | str:
    """What stands under ``type`` for this kind of sink."""
    tag: str = get_args(kind.model_fields["type"].annotation)[0]
    return tag


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models inside a field's annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Annotated, UnionType) or get_args(annotation):
        return [model for inner in get_args(annotation) for model in _models(inner)]
    return []
