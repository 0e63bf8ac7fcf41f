"""What a name in an expression refers to: a column of the stream, with or without the stream's name before it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from sqlglot import exp

from weft.query import refusals
from weft.query.functions import VOLATILE_NAMES
from weft.query.selects import Select
from weft.query.sources import Edit, Source
from weft.query.spans import exact_span_of


class Names:
    """The names of one stream.

    ``columns`` is None where the stream is not known yet: then any name may be a column, and those are that no alias
    can stand for.
    """

    def __init__(self, select: Select, columns: Collection[str] | None) -> None:
        self.stream = ".".join(select.stream)
        self.columns = None if columns is None else frozenset(column.lower() for column in columns)
        self._certain = _implied_columns(select) if self.columns is None else self.columns
        parts = tuple(part.lower() for part in select.stream)
        # An alias hides the name, as in Spark.
        self._qualifiers = [(select.alias.lower(),)] if select.alias else [parts[at:] for at in range(len(parts))]
        self._paths: dict[int, list[exp.Identifier]] = {}

    def path(self, column: exp.Column) -> list[exp.Identifier]:
        """The parts of a name after the stream's: a column, and fields inside it."""
        if id(column) not in self._paths:
            self._paths[id(column)] = self._path(column)
        return self._paths[id(column)]

    def _path(self, column: exp.Column) -> list[exp.Identifier]:
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        lowered = tuple(part.name.lower() for part in parts)
        for qualifier in self._qualifiers:
            length = len(qualifier)
            # Spark tries t.price as column price of t first, then as field price of a column t.
            if lowered[:length] == qualifier and len(parts) > length and self._may_have(lowered[length]):
                return parts[length:]
        return parts

    def certainly_has(self, column: exp.Column) -> bool:
        """Whether the column is known to be the stream's."""
        path = self.path(column)
        return len(path) < len(column.parts) or path[0].name.lower() in self._certain

    def means_window(self, node: exp.Expr) -> bool:
        """Whether a name refers to the window in GROUP BY."""
        if not isinstance(node, exp.Column) or self.certainly_has(node):
            return False
        return self.path(node)[0].name.lower() == "window"

    def edits(self, column: exp.Column) -> Iterator[Edit]:
        """Take the stream's name off a column; its identity ignores letter case and quotes."""
        path = self.path(column)
        start, position = exact_span_of(column)[0], exact_span_of(path[0])[0]
        if start < position:
            yield Edit(start, position, "")
        for part in path:
            yield Edit(*exact_span_of(part), None, identity(part.name))

    def check(self, column: exp.Column, source: Source) -> None:
        """Refuse a name that the stream does not have."""
        if not isinstance(column.this, exp.Identifier):
            source.refuse(column, refusals.STAR)
        if self.certainly_has(column):
            return
        name = self.path(column)[0].name
        if name.lower() in VOLATILE_NAMES:
            source.refuse(column, refusals.nondeterministic(name))
        if self.columns is not None:
            close = get_close_matches(name.lower(), sorted(self.columns), n=1)
            source.refuse(column, refusals.no_column(name, self.stream, close[0] if close else None))

    def _may_have(self, name: str) -> bool:
        return self.columns is None or name in self.columns


def _implied_columns(select: Select) -> frozenset[str]:
    """The names that can only be columns: WHERE sees no alias, and an entry of the select list only those before it."""
    implied: set[str] = set()
    aliases: set[str] = set()
    for item in select.items:
        implied |= _first_names(item.expression) - aliases
        if item.alias is not None:
            aliases.add(item.alias.lower())
    if select.where is not None:
        implied |= _first_names(select.where)
    return frozenset(implied - VOLATILE_NAMES - {"window"})


def _first_names(node: exp.Expr) -> set[str]:
    return {column.parts[0].name.lower() for column in node.find_all(exp.Column)}


def identity(name: str) -> str:
    """The identity of a name."""
    return quoted(name.lower())


def quoted(name: str) -> str:
    """A name as an identifier, whatever it is made of.

    Examples
    --------
    >>> quoted("a `b`")
    '`a ``b```'
    """
    return "`" + name.replace("`", "``") + "`"
