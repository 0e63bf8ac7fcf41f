"""The one root of everything Weft raises on purpose, and the carets that point into a query's text."""

from __future__ import annotations


class WeftError(Exception):
    """Root of every error that Weft raises on purpose."""


class UseError(WeftError):
    """Something was asked that cannot be done as it was asked: the user has to change what they wrote."""


class QueryError(WeftError):
    """A query that cannot be run: where in its text, what is wrong, what would be right.

    Examples
    --------
    >>> print(QueryError("no such thing as FRM", text="SELECT 1 FRM t", at=9, length=3, hint="write FROM"))
    no such thing as FRM
      line 1, column 10:
        SELECT 1 FRM t
                 ^^^
      write FROM
    """

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        at: int | None = None,
        length: int = 1,
        hint: str | None = None,
        query: str | None = None,
    ) -> None:
        self.message = message
        self.text = text
        self.at = at
        self.length = length
        self.hint = hint
        self.query = query
        super().__init__(message)

    def __str__(self) -> str:
        lines = [f"query {self.query}: {self.message}" if self.query else self.message]
        if self.text is not None and self.at is not None:
            lines += caret(self.text, self.at, self.length)
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class QueriesError(WeftError):
    """Several bad queries, all of them reported at once."""

    def __init__(self, errors: list[QueryError]) -> None:
        self.errors = errors
        super().__init__("\n\n".join(str(error) for error in errors))


def caret(text: str, at: int, length: int = 1) -> list[str]:
    """The line of ``text`` that holds offset ``at``, with a caret under the place."""
    at = min(max(at, 0), len(text))
    line_start = text.rfind("\n", 0, at) + 1
    line_end = text.find("\n", at)
    line = text[line_start : len(text) if line_end < 0 else line_end]
    column = at - line_start
    width = max(1, min(length, len(line) - column))
    number = text.count("\n", 0, at) + 1
    return [
        f"  line {number}, column {column + 1}:",
        f"    {line.expandtabs(1)}",
        f"    {' ' * column}{'^' * width}",
    ]
