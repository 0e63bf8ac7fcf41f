"""What one query may ask for, at most: so that none takes what all others need."""

from __future__ import annotations

from dataclasses import dataclass, fields

from weft.errors import UseError


@dataclass(frozen=True)
class Limits:
    """How much a query may cause before it is stopped by name, with the figure.

    Examples
    --------
    >>> Limits(answers=1000).beyond("answers", 2000, "it would give 2,000 answers")
    'it would give 2,000 answers, and may give 1,000: a larger limit is set by limits.answers'
    """

    answers: int = 100_000_000
    """Answers of a query in one run, or in one micro-batch."""
    keys: int = 10_000_000
    """Groups of which a live query keeps state, or that one bucket of a run has."""
    slices: int = 1_000_000
    """Slices of one group that a live query needs: 30 days by 1 second would be 2.6 million."""
    value_bytes: int = 1 << 20
    """Bytes of one text or binary that is a key, or that an aggregate keeps; of an array, elements times 8."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UseError(f"limits.{item.name} is {value!r}: write a whole number from 1 on")

    def beyond(self, name: str, figure: int, what: str) -> str | None:
        """What to say of a query that causes so much of something; None if it may."""
        most = getattr(self, name)
        if figure <= most:
            return None
        verb = "give" if name == "answers" else "have"
        return f"{what}, and may {verb} {most:,}: a larger limit is set by limits.{name}"


DEFAULT = Limits()
NAMES = tuple(item.name for item in fields(Limits))
