"""Binding: Spark, not we, says what a query's names and types are. Empty frames only; no job runs here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import (
    BooleanType,
    DataType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from weft.algebra.aggregates import UnsupportedAggregateError, recipe
from weft.errors import QueryError, WeftError
from weft.plan.model import BoundCall, BoundQuery, Predicate
from weft.query.limits import DEFAULT, Limits
from weft.query.model import AGGREGATE, KEY, WINDOW, Call, Expression, Output, Part, Query
from weft.query.placeholders import replace_placeholders
from weft.query.sizes import too_large
from weft.spark.failures import SPARK_ERRORS, fault
from weft.spark.rows import predicate_text

Thing = TypeVar("Thing")

WHOLE_WINDOW = re.compile(rf"{WINDOW}(?!\s*\.\s*`?(start|end))", re.IGNORECASE)


@dataclass
class Stream:
    """A named stream of rows with an event time."""

    name: str
    rows: DataFrame
    event_time: str
    limits: Limits = DEFAULT
    """What each query over it may cause."""
    _fields: dict[Expression, StructField] = field(default_factory=dict)
    _calls: dict[Call, StructField] = field(default_factory=dict)
    _outputs: dict[str, StructField] = field(default_factory=dict)
    _shapes: dict[str, StructType] = field(default_factory=dict)
    _predicates: set[Predicate] = field(default_factory=set)

    def __post_init__(self) -> None:
        names = {name.lower(): name for name in self.rows.columns}
        if len(names) < len(self.rows.columns):
            raise WeftError(f"stream {self.name} has columns whose names differ only in letter case")
        if self.event_time.lower() not in names:
            known = ", ".join(self.rows.columns)
            raise WeftError(f"stream {self.name} has no column {self.event_time}; it has {known}")
        self.event_time = names[self.event_time.lower()]
        kind = self.rows.schema[self.event_time].dataType
        if not isinstance(kind, TimestampType | TimestampNTZType):
            raise WeftError(
                f"event time {self.event_time} of stream {self.name} is {kind.simpleString()}, not a timestamp: "
                f"cast it, or have it read as one"
            )
        self.session = private_session(self.rows.sparkSession)
        self.empty = self.session.createDataFrame([], self.rows.schema)
        self.empty.createOrReplaceTempView(f"`{self.name}`")

    @property
    def event_type(self) -> pa.DataType:
        """The Arrow type of the event time and so of windows."""
        return arrow_type(self.rows.schema[self.event_time].dataType)


def private_session(spark: SparkSession) -> SparkSession:
    """A session with the settings and functions of ``spark``, where our views hide none of the user's."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


@dataclass(frozen=True)
class Bound:
    """A query with its types, and the schema that Spark gives it."""

    query: BoundQuery
    schema: StructType
    staged: StructType
    """The schema of the rows that workers write: the query's own, or that of the placeholders Spark goes on from."""

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of its answers in Arrow's types."""
        return to_arrow_schema(self.schema, timezone="UTC")


def bind(stream: Stream, queries: Sequence[Query]) -> tuple[list[Bound], list[QueryError]]:
    """Check queries against the stream; what is wrong with each bad one, and the good ones bound."""
    bound: list[Bound] = []
    errors: list[QueryError] = []
    resolved = []
    for query in queries:
        error = too_large(query, stream.limits)
        if error is None:
            resolved.append(_with_event_time(stream, query))
        else:
            errors.append(error)
    _learn(stream, resolved)
    for query in resolved:
        try:
            bound.append(_bind_one(stream, query))
        except QueryError as error:
            error.query = error.query or query.name
            errors.append(error)
    return bound, errors


def _with_event_time(stream: Stream, query: Query) -> Query:
    """first and last become min_by and max_by event time, which they are by definition here."""
    time = Expression(stream.event_time.lower(), f"`{stream.event_time}`", column=stream.event_time)
    return replace(query, calls=tuple(_by_event_time(call, time) for call in query.calls))


def _by_event_time(call: Call, time: Expression) -> Call:
    if call.function not in {"first", "last"}:
        return call
    (argument,) = call.arguments
    if call.ignore_nulls:
        time = Expression(
            f"CASE WHEN ({argument.canonical}) IS NOT NULL THEN {time.canonical} END",
            f"CASE WHEN ({argument.sql}) IS NOT NULL THEN {time.sql} END",
        )
    function = "min_by" if call.function == "first" else "max_by"
    return replace(call, function=function, arguments=(argument, time), ignore_nulls=False)


def _learn(stream: Stream, queries: Sequence[Query]) -> None:
    """Types of everything at once, as an analysis of Spark costs milliseconds; what fails is looked at alone later."""
    expressions = {key for query in queries for key in query.keys}
    expressions |= {argument for query in queries for call in query.calls for argument in call.arguments}
    _learn_all(expressions - stream._fields.keys(), stream._fields, lambda e: F.expr(f"({e.sql})"), stream.empty.select)
    calls = {call for query in queries for call in query.calls} - stream._calls.keys()
    _learn_all(calls, stream._calls, lambda call: F.expr(call_text(call)), stream.empty.agg)
    predicates = {Predicate(query.where) for query in queries if query.where} - stream._predicates
    checked: dict[Predicate, StructField] = {}
    _learn_all(predicates, checked, lambda one: F.expr(predicate_text(one)), stream.empty.select)
    stream._predicates |= checked.keys()
    _learn_outputs(stream, queries)


def _learn_outputs(stream: Stream, queries: Sequence[Query]) -> None:
    """Types of select lists and HAVINGs, over one empty frame that has a column a key and a call."""
    texts = {_placed(stream, query, output.sql) for query in queries for output in query.outputs if not output.part}
    texts |= {_placed(stream, query, query.having) for query in queries if query.having}
    wanted = {text for text in texts if text is not None} - stream._outputs.keys()
    if wanted:
        frame = stream.session.createDataFrame([], _places(stream))
        _learn_all(wanted, stream._outputs, lambda text: F.expr(f"({text})"), frame.select)


def _places(stream: Stream) -> StructType:
    keys = [StructField(f"{KEY}{n}", known.dataType, known.nullable) for n, known in enumerate(stream._fields.values())]
    calls = [
        StructField(f"{AGGREGATE}{n}", known.dataType, known.nullable) for n, known in enumerate(stream._calls.values())
    ]
    return StructType([*keys, *calls, StructField(WINDOW, _window_type(stream))])


def _placed(stream: Stream, query: Query, text: str) -> str | None:
    """A text over a query's own placeholders as one over the whole stream's; None where that says too little."""
    keys = {key: number for number, key in enumerate(stream._fields)}
    calls = {call: number for number, call in enumerate(stream._calls)}

    def place(kind: str, index: int) -> str:
        return f"{kind}{keys[query.keys[index]] if kind == KEY else calls[query.calls[index]]}"

    if WHOLE_WINDOW.search(text):
        return None  # whether it can be NULL depends on the window's lengths
    try:
        return replace_placeholders(text, place)
    except KeyError:
        return None


def _learn_all(
    things: Iterable[Thing],
    known: dict[Thing, StructField],
    column: Callable[[Thing], Column],
    select: Callable[..., DataFrame],
) -> None:
    wanted = list(things)
    if not wanted:
        return
    try:
        frame = select(*(column(thing).alias(f"c{number}") for number, thing in enumerate(wanted)))
    except SPARK_ERRORS:
        if len(wanted) > 1:
            for half in (wanted[: len(wanted) // 2], wanted[len(wanted) // 2 :]):
                _learn_all(half, known, column, select)
        return
    known.update(zip(wanted, frame.schema.fields, strict=True))


def call_text(call: Call) -> str:
    """A call without its FILTER, as Spark SQL."""
    return f"{call.function}({', '.join(argument.sql for argument in call.arguments) or '*'})"


def _bind_one(stream: Stream, query: Query) -> Bound:
    _check_event_time(stream, query)
    _check_predicate(stream, query)
    schema = _schema(stream, query)
    calls = tuple(_bind_call(stream, query, call) for call in query.calls)
    for key in query.keys:
        _check_key(stream, query, key)
    key_types = tuple(arrow_type(stream._fields[key].dataType) for key in query.keys)
    bound = BoundQuery(query, calls, key_types, stream.event_type, tuple(schema.names))
    return Bound(bound, schema, schema if bound.direct else _placeholders(stream, query))


def _placeholders(stream: Stream, query: Query) -> StructType:
    keys = [StructField(f"{KEY}{i}", stream._fields[key].dataType) for i, key in enumerate(query.keys)]
    calls = [StructField(f"{AGGREGATE}{i}", stream._calls[call].dataType) for i, call in enumerate(query.calls)]
    return StructType([StructField(WINDOW, _window_type(stream)), *keys, *calls])


def _window_type(stream: Stream) -> StructType:
    kind = stream.rows.schema[stream.event_time].dataType
    return StructType([StructField("start", kind), StructField("end", kind)])


def _check_event_time(stream: Stream, query: Query) -> None:
    if query.event_time is not None and query.event_time.lower() != stream.event_time.lower():
        raise QueryError(
            f"window() is over {query.event_time}, but the event time of stream {stream.name} is {stream.event_time}",
            text=query.text,
            at=max(query.text.lower().find(query.event_time.lower()), 0),
            length=len(query.event_time),
            hint=f"write window({stream.event_time}, ...), or give the stream another event time",
        )


def _check_predicate(stream: Stream, query: Query) -> None:
    if query.where is None or Predicate(query.where) in stream._predicates:
        return
    try:
        stream.empty.select(F.expr(predicate_text(Predicate(query.where))))
    except SPARK_ERRORS as error:
        raise _refused(query, error) from None
    stream._predicates.add(Predicate(query.where))


def _schema(stream: Stream, query: Query) -> StructType:
    """The schema that Spark gives for the query: looked up once for all queries of the same shape."""
    if query.shape not in stream._shapes:
        known = [_known_field(stream, query, output) for output in query.outputs]
        if all(known) and _is_condition(stream, query):
            stream._shapes[query.shape] = StructType([field for field in known if field])
        else:
            stream._shapes[query.shape] = _ask_spark(stream, query)
    return stream._shapes[query.shape]


def _known_field(stream: Stream, query: Query, output: Output) -> StructField | None:
    """The output's field if it can be told without an analysis of the whole query, which costs Spark milliseconds."""
    kind = stream.rows.schema[stream.event_time].dataType
    if output.part is Part.WINDOW:
        # Spark builds sliding windows by an Expand, whose columns it takes for nullable
        sliding = query.window.range != query.window.slide
        return StructField(output.alias or "window", _window_type(stream), nullable=sliding)
    if output.part in {Part.WINDOW_START, Part.WINDOW_END}:
        return StructField(output.alias or output.part.value.removeprefix("window."), kind)
    if output.alias is None:
        return None
    if output.part is None:
        known = stream._outputs.get(_placed(stream, query, output.sql) or "")
    elif output.part is Part.KEY:
        known = stream._fields.get(query.keys[output.index])
    else:
        known = stream._calls.get(query.calls[output.index])
    return StructField(output.alias, known.dataType, known.nullable) if known else None


def _is_condition(stream: Stream, query: Query) -> bool:
    """Whether the HAVING, if there is one, is known to be a condition."""
    if query.having is None:
        return True
    known = stream._outputs.get(_placed(stream, query, query.having) or "")
    return known is not None and isinstance(known.dataType, BooleanType)


def _ask_spark(stream: Stream, query: Query) -> StructType:
    try:
        return stream.session.sql(query.shape.replace("{event_time}", stream.event_time)).schema
    except SPARK_ERRORS as error:
        raise _refused(query, error) from None


def _bind_call(stream: Stream, query: Query, call: Call) -> BoundCall:
    if call not in stream._calls:
        _explain_call(stream, query, call)
    types = [stream._fields[argument].dataType for argument in call.arguments]
    for kind in types:
        if call.function in {"min", "max", "min_by", "max_by"}:
            _refuse_collation(query, kind, call.at, call.function)
    arrow_types = tuple(arrow_type(kind) for kind in types)
    try:
        made = recipe(call.function, arrow_types)
    except UnsupportedAggregateError as error:
        raise QueryError(str(error), text=query.text, at=call.at - query.at, length=len(call.function)) from None
    return BoundCall(call, arrow_types, made, arrow_type(stream._calls[call].dataType))


def _explain_call(stream: Stream, query: Query, call: Call) -> None:
    try:
        stream.empty.agg(F.expr(call_text(call)))
    except SPARK_ERRORS as error:
        raise _refused(query, error) from None


def _check_key(stream: Stream, query: Query, key: Expression) -> None:
    if key not in stream._fields:
        try:
            stream.empty.select(F.expr(key.sql))
        except SPARK_ERRORS as error:
            raise _refused(query, error) from None
    _refuse_collation(query, stream._fields[key].dataType, key.at, "GROUP BY")


def _refuse_collation(query: Query, kind: DataType, at: int, what: str) -> None:
    if isinstance(kind, StringType) and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        raise QueryError(
            f"{what} over a string with collation {kind.collation} is not supported yet",
            text=query.text,
            at=at - query.at,
            hint="write collate(..., 'UTF8_BINARY') around it",
        )


def _refused(query: Query, error: Exception) -> QueryError:
    """Spark's own words, with the caret under the place that Spark means."""
    if not isinstance(error, PySparkException):
        return QueryError(f"Spark refuses it: {fault(error)}", text=query.text, query=query.name)
    message = error.getMessage() if error.getCondition() else str(error)
    contexts = error.getQueryContext() if isinstance(error, AnalysisException | ParseException) else []
    fragment = next((context.fragment() for context in contexts), "")
    at = query.text.find(fragment) if fragment else -1
    first_line = message.split("\n== SQL")[0].split(" SQLSTATE:")[0].strip()
    return QueryError(
        f"Spark refuses it: {first_line}",
        text=query.text,
        at=at if at >= 0 else None,
        length=len(fragment),
        query=query.name,
    )


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a Spark type, zoned timestamps in UTC."""
    return to_arrow_type(kind, timezone="UTC")
