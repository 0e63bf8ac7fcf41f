"""Finals that remember give what finals over all slices give. No Spark: a slice is one row, its partials are known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from weft.algebra.numbers import DataError
from weft.algebra.registry import AGGREGATES as REGISTRY
from weft.optimize.planner import PlanRequest, plan
from weft.plan.build import join
from weft.plan.model import BoundCall, BoundQuery, Grouping, Plan
from weft.query.sparksql import parse_file
from weft.step.emission import EVERYTHING, Emission
from weft.step.finals import Finals, Fresh
from weft.step.new_slices import NewSlices
from weft.step.retained import END, START, coarsened, merged, open_slices, partial_columns, slice_ends
from weft.step.state import State
from weft.step.step_plan import StepPlan
from weft.step.turn import turn

TYPES = {
    "k": pa.string(),
    "v": pa.int64(),
    "x": pa.float64(),
    "y": pa.float64(),
    "d": pa.decimal128(38, 2),
    "s": pa.string(),
    "u": pa.int64(),
    "w": pa.string(),
}
RESULTS = {"count": pa.int64(), "avg": pa.float64(), "var_pop": pa.float64(), "kurtosis": pa.float64()}
INSTANT = pa.timestamp("us", "UTC")
ROW = {
    "count(1)": lambda row, _: 1,
    "count({0})": lambda row, a: int(row[a[0]] is not None),
    "sum({0})": lambda row, a: row[a[0]],
    "min({0})": lambda row, a: row[a[0]],
    "max({0})": lambda row, a: row[a[0]],
    "sum(shiftright({0}, 32))": lambda row, a: None if row[a[0]] is None else row[a[0]] >> 32,
    "sum({0} & 4294967295L)": lambda row, a: None if row[a[0]] is None else row[a[0]] & 0xFFFFFFFF,
    "var_pop({0})": lambda row, a: None if row[a[0]] is None else 0.0,
    "skewness({0})": lambda row, a: None,
    "kurtosis({0})": lambda row, a: None,
    "max(CASE WHEN {1} IS NOT NULL THEN struct({1} AS o, {0} AS v) END)": (
        lambda row, a: None if row[a[1]] is None else {"o": row[a[1]], "v": row[a[0]]}
    ),
}
"""What Spark's aggregates give for a slice of one row."""
AGGREGATES = (
    "count(*)",
    "count(v)",
    "sum(v)",
    "avg(v)",
    "min(v)",
    "max(x)",
    "sum(x)",
    "sum(d)",
    "min(s)",
    "max(s)",
    "max_by(s, u)",
    "max_by(v, w)",
    "var_pop(y)",
    "kurtosis(y)",
)


def bound(name: str, text: str) -> BoundQuery:
    """A query with types, without Spark."""
    (query,) = parse_file(f"-- name: {name}\n{text}", {"t": ["ts", *TYPES]})
    calls = []
    for call in query.calls:
        types = tuple(TYPES[argument.sql] for argument in call.arguments)
        result = RESULTS.get(call.function, types[0] if types else pa.int64())
        calls.append(BoundCall(call, types, REGISTRY[call.function].kept(types), result))
    keys = tuple(TYPES[key.sql] for key in query.keys)
    return BoundQuery(query, tuple(calls), keys, INSTANT, tuple(f"c{n}" for n in range(len(query.outputs))))


def queries(rnd: random.Random) -> list[BoundQuery]:
    found = []
    for number in range(rnd.randint(1, 5)):
        slide = rnd.choice((2, 3, 5, 10))
        range_ = rnd.choice((slide, 3 * slide, 4 * slide + 1, max(slide // 2, 1)))
        outputs = [f"{text} AS a{n}" for n, text in enumerate(rnd.sample(AGGREGATES, rnd.randint(1, 3)))]
        key = rnd.choice(("k", "k", None))
        names = ", ".join(["window.start", *([key] if key else []), *outputs])
        group = ", ".join([f"window(ts, '{range_} seconds', '{slide} seconds')", *([key] if key else [])])
        found.append(bound(f"q{number}", f"SELECT {names} FROM t GROUP BY {group}"))
    return found


def row_of(rnd: random.Random, second: int) -> dict[str, Any]:
    large = rnd.choice((1, 1, 2**40, 2**61))
    values = {
        "k": rnd.choice(["a", "b", None]),
        "v": rnd.randint(-3, 3) * large,
        "x": rnd.choice([rnd.gauss(0, 1), float("inf"), -0.0, 1e16, float("nan")]),
        "y": rnd.gauss(0, 1),
        "d": Decimal(rnd.randint(-(10**20), 10**20)) / 100,
        "s": rnd.choice(["", "z", "ä", "b"]),
        "u": rnd.getrandbits(60),  # no ties, of which any would be right
        "w": str(rnd.random()),
    }
    return {name: None if rnd.random() < 0.15 and name != "k" else value for name, value in values.items()} | {
        "t": second * 1_000_000
    }


def slices(grouping: Grouping, rows: list[dict[str, Any]]) -> pa.Table:
    """A slice a row, as the aggregation would give it."""
    columns: dict[str, pa.Array] = {START: pa.array([row["t"] for row in rows], pa.int64())}
    for key, name in zip(grouping.keys, grouping.key_columns, strict=True):
        columns[name] = pa.array([row[key.sql] for row in rows], TYPES[key.sql])
    for (partial, _), names in partial_columns(grouping).items():
        arguments = [argument.sql for argument in partial.arguments]
        for template, name in zip(partial.measure.columns, names, strict=True):
            values = [ROW[template](row, arguments) for row in rows]
            columns[name] = pa.array(values, column_type(template, arguments))
    ends = slice_ends(columns[START].to_numpy(), grouping.progressions)
    return pa.table({**columns, END: pa.array(ends)})


def column_type(template: str, arguments: list[str]) -> pa.DataType:
    if template.startswith("count") or "32" in template or "4294967295" in template:
        return pa.int64()
    if "struct" in template:
        return pa.struct([("o", TYPES[arguments[1]]), ("v", TYPES[arguments[0]])])
    if template.startswith(("var_pop", "skewness", "kurtosis")):
        return pa.float64()
    return TYPES[arguments[0]]


def rows_of(answers: Any) -> dict[str, list[Any]]:
    """Answers in an order of their own; a failure by its words."""
    found: dict[str, list[Any]] = {}
    for answer in answers:
        if answer.table is None:
            found[answer.query.name] = [answer.failure]
        else:
            rows = list(zip(*(column.to_pylist() for column in answer.table.columns), strict=True))
            found[answer.query.name] = sorted(rows, key=repr)
    return found


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-6, abs=1e-6, nan_ok=True)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def planned(queries: Sequence[BoundQuery]) -> Plan:
    return plan(PlanRequest("t", "ts", queries)).plan


def plan_of(grouping: Grouping) -> StepPlan:
    return StepPlan(Plan("t", "ts", grouping.queries, (grouping,)), ("g",))


def fresh(table: pa.Table, grouping: Grouping) -> dict[str, Fresh]:
    names = [grouping.slice_column if name == START else name for name in table.column_names]
    return {"g": Fresh(table.rename_columns(names))}


def at_once(grouping: Grouping, table: pa.Table, emission: Emission = EVERYTHING) -> dict[str, list[Any]]:
    return rows_of(turn(plan_of(grouping), NewSlices(fresh(table, grouping)), State(), emission).answers)


def from_kept(grouping: Grouping, table: pa.Table) -> dict[str, list[Any]]:
    kept = Finals(plan_of(grouping), keeps=True)
    kept.absorb(fresh(table, grouping))
    return rows_of(kept.answers(EVERYTHING))


@pytest.mark.parametrize("seed", range(40))
def test_answers_from_kept_panes_are_those_from_all_slices(seed):
    rnd = random.Random(seed)
    made = planned(queries(rnd))
    for grouping in made.groupings:
        kept, everything, watermark = Finals(plan_of(grouping), keeps=True), [], None
        second = 0
        for _ in range(rnd.randint(1, 12)):
            batch = [row_of(rnd, second + rnd.randint(0, 12)) for _ in range(rnd.randint(0, 15))]
            second += rnd.choice((0, 3, 10))
            if batch:
                table = slices(grouping, batch)
                kept.absorb(fresh(table, grouping))
                everything.append(table)
            reached = None if rnd.random() < 0.2 else second * 1_000_000
            until = watermark if reached is None else max(reached, watermark or reached)
            if until is not None and everything:
                emission = Emission(watermark, until)
                expected = at_once(grouping, pa.concat_tables(everything).combine_chunks(), emission)
                found = rows_of(kept.answers(emission))
                assert found.keys() == expected.keys()
                for name, rows in expected.items():
                    assert same(found[name], rows), f"{name}: {found[name]} is not {rows}"
                watermark = until


@pytest.mark.parametrize("seed", range(30))
def test_slices_of_the_past_are_as_coarse_as_open_windows_allow(seed):
    rnd = random.Random(seed)
    made = planned(queries(rnd))
    rows = [row_of(rnd, rnd.randint(0, 40)) for _ in range(80)]
    watermark = rnd.randint(5, 40) * 1_000_000
    for grouping in made.groupings:
        windows = dict.fromkeys(grouping.windows)
        table = slices(grouping, rows)
        table = table.filter(pa.array(open_slices(table.column(START).to_numpy(), windows, watermark)))
        if len(table):
            coarse = merged(grouping, coarsened(table, windows, watermark))
            due = Emission(after=watermark)
            one = at_once(grouping, table, due)
            other = at_once(grouping, coarse, due)
            assert one.keys() == other.keys()
            for name in one:
                assert same(other[name], one[name]), name


@pytest.mark.parametrize("seed", range(20))
def test_merged_slices_give_the_same_answers(seed):
    rnd = random.Random(seed)
    made = planned(queries(rnd))
    rows = [row_of(rnd, rnd.randint(0, 30)) for _ in range(60)]
    for grouping in made.groupings:
        table = slices(grouping, rows)
        together = merged(grouping, table)
        assert len(together) <= len(table)
        one = at_once(grouping, table)
        other = at_once(grouping, together)
        assert one.keys() == other.keys()
        for name in one:
            assert same(other[name], one[name]), name


BROKEN = {
    "a value": DataError("a sum does not fit int64"),
    "a kernel": pa.ArrowNotImplementedError("Function 'dictionary_encode' has no kernel"),
    "memory": MemoryError(),
}


def failing(error: Exception) -> Any:
    """A function that is of no use."""

    def fail(*_: object) -> Any:
        raise error

    return fail


def spoilt(query: BoundQuery, part: str, error: Exception) -> BoundQuery:
    """A query whose first aggregate cannot be decoded, or cannot be lowered."""
    call, *others = query.calls
    if part == "decode":
        made = replace(call.recipe, measures=tuple(replace(one, decode=failing(error)) for one in call.recipe.measures))
    else:
        made = replace(call.recipe, lower=failing(error))
    return replace(query, calls=(replace(call, recipe=made), *others))


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("part", ["decode", "lower"])
def test_an_error_in_one_query_costs_no_other_its_answers(part, kind):
    rnd = random.Random(7)
    group = "FROM t GROUP BY k, window(ts, '10 seconds', '5 seconds')"
    good = [bound("a", f"SELECT k, window, sum(v), max(v) {group}"), bound("b", f"SELECT k, window, avg(x) {group}")]
    bad = spoilt(bound("bad", f"SELECT k, window, min(d) {group}"), part, BROKEN[kind])
    (grouping,) = planned([good[0], bad, good[1]]).groupings
    table = slices(grouping, [row_of(rnd, second) for second in range(40)])
    expected = at_once(planned(good).groupings[0], table)
    for found in (at_once(grouping, table), from_kept(grouping, table)):
        (reason,) = found.pop("bad")
        assert str(BROKEN[kind]) in reason
        assert found.keys() == expected.keys()
        assert all(same(found[name], rows) for name, rows in expected.items())


def test_keys_that_cannot_be_numbered_fail_only_the_queries_that_have_them():
    rnd = random.Random(7)
    window = "window(ts, '10 seconds', '5 seconds')"
    bad = bound("bad", f"SELECT w, window, sum(v) FROM t GROUP BY w, {window}")
    good = bound("good", f"SELECT k, window, sum(v) FROM t GROUP BY k, {window}")
    grouping = join(planned([bad, good]).groupings)
    table = slices(grouping, [row_of(rnd, second) for second in range(40)])
    column = grouping.key_columns[[key.sql for key in grouping.keys].index("w")]
    unnumbered = pa.array([{"m": [("a", 1)]}] * len(table), pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))
    expected = at_once(grouping, table)["good"]
    table = table.set_column(table.column_names.index(column), column, unnumbered)
    for found in (at_once(grouping, table), from_kept(grouping, table)):
        assert "no kernel" in found["bad"][0]
        assert same(found["good"], expected)
