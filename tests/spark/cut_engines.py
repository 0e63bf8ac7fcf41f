"""Slices of both engines, held against each other: the same slices, keys and signatures, and the same partials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oracle.compare import plain
from weft.plan.model import Grouping, Plan
from weft.spark.fetching import brought, observed_by
from weft.spark.kernel_cut import cut_in_workers, cut_table, left_to_jvm, projected, read_counts, slot_names
from weft.spark.rows import slices
from weft.spark.step import tuned
from weft.step.cutting import Counts, Cut, Cutter
from weft.step.retained import partial_columns
from weft.step.state import GROUPING

RELATIVE = 1e-9
Tables = dict[int, pa.Table]
Sliced = dict[tuple[Any, ...], dict[str, Any]]
"""Partials by slice, keys and signature."""


def by_jvm(rows: Any, plan: Plan) -> Tables:
    """The slices that Spark's own aggregation makes, each once."""
    plan = replace(plan, ordered=False)
    with tuned(rows.sparkSession), slices(rows, plan) as cut:
        return own_tables(plan, brought(cut.frame))


def by_workers(rows: Any, plan: Plan, mark: str | None = None) -> tuple[Tables, Counts]:
    """Those that kernels make in workers, and what they counted."""
    with tuned(rows.sparkSession):
        frame = cut_in_workers(rows, plan, "counted", mark)
        tables = own_tables(plan, brought(frame))
        return tables, read_counts(observed_by(frame, "counted"))


def by_here(rows: Any, plan: Plan, mark: str | None = None) -> Cut:
    """Those that kernels make in this process."""
    return cut_table(brought(projected(rows, plan, mark)), Cutter(plan))


def lifted(plan: Plan, rows: Any) -> Plan:
    """The groupings that kernels can cut, as a plan of their own: values are evaluated for those who ask for them."""
    left = left_to_jvm(plan, rows)
    groupings = tuple(grouping for number, grouping in enumerate(plan.groupings) if number not in left)
    return replace(plan, groupings=groupings, queries=tuple(q for grouping in groupings for q in grouping.queries))


def own_tables(plan: Plan, table: pa.Table) -> Tables:
    """Slices as the aggregation gives them, by grouping and with its names."""
    found = {}
    for number, names in enumerate(slot_names(plan)):
        own = table.filter(pc.equal(table.column(GROUPING), number))
        found[number] = own.select(list(names)).rename_columns(list(names.values()))
    return found


@dataclass(frozen=True)
class Judge:
    """Compares the slices of one grouping."""

    grouping: Grouping
    magnitudes: Sliced
    """The same partials of the magnitudes of all arguments: what sums of doubles may differ by is relative to them."""

    @property
    def identity(self) -> list[str]:
        """The columns that tell slices apart."""
        names = [name for name, _ in self.grouping.signatures]
        return [self.grouping.slice_column, *self.grouping.key_columns, *names]

    def read(self, table: pa.Table) -> Sliced:
        """The slices of a table, each of them once."""
        found = sliced(table, self.identity)
        for names in (names for text, names in self.templates.values() if text == LIMBS):
            for partials in found.values():
                high, low = (partials[name] for name in names)
                # how a sum lies in its two limbs is nobody's business
                partials[names[0]], partials[names[1]] = (None, None) if high is None else ((high << 32) + low, 0)
        return found

    def difference(self, ours: Sliced, theirs: Sliced, *, ties: bool) -> str | None:
        """The first difference, if there is any; of tied values any will do where ``ties`` were settled anew."""
        if ours.keys() != theirs.keys():
            only = [list(some)[:3] for some in (ours.keys() - theirs.keys(), theirs.keys() - ours.keys())]
            return f"only kernels: {only[0]}, only JVM: {only[1]}"
        for identity, expected in theirs.items():
            for name, value in expected.items():
                found = ours[identity][name]
                if ties and isinstance(value, tuple) and isinstance(found, tuple) and found[0] == value[0]:
                    continue
                if not self.same(identity, name, found, value):
                    return f"{self.templates[name]} of {identity}: kernels {found!r}, JVM {value!r}"
        return None

    @property
    def templates(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """What each column of partials is, and the columns beside it."""
        found = {predicate.name: ("count(1)", ()) for predicate in self.grouping.predicates}
        for (partial, _), names in sorted(partial_columns(self.grouping).items(), key=lambda item: -len(item[1])):
            found |= {name: (text, names) for text, name in zip(partial.measure.columns, names, strict=True)}
        return found

    def same(self, identity: tuple[Any, ...], name: str, ours: Any, theirs: Any) -> bool:
        """Whether two values of a column are the same, doubles within their bounds."""
        if ours == theirs:
            return True
        if not isinstance(ours, float) or not isinstance(theirs, float):
            # skewness and kurtosis without spread are NULL or NaN
            return self.templates[name][0].startswith(("skewness", "kurtosis")) and {ours, theirs} <= NOTHING
        template, _ = self.templates[name]
        if template.startswith(("skewness", "kurtosis")):
            return True  # of ill-conditioned slices anything; the answers' own tests judge these
        scale = self.magnitudes[identity][name]
        if not template.startswith("sum("):
            scale = max(self.largest(identity) ** 2, abs(theirs))
        return math.isfinite(ours) and abs(ours - theirs) <= RELATIVE * max(scale, abs(theirs))

    def largest(self, identity: tuple[Any, ...]) -> float:
        """The largest sum of magnitudes in a slice."""
        found = [value for value in self.magnitudes[identity].values() if isinstance(value, float)]
        return max((value for value in found if math.isfinite(value)), default=0.0)


LIMBS = "sum(shiftright({0}, 32))"
NOTHING = {None, "NaN"}


def sliced(table: pa.Table, identity: list[str]) -> Sliced:
    """A table by some of its columns."""
    others = [name for name in table.column_names if name not in identity]
    columns = {name: readable(table.column(name).combine_chunks()) for name in table.column_names}
    found: Sliced = {}
    for row in range(len(table)):
        key = tuple(columns[name][row] for name in identity)
        assert key not in found, f"{key} came twice"
        found[key] = {name: columns[name][row] for name in others}
    return found


def readable(array: pa.Array) -> list[Any]:
    """Plain values, NaN as a word."""
    return [str(value) if repr(value) == "NaN" else value for value in plain(array)]


def magnitudes(rows: pa.Table, cutter: Cutter) -> pa.Table:
    """Projected rows with the magnitudes of all numbers that are aggregated."""
    for at, name in enumerate(rows.column_names):
        kind = rows.schema.field(name).type
        if name in cutter.inputs and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            rows = rows.set_column(at, name, pc.abs(rows.column(name)))
    return rows


def differences(rows: Any, plan: Plan) -> Iterator[str]:
    """Where the slices of kernels, in workers and here, are not those of the JVM."""
    plan = lifted(plan, rows)
    if not plan.groupings:
        return
    jvm = by_jvm(rows, plan)
    workers, counts = by_workers(rows, plan)
    here = by_here(rows, plan)
    if counts != here.counts:
        yield f"counts: workers {counts}, here {here.counts}"
    cutter = Cutter(plan)
    block = brought(projected(rows, plan))
    loud = cutter.cut(magnitudes(block, cutter)).tables
    for number, grouping in enumerate(plan.groupings):
        judge = Judge(grouping, {})
        judge = Judge(grouping, judge.read(loud[number]))
        expected = judge.read(jvm[number])
        nothing = jvm[number].slice(0, 0)
        for where, tables in (("workers", workers), ("here", here.tables)):
            table = tables.get(number, nothing)
            if not same_types(table.schema, nothing.schema):
                yield f"{where}: {table.schema} instead of {nothing.schema}"
                continue
            halves = [table.slice(0, len(table) // 2), table.slice(len(table) // 2)]
            for how, found in (("once", cutter.merged(number, halves)), ("again", cutter.merged(number, [table] * 2))):
                if how == "once" and (wrong := judge.difference(judge.read(found), expected, ties=where == "workers")):
                    yield f"{where}, grouping {number}: {wrong}"
                if how == "again" and judge.read(found).keys() != expected.keys():
                    yield f"{where}, grouping {number}: merged with itself it has other slices"


def same_types(ours: pa.Schema, theirs: pa.Schema) -> bool:
    """Whether all columns have the same types, whatever their order and whether they may be NULL."""
    return {item.name: str(item.type) for item in ours} == {item.name: str(item.type) for item in theirs}
