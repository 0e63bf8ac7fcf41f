"""Queries that ask for trouble, one of a kind, over the stream ``s(ts, k, v, x)``.

Those that need data for it are harmless until a row with ``v = 1000`` comes, the *trigger*.
"""

from __future__ import annotations

from dataclasses import dataclass

TRIGGER = 1000
WINDOW = "GROUP BY window(ts, '20 seconds', '10 seconds')"
DEEP = 3000


@dataclass(frozen=True)
class Kind:
    """A query and where it fails."""

    name: str
    stage: str
    """``parse``, ``bind``, ``size``, ``run``, ``merge``, ``select`` or ``none``, if it is answered after all."""
    text: str
    says: str
    """What the reason says, in lower case."""
    runs: bool = True
    """Whether it is worth a place in the short suite, where only some of those run that need data."""

    @property
    def sql(self) -> str:
        """The statement under its name."""
        return self.text if self.text.startswith("CREATE") else f"-- name: {self.name}\n{self.text}"


def select(what: str, rest: str = WINDOW) -> str:
    """A query of an aggregate, by window."""
    return f"SELECT window.start, {what} AS a FROM s {rest}"


def when(value: str, otherwise: str) -> str:
    """Harmless until the trigger comes."""
    return f"CASE WHEN v = {TRIGGER} THEN {value} ELSE {otherwise} END"


TEN = when("'ten'", "'10'")
BOOM = when("raise_error('boom')", "k")
PARSE = [
    Kind("syntax", "parse", "SELEC count(*) FROM s GROUP BY window(ts, '1 minute')", "selec"),
    Kind("unclosed", "parse", select("max('x)"), "never ends"),
    Kind("deep", "parse", select(f"sum({'(' * DEEP}v{')' * DEEP})"), "nested too deeply"),
    Kind("subquery", "parse", select("sum((SELECT 1))"), "quer"),
    Kind("over", "parse", select("sum(v) OVER ()"), "over"),
    Kind("drop_table", "parse", "DROP TABLE s", "drop"),
    Kind("no_window", "parse", "SELECT count(*) AS a FROM s GROUP BY k", "window"),
    Kind("zero_slide", "parse", select("count(*)", "GROUP BY window(ts, '10 seconds', '0 seconds')"), "0 seconds"),
    Kind("join", "parse", "SELECT count(*) AS a FROM s, s t GROUP BY window(ts, '1 minute')", ","),
    Kind("random", "parse", select("sum(rand())"), "rand"),
    Kind("now", "parse", select("max(current_timestamp())"), "current_timestamp"),
    Kind("generator", "parse", select("sum(explode(array(v)))"), "explode"),
    Kind("long_name", "parse", f"CREATE VIEW {'n' * 300} AS {select('count(*)')}", "300 bytes"),
    Kind("long_japanese_name", "parse", f"CREATE VIEW `{'日' * 30}` AS {select('count(*)')}", "270 bytes"),
]
SIZE = [
    Kind("repeat", "size", select("max(repeat('x', 500000000))"), "500,000,000 bytes"),
    Kind("repeat_product", "size", select("max(repeat(repeat(k, 30000), 30000))"), "900,000,000 bytes"),
    Kind("rpad", "size", select("max(rpad(k, 1000000000, 'x'))"), "1,000,000,000 bytes"),
    Kind("space", "size", select("max(space(shiftleft(1, 29)))"), "536,870,912 bytes"),
    Kind("sequence", "size", select("sum(size(sequence(1, 100000000)))"), "800,000,000 bytes"),
    Kind("array_repeat", "size", select("sum(size(array_repeat(v, 5 * 100000000)))"), "4,000,000,000 bytes"),
    Kind("format_width", "size", select("max(format_string('%500000000d', v))"), "500,000,000 bytes"),
    Kind("repeat_in_where", "size", select("count(*)", f"WHERE repeat('x', 500000000) > k {WINDOW}"), "bytes"),
    Kind("repeat_in_list", "size", select("repeat('x', 500000000)"), "bytes"),
]
BIND = [
    Kind("no_column", "bind", select("sum(nosuch)"), "nosuch"),
    Kind("no_stream", "bind", select("count(*)").replace("FROM s", "FROM nosuch"), "nosuch"),
    Kind("wrong_type", "bind", select("sum(array(v))"), "sum"),
    Kind("map_key", "bind", f"SELECT map(k, v) AS m, count(*) AS a FROM s {WINDOW}, map(k, v)", "map"),
    Kind("other_time", "bind", select("count(*)", "GROUP BY window(x, '10 seconds')"), "event time"),
    Kind("too_long", "bind", select(f"sum({' + '.join(['v'] * 5000)})"), "complex"),
    Kind("nested_calls", "bind", select(f"sum({'abs(' * 1500}v{')' * 1500})"), "deep"),
    Kind("no_function", "bind", select("sum(nosuchfunction(v))"), "nosuchfunction"),
]
RUN = [
    Kind("divide", "run", select(f"sum(1 / (v - {TRIGGER}))"), "zero"),
    Kind("divide_where", "run", select("count(*)", f"WHERE 1 / (v - {TRIGGER}) < 2 {WINDOW}"), "zero", runs=False),
    Kind(
        "divide_key",
        "run",
        f"SELECT 1 / (v - {TRIGGER}) AS g, count(*) AS a FROM s {WINDOW}, 1 / (v - {TRIGGER})",
        "zero",
        runs=False,
    ),
    Kind("divide_filter", "run", select(f"count(*) FILTER (WHERE 1 / (v - {TRIGGER}) < 2)"), "zero", runs=False),
    Kind("cast", "run", select(f"sum(CAST({TEN} AS INT))"), "cast", runs=False),
    Kind("index", "run", select(f"sum(array(v)[{when('7', '0')}])"), "index", runs=False),
    Kind("raised", "run", select(f"max({BOOM})"), "boom", runs=False),
    Kind("decimal", "run", select(f"sum(CAST({when('1e30', '1')} AS DECIMAL(10, 2)))"), "decimal", runs=False),
    Kind("memory", "run", select(f"max(repeat(k, {when('700000000', '1')}))"), "memory"),
    Kind("memory_array", "run", select(f"sum(size(sequence(1, {when('600000000', '1')})))"), "memory", runs=False),
    Kind("long_value", "run", select(f"max(repeat(k, {when('2000000', '1')}))"), "limits.value_bytes"),
    Kind(
        "long_key",
        "run",
        f"SELECT repeat(k, {when('2000000', '1')}) AS g, count(*) AS a FROM s {WINDOW}, repeat(k, "
        f"{when('2000000', '1')})",
        "limits.value_bytes",
        runs=False,
    ),
    Kind("answers", "run", select("count(*)", "GROUP BY window(ts, '1 second', '1 microsecond')"), "limits.answers"),
    Kind("keys", "run", f"SELECT v * 1000 + hash(ts) AS g, count(*) AS a FROM s {WINDOW}, v * 1000 + hash(ts)", "keys"),
    Kind("overflow", "merge", select(f"sum({when('9223372036854775807', 'v')})"), "does not fit"),
]
SELECT = [
    Kind("divide_answers", "select", select("1 / (max(v) - 1000)"), "zero"),
    Kind("raise_answers", "select", select("if(max(v) = 1000, raise_error('boom'), 1)"), "boom", runs=False),
    Kind("having", "select", f"{select('count(*)')} HAVING 1 / (max(v) - 1000) < 2", "zero", runs=False),
    Kind("cast_answers", "select", select("CAST(max(if(v = 1000, 'ten', '10')) AS INT)"), "cast", runs=False),
    Kind("memory_answers", "select", select("repeat(max(k), if(max(v) = 1000, 700000000, 1))"), "memory", runs=False),
]
ANSWERED = [
    Kind("odd_name", "none", f"CREATE VIEW `../x y` AS {select('count(*)')}", ""),
    Kind("long_column", "none", f"SELECT window.start, count(*) AS {'c' * 300} FROM s {WINDOW}", ""),
    Kind("nothing", "none", select("count(*)", f"WHERE v > 100000 {WINDOW}"), ""),
]
KINDS = [*PARSE, *SIZE, *BIND, *RUN, *SELECT, *ANSWERED]


def good_queries(count: int) -> dict[str, str]:
    """Queries of people who mean well, of many shapes."""
    aggregates = ("sum(v)", "count(*)", "min(x)", "max(k)", "avg(v)", "first(k)", "sum(v) - min(v)", "stddev(x)")
    windows = ("'20 seconds', '10 seconds'", "'10 seconds'", "'40 seconds', '20 seconds'", "'30 seconds', '10 seconds'")
    keys = ("", ", k", ", v % 3", ", k, v % 2")
    wheres = ("", "WHERE v > 20", "WHERE k = 'a'", "WHERE x < 0.5")
    found = {}
    for number in range(count):
        key = keys[number // 4 % 4]
        shown = "".join(f", {part} AS g{at}" for at, part in enumerate(key.removeprefix(", ").split(", ")) if part)
        found[f"good{number}"] = (
            f"SELECT window.start, {aggregates[number % 8]} AS a{shown} FROM s {wheres[number // 3 % 4]} "
            f"GROUP BY window(ts, {windows[number % 4]}){key}"
        )
    return found
