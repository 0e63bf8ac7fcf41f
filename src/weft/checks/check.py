"""A named check: something that every aggregate, technique, kind of window or sink must do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, ParamSpec

Given = ParamSpec("Given")


@dataclass(frozen=True)
class Check(Generic[Given]):
    """A sentence about a thing that holds, or an AssertionError says where it does not.

    Examples
    --------
    >>> check = Check("two", "is even", lambda: None)
    >>> check()
    >>> str(check)
    'two is even'
    """

    subject: str
    sentence: str
    holds: Callable[Given, None]

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> None:
        """Raise AssertionError if it does not hold."""
        self.holds(*given, **named)

    def __str__(self) -> str:
        return f"{self.subject} {self.sentence}"
