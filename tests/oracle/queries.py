"""Random queries over a stream: the text that Weft is given, and what Spark is asked to judge it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from oracle.aggregates import Aggregated, AggregateWriter
from oracle.data import DAY, HOUR, INTEGERS, MINUTE, SECOND, Stream
from oracle.expressions import Scalar, ScalarWriter

UNITS = (
    ("week", 7 * DAY),
    ("day", DAY),
    ("hour", HOUR),
    ("minute", MINUTE),
    ("second", SECOND),
    ("millisecond", 1000),
    ("microsecond", 1),
)
MOST_EXPANDED = 4_000
"""Rows times windows a row: Spark copies each row into each of its windows."""


@dataclass(frozen=True, slots=True)
class Judged:
    """How one column of the answer is compared."""

    tolerance: int | None = None
    """The column of the oracle's rows that holds the largest difference allowed."""
    ties: int | None = None
    """The column of the oracle's rows that lists the candidates."""
    largest: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One query: as it is registered with Weft, as Spark names and types it, as Spark answers it."""

    name: str
    select: str
    """The SELECT as Spark runs it: its schema is the answer's schema."""
    statement: str
    """What Weft is given."""
    oracle: str
    """Spark's SELECT for the rows: the same, with columns that judge them behind."""
    judged: tuple[Judged, ...]
    keep: int | None = None
    """The oracle's column that says whether HAVING lets a row through; NULL there if too close to call."""


@dataclass(slots=True)
class _Parts:
    """A query while it is being put together."""

    window: str
    keys: list[str] = field(default_factory=list)
    outputs: list[Aggregated] = field(default_factory=list)
    aliases: list[str | None] = field(default_factory=list)
    where: str | None = None
    group_by: str = ""
    having: str | None = None
    close_call: str | None = None
    bracket: str | None = None
    """The window in the manner of CQL, which adds the columns window_start and window_end at the end."""

    def add(self, output: Aggregated | str, alias: str | None = None) -> None:
        self.outputs.append(output if isinstance(output, Aggregated) else Aggregated(output, ""))
        self.aliases.append(alias)


def interval(microseconds: int, rnd: random.Random) -> str:
    """A length of time as people write it: in one unit or in several.

    >>> interval(5_400_000_000, random.Random(5))
    '1 hour 30 minutes'
    """
    dividing = [(unit, size) for unit, size in UNITS if microseconds % size == 0]
    if rnd.random() < 0.4:
        unit, size = rnd.choice(dividing[:3])
        count = microseconds // size
        return f"{count} {unit}" if abs(count) == 1 or rnd.random() < 0.2 else f"{count} {unit}s"
    parts, sign, rest = [], -1 if microseconds < 0 else 1, abs(microseconds)
    for unit, size in UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{sign * count} {unit}{'s' if count != 1 else ''}")
    return " ".join(parts) or "0 seconds"


def cql_interval(microseconds: int) -> str:
    """A length of time as CQL writes it.

    >>> cql_interval(90_000_000), cql_interval(7_200_000_000)
    ('90 sec', '2 h')
    """
    short = {"hour": "h", "minute": "min", "second": "sec", "millisecond": "ms", "microsecond": "us"}
    unit, size = next((unit, size) for unit, size in UNITS if microseconds % size == 0)
    return f"{microseconds // size} {short.get(unit, unit)}"


class QueryWriter:
    """Writes random queries over one stream."""

    def __init__(self, rnd: random.Random, stream: Stream, span: int, ansi: bool = True) -> None:
        self.rnd = rnd
        self.stream = stream
        self.scalars = ScalarWriter(rnd, stream, ansi)
        self.aggregates = AggregateWriter(self.scalars)
        grains = [size * count for _, size in UNITS for count in (1, 5, 10, 15)]
        self.grain = min(grains, key=lambda grain: abs(grain * 60 - span))
        # queries that ask over the same predicates, keys and arguments are what sharing is about
        self.predicates = [self.scalars.predicate() for _ in range(rnd.randint(1, 8))]
        self.keys = [self.scalars.key() for _ in range(rnd.randint(1, 5))]

    def window(self) -> tuple[int, int, int]:
        """Range, slide and start in microseconds: round or odd, shorter or longer than the data."""
        rnd, grain = self.rnd, self.grain
        slide = grain * rnd.choice((1, 1, 2, 3, 4, 5, 6, 10, 12, 30, 60, 100, 1000))
        if rnd.random() < 0.2:
            slide = max(1, int(grain * rnd.uniform(0.2, 40)))
        most = max(1, min(40, MOST_EXPANDED // max(1, self.stream.rows)))
        overlap = rnd.choice([n for n in (1, 1, 2, 3, 5, 8, 12, 40) if n <= most])
        range_ = slide * overlap
        if rnd.random() < 0.3:
            range_ += self.part_of(slide)
        start = rnd.choice((0, 0, 0, 0, slide // 2, self.part_of(slide), -self.part_of(slide)))
        return range_, slide, start

    def part_of(self, slide: int) -> int:
        """Less than a slide: a number of grains as a person would write, or any number of microseconds."""
        part = self.rnd.randrange(slide)
        return part if self.scalars.chance(0.3) else part // self.grain * self.grain

    def window_call(self, range_: int, slide: int, start: int) -> str:
        """The call of ``window``, with as few arguments as will do, or all."""
        arguments = [f"'{interval(range_, self.rnd)}'"]
        if slide != range_ or start or self.scalars.chance(0.2):
            arguments.append(f"'{interval(slide, self.rnd)}'")
        if start or (len(arguments) == 2 and self.scalars.chance(0.1)):
            arguments.append(f"'{interval(start, self.rnd)}'")
        function = self.rnd.choice(("window", "window", "WINDOW"))
        return f"{function}({self.scalars.name(self.scalars.event_time)}, {', '.join(arguments)})"

    def query(self, name: str) -> Asked:
        """One query of any of the supported forms."""
        range_, slide, start = self.window()
        parts = _Parts(self.window_call(range_, slide, start))
        keys = self.rnd.sample(self.keys, min(len(self.keys), self.rnd.choice((0, 1, 1, 1, 2, 3))))
        forms = (self.plain, self.plain, self.plain, self.by_alias, self.by_ordinal, self.by_all)
        if start == 0 and self.scalars.chance(0.15):
            forms = (self.cql,)
            parts.bracket = f"[WINDOW {cql_interval(range_)} SLIDE {cql_interval(slide)}]"
        form = self.rnd.choice(forms)
        form(parts, keys)
        if form != self.by_all and self.scalars.chance(0.3):
            parts.add(self.shaped(parts, keys, form), self.fresh_alias(parts) if self.scalars.chance(0.5) else None)
        for _ in range(self.rnd.choice((1, 1, 2, 3, 5))):
            alias = self.fresh_alias(parts) if self.scalars.chance(0.6) else None
            parts.add(self.aggregates.around(), alias)
        if self.scalars.chance(0.1):
            parts.add("'fixed'", self.fresh_alias(parts))
        if self.scalars.chance(0.5):
            shared = self.scalars.chance(0.7)
            parts.where = self.rnd.choice(self.predicates) if shared else self.scalars.predicate()
        if self.scalars.chance(0.25):
            self.having(parts)
        if parts.bracket:
            parts.add("window.start", "window_start")
            parts.add("window.end", "window_end")
        return self.asked(name, parts)

    def shaped(self, parts: _Parts, keys: list[Scalar], form: Callable[..., None]) -> Aggregated:
        """Keys, the window and aggregates inside of functions that take names from them, or show these."""
        values = {key.sql.rpartition(".")[2].strip("`").lower(): key.sql for key in keys if self.scalars.chance(0.8)}
        if form == self.plain:
            values |= self.rnd.choice(({}, {"window": "window"}, {"start": "window.start"}, {"col": parts.window}))
        elif form == self.by_alias:
            values = {alias.strip("`").lower(): alias for alias in parts.aliases if alias}
        for number in range(self.rnd.choice((0, 1, 1, 2))):
            values[f"a{number}"] = self.exact_aggregate()
        renamed = [f"{sql} AS f{n}" if self.scalars.chance(0.2) else sql for n, sql in enumerate(values.values())]
        self.rnd.shuffle(renamed)
        inside = ", ".join(renamed or ["count(*)"])
        bare = ", ".join(values.values() or ["count(*)"])
        texts = [
            f"struct({inside})",
            f"to_json(struct({inside}))",
            f"to_json(struct({inside}))",
            # with an aggregate: Spark's optimizer trips over a select list that it can fold into a constant
            f"concat(typeof(struct({inside})), count(*))",
            f"concat(typeof(({bare}, 1)), count(*))",
            f"to_json(array(struct({inside}), NULL))",
            f"transform(array(1, 2), x -> to_json(struct(x, {inside})))",
            f"map('k', struct({inside}))['k']",
            f"concat(typeof(arrays_zip({', '.join(f'array({sql})' for sql in values.values())})), count(*))",
            f"named_struct('k', ({bare}, 0)).k",
        ]
        if parts.window in values.values():  # no call of window is resolved inside of a lambda
            texts = [text for text in texts if not text.startswith("transform(")]
        return Aggregated(self.rnd.choice(texts), "?")

    def exact_aggregate(self) -> str:
        """An aggregate with one right answer."""
        while True:
            made = self.aggregates.aggregate()
            if made.exact and made.oracle is None:
                return made.sql

    def fresh_alias(self, parts: _Parts) -> str:
        """An alias that is no column's name."""
        number = len(parts.outputs)
        return self.rnd.choice((f"c{number}", f"Total{number}", f"agg_{number}", f"`the value {number}`"))

    def plain(self, parts: _Parts, keys: list[Scalar]) -> None:
        """GROUP BY window(...), keys; any part of them selected in any manner."""
        groups = [parts.window, *(key.sql for key in keys)]
        self.rnd.shuffle(groups)
        parts.group_by = ", ".join(groups)
        for sql, alias in self.rnd.choice(
            (
                (),
                (("window", None),),
                (("window", "w"),),
                (("window.start", None), ("window.end", None)),
                (("window.start", "began"), ("window.end", "ended")),
                (("window.end", "ended"),),
                ((parts.window, None),),
                ((f"{parts.window}.start", "began"),),
                (("date_format(window.start, 'yyyy-MM-dd HH:mm:ss')", "began"),),
            )
        ):
            parts.add(sql, alias)
        for key in keys:
            if self.scalars.chance(0.8):
                parts.add(key.sql, self.fresh_alias(parts) if self.scalars.chance(0.4) else None)
            elif key.type == "string":
                parts.add(f"concat({key.sql}, '!')", self.fresh_alias(parts) if self.scalars.chance(0.5) else None)
        parts.keys = [key.sql for key in keys]

    def by_alias(self, parts: _Parts, keys: list[Scalar]) -> None:
        """GROUP BY aliases of the select list."""
        parts.add(parts.window, "w")
        groups = ["w"]
        for key in keys:
            alias = self.fresh_alias(parts)
            parts.add(key.sql, alias)
            groups.append(self.rnd.choice((alias, alias.upper())))
        parts.group_by = ", ".join(groups)

    def by_ordinal(self, parts: _Parts, keys: list[Scalar]) -> None:
        """GROUP BY 1, 2, ..."""
        parts.add(parts.window, "w" if self.scalars.chance(0.5) else None)
        for key in keys:
            parts.add(key.sql, self.fresh_alias(parts) if self.scalars.chance(0.4) else None)
        ordinals = [str(i + 1) for i in range(len(parts.outputs))]
        self.rnd.shuffle(ordinals)
        parts.group_by = ", ".join(ordinals)

    def by_all(self, parts: _Parts, keys: list[Scalar]) -> None:
        """GROUP BY ALL."""
        self.by_ordinal(parts, keys)
        parts.group_by = "ALL"

    def cql(self, parts: _Parts, keys: list[Scalar]) -> None:
        """GROUP BY keys alone, as the window stands behind the stream."""
        parts.keys = [key.sql for key in keys]
        parts.group_by = ", ".join([parts.window, *parts.keys])
        for key in keys:
            parts.add(key.sql, self.fresh_alias(parts) if self.scalars.chance(0.3) else None)

    def having(self, parts: _Parts) -> None:
        """A condition on the answers; where a double decides, rows too close to call are marked."""
        if self.scalars.chance(0.15):  # Spark makes a condition of any value
            parts.having = self.rnd.choice((self.aggregates.count("").sql, "NULL", "count(*) - 1", "true", "1"))
            return
        made = self.aggregates.aggregate()
        if made.ties:
            made = self.aggregates.count("")
        operator = self.rnd.choice(("<", "<=", ">", ">="))
        if made.tolerance:
            threshold = self.rnd.choice(("0.37D", "1.01D", "17.77D"))
            parts.having = f"{made.sql} {operator} {threshold}"
            slack = f"coalesce({made.tolerance}, 0D)"
            parts.close_call = f"({slack}) < 0 OR abs(({made.sql}) - {threshold}) <= {slack}"
        elif made.type in INTEGERS:
            parts.having = f"{made.sql} {operator} {self.rnd.randint(0, 5)}"
            aliased = [
                alias
                for output, alias in zip(parts.outputs, parts.aliases, strict=True)
                if alias and output.exact and output.type == "bigint"
            ]
            if aliased and self.scalars.chance(0.4):
                parts.having = f"{aliased[0]} {operator} 2 OR {parts.having}"
        else:
            parts.having = f"{made.sql} IS NOT NULL"

    def asked(self, name: str, parts: _Parts) -> Asked:
        """The texts of a query that was put together."""
        judged, extra = [], []
        for output in parts.outputs:
            position = len(parts.outputs) + len(extra)
            if output.tolerance:
                extra.append(output.tolerance)
                judged.append(Judged(tolerance=position))
            elif output.ties:
                extra.append(output.ties)
                judged.append(Judged(ties=position, largest=output.largest))
            else:
                judged.append(Judged())
        keep, having = None, parts.having
        if parts.close_call:
            keep, having = len(parts.outputs) + len(extra), None
            extra.append(f"CASE WHEN {parts.close_call} THEN NULL ELSE coalesce({parts.having}, false) END")
        select = self.render([o.sql for o in parts.outputs], parts, parts.having)
        asked = [o.oracle or o.sql for o in parts.outputs]
        oracle = self.render(asked, parts, having, [f"{sql} AS `judge {i}`" for i, sql in enumerate(extra)])
        statement = self.named(name, self.render_cql(parts) if parts.bracket else select)
        return Asked(name, select, statement, oracle, tuple(judged), keep)

    def render(self, outputs: list[str], parts: _Parts, having: str | None, extra: list[str] | None = None) -> str:
        """The text of a SELECT."""
        columns = [
            sql if alias is None else f"{sql} AS {alias}" for sql, alias in zip(outputs, parts.aliases, strict=True)
        ]
        lines = [f"SELECT {', '.join([*columns, *(extra or [])])}", f"FROM {self.stream.name}"]
        if parts.where:
            lines.append(f"WHERE {parts.where}")
        lines.append(f"GROUP BY {parts.group_by}")
        if having:
            lines.append(f"HAVING {having}")
        return "\n".join(lines)

    def render_cql(self, parts: _Parts) -> str:
        """The same SELECT in the manner of the papers."""
        columns = [
            output.sql if alias is None else f"{output.sql} AS {alias}"
            for output, alias in zip(parts.outputs[:-2], parts.aliases[:-2], strict=True)
        ]
        lines = [f"SELECT {', '.join(columns)}", f"FROM {self.stream.name} {parts.bracket}"]
        if parts.where:
            lines.append(f"WHERE {parts.where}")
        if parts.keys:
            lines.append(f"GROUP BY {', '.join(parts.keys)}")
        if parts.having:
            lines.append(f"HAVING {parts.having}")
        return "\n".join(lines)

    def named(self, name: str, select: str) -> str:
        """A statement that gives a SELECT its name."""
        heads = (
            f"-- name: {name}\n",
            f"CREATE VIEW {name} AS\n",
            f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n",
            f"CREATE MATERIALIZED VIEW {name} AS\n",
        )
        return f"{self.rnd.choice(heads)}{select};\n"
