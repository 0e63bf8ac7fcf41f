"""Binding: Spark, not we, says what a query's names and types are. Empty frames only; no job runs here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NoReturn, TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException, PySparkTypeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from weft.algebra.aggregate import UnsupportedAggregateError
from weft.algebra.registry import AGGREGATES
from weft.errors import QueryError, WeftError
from weft.job.shapes import Shape
from weft.job.sink import QueryAnswers
from weft.plan.model import BoundCall, BoundQuery
from weft.query.limits import DEFAULT, Limits
from weft.query.model import AGGREGATE, KEY, WINDOW, Call, Expression, Output, Part, Query
from weft.query.placeholders import replace_placeholders
from weft.query.sizes import too_large
from weft.spark.failures import SPARK_ERRORS, fault

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
    _conditions: dict[Expression, StructField] = field(default_factory=dict)
    _checked: set[str] = field(default_factory=set)
    """Shapes whose outputs were compared with Spark's."""

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

    @cached_property
    def functions(self) -> frozenset[str]:
        """The functions that the user had registered in the session when the stream was named."""
        shown = self.session.sql("SHOW USER FUNCTIONS").collect()
        return frozenset(name.rpartition(".")[2].strip("`").lower() for (name,) in shown)

    @cached_property
    def is_ansi(self) -> bool:
        """Whether a value that does not fit its type is an error here."""
        return self.session.conf.get("spark.sql.ansi.enabled") == "true"

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

    @property
    def answers(self) -> QueryAnswers:
        """Its answers, without any files: the columns, and which of them tell window and group."""
        window, keys = self.query.identity
        return QueryAnswers(self.query.name, self.arrow_schema, (), window, keys)

    @property
    def shape(self) -> Shape:
        """All that a place for its answers is made for."""
        window, keys = self.query.identity
        columns = [[item.name, item.dataType.simpleString()] for item in self.schema]
        return {"columns": columns, "window": list(window), "keys": None if keys is None else list(keys)}


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
    function = AGGREGATES[call.function].by_event_time
    if function is None:
        return call
    (argument,) = call.arguments
    if call.ignore_nulls:
        time = Expression(
            f"CASE WHEN ({argument.canonical}) IS NOT NULL THEN {time.canonical} END",
            f"CASE WHEN ({argument.sql}) IS NOT NULL THEN {time.sql} END",
        )
    return replace(call, function=function, arguments=(argument, time), ignore_nulls=False)


def _learn(stream: Stream, queries: Sequence[Query]) -> None:
    """Types of everything at once, as an analysis of Spark costs milliseconds; what fails is looked at alone later."""
    expressions = {key for query in queries for key in query.keys}
    expressions |= {argument for query in queries for call in query.calls for argument in call.arguments}
    _learn_all(expressions - stream._fields.keys(), stream._fields, lambda e: F.expr(f"({e.sql})"), stream.empty.select)
    calls = {call for query in queries for call in query.calls} - stream._calls.keys()
    _learn_all(calls, stream._calls, lambda call: F.expr(call_text(call)), stream.empty.agg, "Aggregate")
    conditions = {condition for query in queries for _, condition in _conditions(query)} - stream._conditions.keys()
    _learn_all(conditions, stream._conditions, lambda e: F.expr(f"({e.sql})"), stream.empty.select)
    _learn_outputs(stream, queries)


def _conditions(query: Query) -> Iterator[tuple[str, Expression]]:
    """What a query asks of rows, and which clause asks it."""
    if query.where is not None:
        yield "WHERE", query.where
    for call in query.calls:
        if call.filter is not None:
            yield "FILTER", call.filter


def _learn_outputs(stream: Stream, queries: Sequence[Query]) -> None:
    """Types of select lists and HAVINGs, over one empty frame that has a column a key and a call."""
    texts = {_placed(stream, query, output.sql) for query in queries for output in query.outputs if not output.part}
    texts |= {_placed(stream, query, query.condition) for query in queries if query.condition}
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
    node: str = "Project",
) -> None:
    wanted = list(things)
    if not wanted:
        return
    try:
        frame = select(*(column(thing).alias(f"c{number}") for number, thing in enumerate(wanted)))
        learned = is_repeatable(frame, node)
    except SPARK_ERRORS:
        learned = False
    if learned:
        known.update(zip(wanted, frame.schema.fields, strict=True))
    elif len(wanted) > 1:
        for half in (wanted[: len(wanted) // 2], wanted[len(wanted) // 2 :]):
            _learn_all(half, known, column, select, node)


def is_repeatable(frame: DataFrame, node: str) -> bool:
    """Whether what is selected is the same each time, and a ``node`` of Spark's plan selects it.

    Functions that users registered may be random, or aggregates that nobody here knows.
    """
    plan = frame._jdf.queryExecution().analyzed()
    return bool(plan.deterministic()) and plan.nodeName() == node


def call_text(call: Call) -> str:
    """A call without its FILTER, as Spark SQL."""
    return AGGREGATES[call.function].spelled([argument.sql for argument in call.arguments])


def _bind_one(stream: Stream, query: Query) -> Bound:
    _check_event_time(stream, query)
    _check_conditions(stream, query)
    schema = _schema(stream, query)
    calls = tuple(_bind_call(stream, query, call) for call in query.calls)
    for key in query.keys:
        _check_key(stream, query, key)
    key_types = tuple(_arrow_type(query, stream._fields[key].dataType, key.at, "a key") for key in query.keys)
    _check_outputs(stream, query, schema)
    bound = BoundQuery(query, calls, key_types, stream.event_type, tuple(schema.names))
    return Bound(bound, schema, schema if bound.direct else _placeholders(stream, query))


def _check_outputs(stream: Stream, query: Query, schema: StructType) -> None:
    """Compare what is computed from placeholders with what Spark makes of the query's own text, field by field."""
    if query.shape in stream._checked:
        return
    frame: DataFrame | None = None
    for output, expected in zip(query.outputs, schema, strict=True):
        _arrow_type(query, expected.dataType, query.at, f"column {expected.name}")
        if output.part is not None:
            continue
        known = stream._outputs.get(_placed(stream, query, output.sql) or "")
        if known is None:
            frame = frame or stream.session.createDataFrame([], _placeholders(stream, query))
            known = _computed(query, frame, output.sql)
        if known.dataType.simpleString() != expected.dataType.simpleString():
            raise QueryError(
                f"column {expected.name} would be {known.dataType.simpleString()} here, and Spark's is "
                f"{expected.dataType.simpleString()}",
                text=query.text,
                hint="give names with AS inside of struct(...), or cast the column",
            )
    if query.condition is not None and _placed(stream, query, query.condition) not in stream._outputs:
        _computed(query, frame or stream.session.createDataFrame([], _placeholders(stream, query)), query.condition)
    stream._checked.add(query.shape)


def _computed(query: Query, frame: DataFrame, text: str) -> StructField:
    """The field that a text over placeholders gives; in other words than Spark's, who would tell of placeholders."""
    found: dict[str, StructField] = {}
    _learn_all([text], found, lambda text: F.expr(f"({text})"), frame.select)
    if text not in found:
        try:
            frame.selectExpr(f"({text})")
        except PySparkException:
            raise QueryError(
                "the select list or HAVING cannot be computed from keys, aggregates and the window alone",
                text=query.text,
                hint="select keys, the window, aggregates and functions of these",
            ) from None
        raise _changing(query, query.at)
    return found[text]


def _placeholders(stream: Stream, query: Query) -> StructType:
    """What a query's outputs are computed from; anything may be NULL, as it is in rows of other queries."""
    keys = [StructField(f"{KEY}{i}", _nullable(stream._fields[key].dataType)) for i, key in enumerate(query.keys)]
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


def _check_conditions(stream: Stream, query: Query) -> None:
    """Spark takes nothing but a condition in WHERE and FILTER; ours is evaluated as a part of other expressions."""
    for clause, condition in _conditions(query):
        if condition not in stream._conditions:
            _explain(query, condition.at, partial(stream.empty.selectExpr, f"({condition.sql})"))
        kind = stream._conditions[condition].dataType
        if not isinstance(kind, BooleanType):
            raise QueryError(
                f"{clause} has to be a condition, and this is of type {kind.simpleString()}",
                text=query.text,
                at=condition.at - query.at,
                length=len(condition.sql),
                hint="compare it with a value, or cast it to BOOLEAN",
            )


def _explain(query: Query, at: int, select: Callable[[], DataFrame]) -> NoReturn:
    """Say why an expression of a query could not be learned: in Spark's words, or as something that changes."""
    try:
        select()
    except SPARK_ERRORS as error:
        raise _refused(query, error) from None
    raise _changing(query, at)


def _changing(query: Query, at: int) -> QueryError:
    """An expression that Spark takes, but whose value is another each time, or of many rows."""
    return QueryError(
        "a function in it is random, or an aggregate of your own",
        text=query.text,
        at=at - query.at,
        hint="an answer has to be the same when it is computed again, by aggregates that can be merged",
    )


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
        return StructField(output.alias or "window", _window_type(stream), nullable=not query.window.tumbles)
    if output.part in {Part.WINDOW_START, Part.WINDOW_END}:
        return StructField(output.alias or output.part.value.removeprefix("window."), kind)
    if output.alias is None:
        return None
    if output.part is None:
        known = stream._outputs.get(_placed(stream, query, output.sql) or "")
        if known is not None and "struct<" in known.dataType.simpleString():
            return None  # names inside of it are Spark's to give
    elif output.part is Part.KEY:
        known = stream._fields.get(query.keys[output.index])
    else:
        known = stream._calls.get(query.calls[output.index])
    return StructField(output.alias, known.dataType, known.nullable) if known else None


def _is_condition(stream: Stream, query: Query) -> bool:
    """Whether the HAVING, if there is one, is known to be something that Spark makes a condition of."""
    return query.condition is None or _placed(stream, query, query.condition) in stream._outputs


def _ask_spark(stream: Stream, query: Query) -> StructType:
    try:
        return stream.session.sql(query.shape.replace("{event_time}", stream.event_time)).schema
    except SPARK_ERRORS as error:
        raise _refused(query, error) from None


def _bind_call(stream: Stream, query: Query, call: Call) -> BoundCall:
    if call not in stream._calls:
        _explain(query, call.at, lambda: stream.empty.agg(F.expr(call_text(call))))
    types = [stream._fields[argument].dataType for argument in call.arguments]
    for kind in types:
        if AGGREGATES[call.function].compares:
            _refuse_collation(query, kind, call.at, call.function)
    arrow_types = tuple(_arrow_type(query, kind, call.at, call.function) for kind in types)
    result = _arrow_type(query, stream._calls[call].dataType, call.at, call.function)
    try:
        made = AGGREGATES[call.function].kept(arrow_types, ansi=stream.is_ansi)
    except UnsupportedAggregateError as error:
        raise QueryError(str(error), text=query.text, at=call.at - query.at, length=len(call.function)) from None
    return BoundCall(call, arrow_types, made, result)


def _check_key(stream: Stream, query: Query, key: Expression) -> None:
    if key not in stream._fields:
        _explain(query, key.at, lambda: stream.empty.select(F.expr(f"({key.sql})")))
    kind = stream._fields[key].dataType
    _refuse_collation(query, kind, key.at, "GROUP BY")
    if "map<" in kind.simpleString():
        raise QueryError(
            f"GROUP BY over {kind.simpleString()} is not supported yet",
            text=query.text,
            at=key.at - query.at,
            length=len(key.sql),
            hint="group by its sorted entries: array_sort(map_entries(...))",
        )


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


def _arrow_type(query: Query, kind: DataType, at: int, what: str) -> pa.DataType:
    """The same, with the place in the query where a type stands that Arrow has not."""
    try:
        return arrow_type(kind)
    except PySparkTypeError:
        raise QueryError(
            f"{what} of type {kind.simpleString()} is not supported: Arrow, in which slices and answers travel, has "
            f"no such type",
            text=query.text,
            at=at - query.at,
            hint="cast it to STRING, or to a number: extract(YEAR FROM x) * 12 + extract(MONTH FROM x)",
        ) from None


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a Spark type, zoned timestamps in UTC; anything in it may be NULL, as in rows of others."""
    return to_arrow_type(_nullable(kind), timezone="UTC")


def _nullable(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType([StructField(item.name, _nullable(item.dataType)) for item in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    return MapType(_nullable(kind.keyType), _nullable(kind.valueType)) if isinstance(kind, MapType) else kind
