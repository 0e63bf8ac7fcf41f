"""What Weft does not run, and what to do instead: every refusal's words in one place."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from weft.query.functions import SUPPORTED


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is wrong, and what would be right."""

    message: str
    hint: str = ""

    def about(self, name: str) -> Refusal:
        """The same of the clause ``name``."""
        return Refusal(self.message.format(name), self.hint)


HINT = Refusal("optimizer hints are not supported", "remove the hint: Weft plans all queries together")
SELECT_DISTINCT = Refusal(
    "SELECT DISTINCT is not supported", "each key and window gives one row already: select them, and remove DISTINCT"
)
SUBQUERY = Refusal(
    "sub-queries are not supported",
    "compute the inner query as a DataFrame and register that as the stream",
)
TABLE_FUNCTION = Refusal("table functions are not supported", "name a registered stream after FROM")
PARAMETER = Refusal("query parameters are not supported", "write the value itself")
WITHIN_GROUP = Refusal(
    "WITHIN GROUP is not supported", "ordered-set aggregates cannot be merged from slices; run this query on Spark"
)
OVER = Refusal(
    "window functions (OVER) are not supported",
    "put the window into GROUP BY: GROUP BY window(ts, '10 minutes', '1 minute')",
)
NO_FROM = Refusal("FROM is missing", "name the stream: SELECT ... FROM stream GROUP BY window(ts, '10 minutes')")
STAR = Refusal("* is not supported in the select list", "name the columns, keys and aggregates to select")
NO_WINDOW = Refusal(
    "GROUP BY has no window",
    "add one, for example GROUP BY window(ts, '10 minutes', '1 minute')",
)
NO_GROUP_BY = Refusal(
    "the query has no GROUP BY window(...)",
    "add one, for example GROUP BY window(ts, '10 minutes', '1 minute')",
)

DISTINCT_AGGREGATE = Refusal(
    "DISTINCT inside an aggregate is not supported",
    "distinct values cannot be merged from slices; run this query on Spark",
)
NULLS_FLAG = Refusal("the second argument has to be true or false", "write IGNORE NULLS, or true, to skip NULLs")
QUALIFIED_FUNCTION = Refusal("qualified function names are not supported", "call the function by its plain name")
FILTER_WITHOUT_AGGREGATE = Refusal(
    "FILTER and IGNORE NULLS belong to aggregates only", "move the condition into WHERE, or into an aggregate's FILTER"
)
NESTED_AGGREGATE = Refusal(
    "an aggregate inside an aggregate is not possible", "register the inner query, and aggregate its answers"
)
WINDOW_IN_AGGREGATE = Refusal(
    "the window cannot stand inside an aggregate", "it is the same for all rows of a group: use it outside"
)
WINDOW_ARGUMENTS = Refusal(
    "window takes a column and one to three durations",
    "write window(ts, 'length'), window(ts, 'length', 'slide') or window(ts, 'length', 'slide', 'start')",
)
EVENT_TIME = Refusal(
    "the first argument of window has to be the stream's event-time column", "name the column itself, no expression"
)
WINDOW_START = Refusal("the start of windows has to be shorter than their slide", "take it modulo the slide")
NOT_A_DURATION = Refusal(
    "a duration has to be a string or a whole number of microseconds", "write for example '10 minutes'"
)
BRACKET = Refusal("cannot read the window", "write for example [WINDOW 10 min SLIDE 2 min]")
TWO_WINDOWS = Refusal(
    "a query has one window, and this is another",
    "register a query for each window; to select the window write window, window.start or window.end",
)
WINDOW_FIELD = Refusal("a window has the fields start and end only", "write window.start or window.end")
DERIVED_WINDOW = Refusal(
    "GROUP BY has a function of the window, but not the window itself", "add the window to GROUP BY"
)
WINDOW_IN_KEY = Refusal(
    "a key cannot mix the window with columns", "group by the columns and the window apart, and combine them in SELECT"
)
TOO_DEEP = Refusal("the expression is nested too deeply", "split it over several queries or columns")

_JOIN = Refusal("joins are not supported", "join first, and register the joined DataFrame as the stream")
SEVERAL_TABLES = Refusal("several tables are not supported", _JOIN.hint)
_SET_OPERATION = Refusal("set operations are not supported", "register each SELECT as a query of its own")
_ORDER = Refusal("{} is not supported", "the answers of a stream have no order: sort them where you read them")
_CUT = Refusal("{} is not supported", "every window is answered: cut where you read the answers")
_GROUPINGS = Refusal("{} is not supported", "register one query for each set of keys")
_PIVOT = Refusal("{} is not supported", "use one aggregate with FILTER (WHERE ...) for each column")
_TRAVEL = Refusal("time travel is not supported", "register the DataFrame of that version as the stream")
_PIPE = Refusal("pipe syntax is not supported", "write SELECT ... FROM ... GROUP BY ...")

_CLAUSES = {
    "ORDER": _ORDER,
    "SORT": _ORDER,
    "CLUSTER": _ORDER,
    "DISTRIBUTE": _ORDER,
    "LIMIT": _CUT,
    "OFFSET": _CUT,
    "FETCH": _CUT,
    "UNION": _SET_OPERATION,
    "INTERSECT": _SET_OPERATION,
    "EXCEPT": _SET_OPERATION,
    "MINUS": _SET_OPERATION,
    **dict.fromkeys(("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "NATURAL", "SEMI", "ANTI", "OUTER"), _JOIN),
    "LATERAL": Refusal(
        "LATERAL VIEW is not supported", "explode first, and register the exploded DataFrame as the stream"
    ),
    "PIVOT": _PIVOT,
    "UNPIVOT": _PIVOT,
    "TABLESAMPLE": Refusal("TABLESAMPLE is not supported", "register df.sample(...) as the stream"),
    "QUALIFY": Refusal("QUALIFY is not supported", "use HAVING for conditions on aggregates"),
    "WINDOW": Refusal("the WINDOW clause is not supported", OVER.hint),
    "WITH": _GROUPINGS,
    "GROUPING": _GROUPINGS,
    "VERSION": _TRAVEL,
    "TIMESTAMP": _TRAVEL,
    "FOR": _TRAVEL,
    "|>": _PIPE,
}


_CLAUSE_NAMES = {
    "ORDER": "ORDER BY",
    "SORT": "SORT BY",
    "CLUSTER": "CLUSTER BY",
    "DISTRIBUTE": "DISTRIBUTE BY",
    "WITH": "WITH ROLLUP or CUBE",
    "GROUPING": "GROUPING SETS",
}


def clause(text: str) -> Refusal | None:
    """The refusal of the clause that begins with ``text``, if it is one that is known."""
    word = text.upper().partition(" ")[0]
    return _CLAUSES[word].about(_CLAUSE_NAMES.get(word, word)) if word in _CLAUSES else None


def grouping(text: str) -> Refusal | None:
    """The refusal of ROLLUP, CUBE and GROUPING SETS."""
    return _GROUPINGS.about(text.upper()) if text.upper() in ("ROLLUP", "CUBE", "GROUPING SETS") else None


def statement(text: str) -> Refusal:
    """The refusal of a statement that is no SELECT."""
    word = text.upper()
    if word == "WITH":
        return Refusal("common table expressions (WITH) are not supported", SUBQUERY.hint)
    if word in ("VALUES", "FROM", "TABLE", "("):
        return Refusal(f"a query cannot begin with {text}", "write SELECT ... FROM ... GROUP BY window(...)")
    return Refusal(
        f"only queries can be registered, not {word or 'nothing'}",
        "write SELECT ..., CREATE VIEW name AS SELECT ... or CREATE MATERIALIZED VIEW name AS SELECT ...",
    )


def missing(what: str) -> Refusal:
    """Something that has to stand here does not."""
    return Refusal(f"{what} is missing here")


def unexpected(text: str) -> Refusal:
    """A word that does not belong here."""
    return Refusal(f"did not expect {text} here")


def aggregate_in(where: str) -> Refusal:
    """An aggregate stands where rows are not grouped yet."""
    if where == "an aggregate":
        return NESTED_AGGREGATE
    hint = "put conditions on aggregates into HAVING" if where == "WHERE" else "use columns, and expressions of columns"
    return Refusal(f"{where} cannot hold an aggregate", hint)


def window_in(where: str) -> Refusal:
    """The window stands where rows are not grouped yet."""
    if where == "an aggregate":
        return WINDOW_IN_AGGREGATE
    hint = "put conditions on the window into HAVING" if where == "WHERE" else "use columns, and expressions of columns"
    return Refusal(f"{where} cannot hold the window", hint)


def unsupported_aggregate(name: str) -> Refusal:
    """An aggregate of Spark's that has no merge here."""
    if name in ("grouping", "grouping_id"):
        return Refusal(f"{name} is not supported", _GROUPINGS.hint)
    known = ", ".join(dict.fromkeys(aggregate.name for aggregate in SUPPORTED.values()))
    hint = textwrap.fill(f"supported are {known}; run this query on Spark", 110, subsequent_indent="  ")
    return Refusal(f"the aggregate {name} is not supported", hint)


def nondeterministic(name: str) -> Refusal:
    """A function whose value is another at each call."""
    return Refusal(
        f"{name} gives another value at each run",
        "an answer has to be the same when it is computed again: write the value itself",
    )


def of_the_session(name: str) -> Refusal:
    """A function whose value says who asks, and where."""
    return Refusal(f"{name} tells of the session, not of the rows", "write the value itself")


def not_allowed(name: str) -> Refusal:
    """A function of Spark's that is not on the list of those that a query may call."""
    return Refusal(
        f"{name} is not among the functions that a query may call",
        "compute it before, as a column of the stream, or register a function of your own in the session",
    )


def no_function(name: str, close: str | None) -> Refusal:
    """A name that no function has."""
    return Refusal(f"no function {name}", f"did you mean {close}?" if close else "")


def generator(name: str) -> Refusal:
    """A function that makes rows."""
    return Refusal(f"{name} makes several rows of one", _CLAUSES["LATERAL"].hint)


def other_window(name: str) -> Refusal:
    """Spark's other time windows."""
    if name == "window_time":
        return Refusal("window_time is not supported", "write window.end - INTERVAL 1 MICROSECOND")
    return Refusal("session windows are not supported", "use window(ts, 'length', 'slide')")


def no_nulls_option(name: str) -> Refusal:
    """IGNORE NULLS on an aggregate that has no such choice."""
    return Refusal(f"{name} takes no IGNORE NULLS", "it ignores NULLs anyhow: remove it")


def argument(name: str) -> Refusal:
    """An argument of a form that has no meaning in the call."""
    return Refusal(f"{name} cannot take this argument")


def argument_count(name: str, takes: str, given: int) -> Refusal:
    """Too few or too many."""
    return Refusal(f"{name} takes {takes}, not {given}")


def not_positive(what: str) -> Refusal:
    """A window that has no length, or never moves."""
    return Refusal(f"the {what} of a window has to be positive")


def no_column(name: str, stream: str, close: str | None) -> Refusal:
    """A name that the stream does not have."""
    return Refusal(f"{stream} has no column {name}", f"did you mean {close}?" if close else "")


def not_grouped(text: str) -> Refusal:
    """A column outside of aggregates that is no key."""
    return Refusal(
        f"{text} is neither in GROUP BY nor inside an aggregate",
        f"add it to GROUP BY, or aggregate it: max({text}); a key's expression has to read as it does in GROUP BY",
    )


def ordinal(position: int, columns: int) -> Refusal:
    """GROUP BY 7 where the select list is shorter."""
    return Refusal(f"GROUP BY {position} points to no column of the select list", f"it has columns 1 to {columns}")


def grouped_aggregate(text: str) -> Refusal:
    """GROUP BY points to an aggregate."""
    return Refusal(f"GROUP BY {text} points to an aggregate", "group by columns, expressions of columns and the window")


def view(word: str) -> Refusal:
    """A word of CREATE VIEW that is not understood."""
    return Refusal(
        f"{word} is expected here",
        "write CREATE [OR REPLACE] [TEMPORARY] VIEW name AS SELECT ... or CREATE MATERIALIZED VIEW name AS SELECT ...",
    )


def unfit_name(name: str) -> Refusal:
    """A name under which no answers can lie."""
    return Refusal(
        f"a query cannot be called {name}",
        "its name becomes that of folders, tables and topics: it holds no / and no \\, and begins with no dot",
    )


def duplicate(name: str) -> Refusal:
    """Two queries of one name."""
    return Refusal(f"there is another query called {name}", "give each query a name of its own")


def syntax(message: str) -> Refusal:
    """What the parser did not understand, in its words."""
    return Refusal(f"cannot read this: {message[:1].lower()}{message[1:]}")
