"""Kernels cut rows into the slices of a naive grouping in plain Python. No Spark: words of predicates are drawn."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.algebra.aggregates.counts import counted
from weft.algebra.lifting import NotLiftedError, lift_of
from weft.algebra.registry import AGGREGATES as REGISTRY
from weft.optimize.planner import PlanRequest
from weft.optimize.planner import plan as planned
from weft.plan.asking import argument_column
from weft.plan.model import BITS, BoundCall, BoundQuery, Grouping, Plan, Predicate
from weft.query.sparksql import parse_file
from weft.slicing.progression import Progression
from weft.step.cutting import BAD, TIME, WORD, Counts, Cutter, Cutting, unlifted
from weft.step.cutting_kernels import Edges, Numbered, combined, numbered
from weft.step.retained import partial_columns

TYPES = {
    "k": pa.string(),
    "f": pa.float64(),
    "l": pa.list_(pa.struct([("z", pa.float32())])),
    "i": pa.int32(),
    "v": pa.int64(),
    "x": pa.float64(),
    "d": pa.decimal128(20, 2),
    "n": pa.decimal128(5, 2),
    "s": pa.string(),
    "b": pa.bool_(),
}
WIDE = {"w": pa.decimal128(38, 2)}
SECOND = 1_000_000
CALLS = (
    *("count(*)", "count(v)", "count(s)", "count_if(b)", "sum(i)", "sum(v)", "sum(x)", "sum(d)", "sum(n)"),
    *("avg(v)", "min(x)", "max(x)", "min(s)", "max(s)", "min(d)", "max(n)", "min(b)", "max(v)", "bit_xor(i)"),
    *("bool_and(b)", "bool_or(b)", "var_pop(x)", "kurtosis(v)", "skewness(n)", "corr(x, v)", "covar_pop(i, x)"),
    *("corr(x, x)", "min_by(s, v)", "max_by(x, k)", "max_by(v, d)"),
)
CONDITIONS = tuple(f"v > {number}" for number in range(5))


def bound(name: str, text: str) -> BoundQuery:
    """A query with types, without Spark."""
    kinds = TYPES | WIDE
    (query,) = parse_file(f"-- name: {name}\n{text}", {"t": ["ts", *kinds]})
    calls = []
    for call in query.calls:
        types = tuple(kinds[argument.sql] for argument in call.arguments)
        calls.append(BoundCall(call, types, REGISTRY[call.function].kept(types), types[0] if types else pa.int64()))
    keys = tuple(kinds[key.sql] for key in query.keys)
    instant = pa.timestamp("us", "UTC")
    return BoundQuery(query, tuple(calls), keys, instant, tuple(f"c{n}" for n in range(len(query.outputs))))


def some_query(rnd: random.Random, name: str) -> BoundQuery:
    keys = rnd.sample(("k", "f", "l", "i"), rnd.choice((0, 1, 1, 2)))
    slide = rnd.choice((2, 3, 5, 10))
    length = rnd.choice((slide, 3 * slide, 4 * slide + 1))
    calls = [
        text + (f" FILTER (WHERE {rnd.choice(CONDITIONS)})" if rnd.random() < 0.3 else "")
        for text in rnd.sample(CALLS, rnd.randint(1, 5))
    ]
    outputs = ", ".join(["window.start", *keys, *(f"{text} AS a{n}" for n, text in enumerate(calls))])
    groups = ", ".join([f"window(ts, '{length} seconds', '{slide} seconds')", *keys])
    where = f"WHERE {rnd.choice(CONDITIONS)}" if rnd.random() < 0.5 else ""
    return bound(name, f"SELECT {outputs} FROM t {where} GROUP BY {groups}")


def plan_of(queries: list[BoundQuery]) -> Plan:
    return planned(PlanRequest("t", "ts", queries)).plan


def some_plan(rnd: random.Random) -> Plan:
    plan = plan_of([some_query(rnd, f"q{number}") for number in range(rnd.randint(1, 6))])
    groupings = [replace(grouping, conditional=rnd.random() < 0.4) for grouping in plan.groupings]
    return replace(plan, groupings=tuple(groupings), ordered=rnd.random() < 0.3)


def some_row(rnd: random.Random) -> dict[str, Any]:
    large = rnd.choice((1, 1, 2**40, 2**61))
    row = {
        "k": rnd.choice(("a", "b", "", "ä")),
        "f": rnd.choice((0.0, -0.0, math.nan, 2.5)),
        "l": rnd.choice(([], [{"z": -0.0}], [{"z": 0.0}, {"z": None}], [None], [{"z": 0.0}])),
        "i": rnd.randint(-3, 3),
        "v": rnd.randint(-3, 3) * large,
        "x": rnd.choice((rnd.gauss(0, 1), rnd.gauss(50, 1), -0.0, 1e6)),
        "d": Decimal(rnd.randint(-(10**19), 10**19)) / 100,
        "n": Decimal(rnd.randint(-(10**4), 10**4)) / 100,
        "s": rnd.choice(("", "z", "ä", "b")),
        "b": rnd.random() < 0.5,
    }
    row = {name: None if rnd.random() < 0.15 else value for name, value in row.items()}
    return row | {TIME: None if rnd.random() < 0.05 else rnd.randint(-30 * SECOND, 30 * SECOND)}


def projected(plan: Plan, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows as Spark projects them."""
    columns = {TIME: pa.array([row[TIME] for row in rows], pa.int64())}
    for word in range(-(-len(plan.predicates) // BITS)):
        columns[f"{WORD}{word}"] = pa.array([row["word"] for row in rows], pa.int64())
    for grouping in plan.groupings:
        for key, name in zip(grouping.keys, grouping.key_columns, strict=True):
            columns[name] = pa.array([row[key.sql] for row in rows], TYPES[key.sql])
        for partial, _ in partial_columns(grouping):
            for argument in partial.arguments:
                values = [row[argument.sql] for row in rows]
                name = argument_column(argument, summed=False)
                columns[name] = pa.array(values, TYPES[argument.sql])
    for name, text in Cutter(plan).inputs.items():
        if text.startswith("nvl2("):
            values = columns[text[len("nvl2(") :].partition(",")[0]]
            columns[name] = pa.array([None if value is None else True for value in values.to_pylist()], pa.bool_())
    return pa.table(columns)


def plain_key(value: Any) -> Any:
    """A key that can be hashed, equal where Spark's groups are."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(map(plain_key, value))
    return tuple(map(plain_key, value.values())) if isinstance(value, dict) else value


def last_edge(time: int, progressions: Sequence[Progression]) -> int:
    return max((time - one.offset) // one.step * one.step + one.offset for one in progressions)


def naive(plan: Plan, grouping: Grouping, rows: Sequence[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Partials by slice, keys and signature."""

    def holds(predicate: Predicate, row: dict[str, Any]) -> bool:
        return predicate.everything or bool(row["word"] >> plan.predicates.index(predicate) & 1)

    groups = defaultdict(list)
    for row in rows:
        if row[TIME] is None or not any(holds(query.predicate, row) for query in grouping.queries):
            continue
        words = [sum(holds(one, row) << bit for bit, one in enumerate(word)) for _, word in grouping.signatures]
        keys = [plain_key(row[key.sql]) for key in grouping.keys]
        groups[last_edge(row[TIME], grouping.progressions), *keys, *words].append(row)
    found: dict[Any, dict[str, Any]] = {}
    for identity, own in groups.items():
        found[identity] = {}
        for query in grouping.queries if grouping.conditional else ():
            if not query.predicate.everything:
                found[identity][query.predicate.name] = sum(holds(query.predicate, row) for row in own)
        for (partial, condition), names in partial_columns(grouping).items():
            seen = [row for row in own if condition is None or holds(condition, row)]
            arguments = [[row[argument.sql] for row in seen] for argument in partial.arguments]
            for template, name in zip(partial.measure.columns, names, strict=True):
                found[identity][name] = evaluated(template, arguments, len(seen))
    return found


def evaluated(template: str, arguments: list[list[Any]], length: int) -> Any:
    """What Spark's aggregate gives."""
    if template == "count(1)":
        return length
    function = template.partition("(")[0]
    if len(arguments) == 2:
        return of_pairs(template, list(zip(*arguments, strict=True)))
    values = [value for value in arguments[0] if value is not None]
    if function in {"count", "count_if"}:
        return sum(value is not False for value in values) if function == "count_if" else len(values)
    return FUNCTIONS[function](template, values) if values else None


def of_pairs(template: str, pairs: list[tuple[Any, Any]]) -> Any:
    if template.startswith(("min(", "max(")):
        ranked = [
            ((order, value is not None, 0 if value is None else value), value)
            for value, order in pairs
            if order is not None
        ]
        best = (min if template.startswith("min(") else max)(ranked, key=lambda one: tied(one[0]), default=None)
        return None if best is None else {"o": best[0][0], "v": best[1]}
    both = [(float(x), float(y)) for x, y in pairs if x is not None and y is not None]
    if template.startswith("regr_count"):
        return len(both)
    if not both:
        return None
    xs, ys = zip(*both, strict=True)
    if template.startswith("sum("):
        return math.fsum(xs if "double({0})" in template else ys)
    one, other = {"regr_sxy": (xs, ys), "regr_sxx": (xs, xs), "regr_syy": (ys, ys)}[template.partition("(")[0]]
    return math.fsum(a * b for a, b in zip(deviations(one), deviations(other), strict=True))


def tied(rank: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strings by their bytes."""
    return tuple(part.encode() if isinstance(part, str) else part for part in rank)


def deviations(values: Sequence[Any]) -> list[float]:
    floats = [float(value) for value in values]
    mean = math.fsum(floats) / len(floats)
    return [value - mean for value in floats]


def moment(order: int) -> Callable[[str, list[Any]], float | None]:
    """A standardised moment, the second as it is."""

    def of(_: str, values: list[Any]) -> float | None:
        around = deviations(values)
        spread = math.fsum(value**2 for value in around) / len(values)
        if order == 2:
            return spread
        if spread <= 1e-12 * max(float(value) ** 2 for value in values):
            return None  # not compared
        return math.fsum(value**order for value in around) / len(values) / spread ** (order / 2) - 3 * (order == 4)

    return of


def summed(template: str, values: list[Any]) -> Any:
    if "shiftright" in template:
        return sum(values)
    if "&" in template:
        return 0
    if "double" in template or isinstance(values[0], float):
        return math.fsum(map(float, values))
    return sum(values)


def xor(_: str, values: list[int]) -> int:
    found = 0
    for value in values:
        found ^= value
    return found


def least(_: str, values: list[Any]) -> Any:
    return min(values, key=lambda value: value.encode() if isinstance(value, str) else value)


def largest(_: str, values: list[Any]) -> Any:
    return max(values, key=lambda value: value.encode() if isinstance(value, str) else value)


FUNCTIONS: dict[str, Callable[[str, list[Any]], Any]] = {
    "sum": summed,
    "min": least,
    "max": largest,
    "bool_and": lambda _, values: all(values),
    "bool_or": lambda _, values: any(values),
    "bit_xor": xor,
    "var_pop": moment(2),
    "skewness": moment(3),
    "kurtosis": moment(4),
}


def read(grouping: Grouping, table: pa.Table) -> dict[Any, dict[str, Any]]:
    """Slices as the naive grouping gives them; a sum in two limbs as one number."""
    names = [grouping.slice_column, *grouping.key_columns, *(name for name, _ in grouping.signatures)]
    limbs = [
        own for (partial, _), own in partial_columns(grouping).items() if "shiftright" in partial.measure.columns[0]
    ]
    found = {}
    for row in table.to_pylist():
        identity = tuple(plain_key(row.pop(name)) for name in names)
        for high, low in limbs:
            row[high], row[low] = (None, None) if row[high] is None else ((row[high] << 32) + row[low], 0)
        assert identity not in found
        found[identity] = row
    return found


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-3 if abs(theirs) > 1e3 else 1e-6)
    if ours is not None and theirs is None:
        return isinstance(ours, float)  # a moment that is not compared
    return bool(ours == theirs) or (isinstance(ours, float) and math.isnan(ours))


@given(st.integers(0, 2**32), st.sampled_from((1, 7, 1000)))
def test_slices_are_those_of_a_naive_grouping(seed: int, at_once: int) -> None:
    rnd = random.Random(seed)
    plan = some_plan(rnd)
    rows = [some_row(rnd) | {"word": rnd.getrandbits(len(plan.predicates))} for _ in range(rnd.randint(0, 60))]
    table = projected(plan, rows)
    cutter = Cutter(plan)
    cutting = Cutting(cutter, at_once, held=rnd.choice((0, 50, 10_000)))
    found: dict[int, list[pa.Table]] = defaultdict(list)
    for number, slices in cutting.slices(table.to_batches(max_chunksize=max(at_once, 1))):
        found[number].append(slices)
    assert cutting.counts == Counts.of(table)
    for number, grouping in enumerate(plan.groupings):
        expected = naive(plan, grouping, rows)
        ours = read(grouping, cutter.merged(number, found[number])) if number in found else {}
        assert ours.keys() == expected.keys()
        for identity, partials in expected.items():
            assert ours[identity].keys() == partials.keys()
            for name, value in partials.items():
                if at_once < 1000 and isinstance(value, dict):  # ties are settled within a block only
                    assert ours[identity][name]["o"] == value["o"]
                else:
                    assert same(ours[identity][name], value), (identity, name, ours[identity][name], value)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 39)), min_size=1, max_size=6),
    st.lists(st.integers(-(2**50), 2**50) | st.integers(-100, 100), max_size=30),
)
def test_slices_start_at_the_last_edge(edges: list[tuple[int, int]], times: list[int]) -> None:
    progressions = [Progression(step, offset % step) for step, offset in edges]
    starts = Edges.of(progressions).starts(pa.array(times, pa.int64()).to_numpy(zero_copy_only=False))
    assert starts.tolist() == [last_edge(time, progressions) for time in times]


@given(st.lists(st.integers(-1, 2**62) | st.integers(-1, 30)), st.booleans())
def test_codes_are_numbered_as_they_come(codes: list[int], by_table: bool) -> None:
    room = max(codes, default=0) + 1 if by_table else None
    groups, firsts = numbered(pa.array(codes, pa.int64()).to_numpy(zero_copy_only=False), room)
    distinct = list(dict.fromkeys(code for code in codes if code >= 0))
    assert groups.tolist() == [distinct.index(code) if code >= 0 else -1 for code in codes]
    assert [codes[row] for row in firsts] == distinct


def test_a_table_of_groups_grows() -> None:
    codes = pa.array([(number * 2_654_435_761) % 2**61 for number in range(100_000)] * 2).to_numpy()
    groups, firsts = numbered(codes)
    assert groups.tolist() == [*range(100_000)] * 2 and firsts.tolist() == [*range(100_000)]


def test_more_combinations_than_numbers_are_combined() -> None:
    values = pa.array([5, 2**40, 5, 7]).to_numpy()
    parts = [Numbered(values, 2**41), Numbered(values[::-1].copy(), 2**41), Numbered(values, 2**41)]
    groups, _ = numbered(combined(parts, 4).numbers)
    assert groups.tolist() == [0, 1, 2, 3]
    again, _ = numbered(combined([*parts, Numbered(values * 0, 2**41)], 4).numbers)
    assert again.tolist() == [0, 1, 2, 3]


def test_rows_that_cannot_be_read_are_counted_and_left_out() -> None:
    plan = plan_of([bound("q", "SELECT window, count(*) AS n FROM t GROUP BY window(ts, '1 second')")])
    rows = pa.table({TIME: pa.array([None, None, 5, 3], pa.int64()), BAD: [True, False, False, False]})
    cut = Cutter(plan).cut(rows)
    assert cut.counts == Counts(rows=3, without_time=1, bad=1, smallest=3, largest=5)
    assert len(cut.tables[0]) == 1 and 2 in cut.tables[0].to_pylist()[0].values()


def test_what_kernels_cannot_make_is_named_with_the_reason() -> None:
    texts = ["sum(w)", "count(*)"]
    plan = plan_of(
        [
            bound(f"q{n}", f"SELECT {k}, {text} FROM t GROUP BY window(ts, '1 second'), {k}")
            for n, (k, text) in enumerate(zip("ks", texts, strict=True))
        ],
    )
    reasons = unlifted(plan)
    assert len(reasons) == 1
    assert "decimal128(38, 2)" in next(iter(reasons.values()))
    with pytest.raises(NotLiftedError, match="may be too large"):
        Cutter(plan)
    with pytest.raises(NotLiftedError, match="do not know approx"):
        lift_of(counted("approx_count_distinct({0})"), [pa.string()])
