"""Sinks and sources of other packages, as settings: a section each, with fields of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, Self, TypeVar

from pydantic import ValidationError

from weft.config.section import Section
from weft.errors import UseError
from weft.plugins import PluginError


class Pluggable(Section):
    """What a sink or a source of another package can be told: its fields, in a file or in a word."""

    form: ClassVar[str]
    """How it is written in a word, such as ``redis:HOST:PORT``."""

    @classmethod
    def of_word(cls, rest: str) -> dict[str, Any]:
        """The fields that a word tells, by what stands behind its first colon; ValueError if it is not of the form."""
        raise ValueError("it is not written in a word")

    @classmethod
    def told(cls, word: str, options: Mapping[str, Any]) -> Self:
        """The section that a word and options beside it describe.

        Raises
        ------
        UseError
            Naming the fields that are wrong; never their values, which may be secret.
        """
        kind, _, rest = word.partition(":")
        try:
            fields = cls.of_word(rest)
        except ValueError:
            raise UseError(f"{kind} is not of the form {cls.form}") from None
        return cls.checked(kind, {**fields, **options})

    @classmethod
    def checked(cls, kind: str, fields: Mapping[str, Any]) -> Self:
        """The section of these fields, or the same error."""
        try:
            return cls.model_validate(dict(fields))
        except ValidationError as error:
            raise UseError("\n".join(f"{kind}: {_sentence(cls, mistake)}" for mistake in error.errors())) from None


def _sentence(section: type[Section], mistake: Any) -> str:
    name = ".".join(str(part) for part in mistake["loc"])
    if mistake["type"] == "extra_forbidden":
        known = ", ".join(field.alias or name for name, field in section.model_fields.items())
        return f"there is no option {name}; there are {known}"
    return f"{name}: {mistake['msg'].removeprefix('Value error, ')}"


Section_ = TypeVar("Section_", bound=Pluggable)


def accepting(base: type[Section_], taken: tuple[str, ...]) -> Callable[[EntryPoint, Any], type[Section_]]:
    """Have only sections of a kind be plugged in, under names that are free."""

    def accept(entry: EntryPoint, found: Any) -> type[Section_]:
        if not (isinstance(found, type) and issubclass(found, base)):
            raise PluginError(f"it has to be a class that extends weft.config.{base.__name__}")
        if entry.name in taken:
            raise PluginError(f"there is a {entry.name} already: choose another name")
        return found

    return accept
