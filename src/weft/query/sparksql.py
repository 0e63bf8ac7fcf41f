"""Spark SQL, and the CQL of the papers, into the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import count

from weft.errors import QueriesError, QueryError, WeftError
from weft.query import calls, refusals
from weft.query.dialect import WeftSpark
from weft.query.grouping import read_grouping
from weft.query.model import WINDOW, Output, Part, Query
from weft.query.names import Names
from weft.query.naming import refused_name
from weft.query.outputs import Rewriter
from weft.query.scalars import Scalars
from weft.query.selects import SelectParser
from weft.query.shapes import shape_of
from weft.query.spans import UnreadableError
from weft.query.statements import BYTE_ORDER_MARK, Statement, read_statement
from weft.query.templates import Context, Templates
from weft.query.tokens import pieces

Columns = Collection[str] | Mapping[str, Collection[str]]

TELL_EVERY = 1000

_templates = Templates()

_CQL_OUTPUTS = (
    Output(f"{WINDOW}.start", "window_start", Part.WINDOW_START),
    Output(f"{WINDOW}.end", "window_end", Part.WINDOW_END),
)


def parse_file(
    text: str,
    columns: Columns | None = None,
    taken: Collection[str] = (),
    functions: Collection[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Query]:
    """Read a file of queries.

    Parameters
    ----------
    text
        Statements with semicolons between: ``CREATE VIEW name AS SELECT ...``, ``CREATE MATERIALIZED VIEW name AS
        SELECT ...``, or a bare SELECT, named by a comment ``-- name: x`` before it, else q1, q2, ... by position.
    columns
        The column names of the stream, or a mapping from stream to its column names. Spark looks for a name among the
        columns first, then among the aliases of the select list; where the columns are not known an alias is taken
        wherever there is one.
    taken
        Names that queries registered before have; only ``CREATE OR REPLACE`` may use them again.
    functions
        The functions that the user registered in the session, in lower case; None where no session is known yet, and
        then any name may be one.
    progress
        Is told now and then how many queries of how many have been read.

    Raises
    ------
    QueriesError
        With every query that cannot be run.

    Examples
    --------
    >>> query, = parse_file('''
    ...     CREATE VIEW spread AS
    ...     SELECT symbol, window.end, max(price) - min(price) AS spread
    ...     FROM trades WHERE volume > 0
    ...     GROUP BY symbol, window(ts, '10 minutes', '1 minute')
    ... ''')
    >>> query.name, query.stream, query.event_time, query.window.overlap
    ('spread', 'trades', 'ts', 10.0)
    >>> [output.sql for output in query.outputs]
    ['__key_0', '__window.end', '__agg_0 - __agg_1']
    """
    errors: list[QueryError] = []
    queries: list[Query] = []
    parser = _parser()
    text = text.removeprefix(BYTE_ORDER_MARK)
    statements = _statements(text, errors)
    known = Surroundings(columns, functions)
    for name, statement in _name(statements, taken, errors):
        try:
            queries.append(_templates.find(statement, name, known.context) or _parse(parser, name, statement, known))
        except QueryError as error:
            error.query = name
            errors.append(error)
        if progress is not None and len(queries) % TELL_EVERY == 0:
            progress(len(queries), len(statements))
    if errors:
        raise QueriesError(sorted(errors, key=lambda error: error.at or 0))
    return queries


def _parser() -> SelectParser:
    try:
        return SelectParser(dialect=WeftSpark())
    except TypeError as error:  # from mypyc, at the first object of a class that was made from a compiled one
        raise WeftError(
            "sqlglot is here in its compiled form, which no grammar can be made from; uninstall the package sqlglotc"
        ) from error


def _statements(text: str, errors: list[QueryError]) -> list[Statement]:
    statements = []
    try:
        found = list(pieces(text))
    except QueryError as error:
        errors.append(error)
        return []
    for piece in found:
        try:
            statements.append(read_statement(text, piece))
        except QueryError as error:
            errors.append(error)
    return statements


def _name(
    statements: list[Statement], taken: Collection[str], errors: list[QueryError]
) -> Iterator[tuple[str, Statement]]:
    """Give each statement its name; who has none is numbered around the names of the others."""
    before = {name.lower() for name in taken}
    used = set(before)
    given = used | {statement.name.lower() for statement in statements if statement.name}
    for position, statement in enumerate(statements, start=1):
        name = statement.name or next(
            name for number in count(position) if (name := f"q{number}") not in given and name not in used
        )
        if (refusal := refused_name(name)) is not None:
            errors.append(statement.source.error(statement.name_at, refusal))
            continue
        replaces = statement.replaces and name.lower() in before
        if name.lower() in used and not replaces:
            errors.append(statement.source.error(statement.name_at, refusals.duplicate(name)))
            continue
        used.add(name.lower())
        before.discard(name.lower())
        yield name, statement


class Surroundings:
    """What is known of streams and of the session."""

    def __init__(self, columns: Columns | None, functions: Collection[str] | None) -> None:
        self.functions = None if functions is None else frozenset(functions)
        self._of_all = columns if columns is None or isinstance(columns, Mapping) else frozenset(columns)
        self._contexts: dict[str, Context] = {}

    def context(self, stream: str) -> Context:
        """The columns of a stream, and the functions."""
        if stream not in self._contexts:
            columns: Collection[str] | None = self._of_all
            if isinstance(self._of_all, Mapping):
                columns = {name.lower(): names for name, names in self._of_all.items()}.get(stream.lower())
            self._contexts[stream] = None if columns is None else frozenset(columns), self.functions
        return self._contexts[stream]


def _parse(parser: SelectParser, name: str, statement: Statement, known: Surroundings) -> Query:
    try:
        return _query(parser, name, statement, known)
    except UnreadableError as error:
        statement.source.refuse(error.span, refusals.syntax(error.message))
    except RecursionError:
        first = statement.body[0]
        statement.source.refuse((first.start, first.end + 1), refusals.TOO_DEEP)


def _query(parser: SelectParser, name: str, statement: Statement, known: Surroundings) -> Query:
    source = statement.source
    select = parser.read_select(statement.body, source.text)
    for expression in select.expressions:
        calls.refuse_unknown(expression, source, known.functions)
    stream = ".".join(select.stream)
    context = known.context(stream)
    scalars = Scalars(source, Names(select, context[0]))
    grouping = read_grouping(select, scalars)
    rewriter = Rewriter(scalars, grouping)
    outputs = tuple(rewriter.output(item) for item in select.items)
    having = rewriter.having(select.having) if select.having else None
    start, end = source.tokens[0].start, source.tokens[-1].end + 1
    query = Query(
        name=name,
        stream=stream,
        event_time=grouping.window.column,
        window=grouping.window.window,
        where=scalars.expression(select.where, "WHERE") if select.where else None,
        keys=grouping.keys,
        calls=rewriter.calls,
        outputs=outputs + _CQL_OUTPUTS if select.bracket else outputs,
        having=having,
        text=source.text[start:end],
        shape=shape_of(select, source, grouping.window.window),
        at=start,
    )
    _templates.learn(statement, select, scalars, query, context)
    return query
