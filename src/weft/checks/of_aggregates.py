"""What every aggregate must do: be parsed, keep its algebra, merge slices to what Spark answers, in batch and live."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from weft.algebra.aggregate import Aggregate
from weft.algebra.monoid import Monoid
from weft.algebra.registry import AGGREGATES
from weft.checks import answering
from weft.checks.agreement import agree
from weft.checks.calls_of import SampledCall, in_spark, sampled_calls, telling
from weft.checks.check import Check
from weft.checks.merging import invert, merge, total
from weft.checks.sampled_items import items_by_kind, resolved_for
from weft.checks.samples import NAN, NULLS, SLICES, WHOLE, sample
from weft.checks.sliced import ALL, FINITE, Sliced, answered, merged, partials
from weft.errors import WeftError
from weft.evaluate.columns import identity_of, load
from weft.query.sparksql import parse_file

AggregateCheck = Check[[SparkSession]]
WITHOUT_NAN = tuple(number for number in range(SLICES) if number != NAN)
OVER = {FINITE: WITHOUT_NAN, ALL: tuple(range(SLICES)), NULLS: (NULLS,), NAN: (NAN,)}

TOGETHER = 9
"""So many aggregates share a query."""


def checks_of_aggregates(aggregates: Iterable[Aggregate] | None = None) -> list[AggregateCheck]:
    """The checks of some aggregates, by default of all that are registered; each is called with a Spark session.

    What Spark has to compute for them it computes once for all, when the first of these checks runs.

    Examples
    --------
    >>> str(checks_of_aggregates([AGGREGATES["sum"]])[0])
    'sum is parsed by all its names'
    """
    chosen = tuple(dict.fromkeys(AGGREGATES.values()) if aggregates is None else aggregates)
    trial = AggregateTrial([aggregate for aggregate in chosen if aggregate.in_sql])
    return [
        Check(aggregate.name, sentence, partial(holds, aggregate))
        for aggregate in chosen
        for sentence, holds in _checks(aggregate, trial)
    ]


def _checks(aggregate: Aggregate, trial: AggregateTrial) -> Iterator[tuple[str, Any]]:
    if aggregate.in_sql:
        yield "is parsed by all its names", parsed
        yield "has partials that keep the laws", partial(lawful, trial)
        yield "merges slices to what Spark answers over all rows", partial(merges, trial)
        yield "keeps merged slices as Spark would have computed them", partial(keeps, trial)
        yield "answers in batch as Spark does", partial(in_batch, trial)
        yield "answers live as Spark does", partial(live, trial)
    if aggregate.items is not None:
        yield "has items that keep the laws", lawful_items
    if aggregate.in_sql and aggregate.items is not None:
        yield "gives of items what it gives in SQL", partial(as_in_sql, trial)


@dataclass
class AggregateTrial:
    """What some aggregates have in common: everything that Spark computes for them, each once."""

    aggregates: list[Aggregate]
    _known: dict[str, Any] = field(default_factory=dict)

    def calls(self, spark: SparkSession) -> dict[str, list[SampledCall]]:
        """By an aggregate's name: the calls that Spark and Weft take."""
        if "calls" not in self._known:
            rows = spark.createDataFrame(sample().slice(0, 0))
            self._known["calls"] = {one.name: sampled_calls(one, rows) for one in self.aggregates}
        found: dict[str, list[SampledCall]] = self._known["calls"]
        return found

    def sliced(self, spark: SparkSession) -> Sliced:
        """What Spark computes of slices."""
        if "sliced" not in self._known:
            calls = [call for some in self.calls(spark).values() for call in some]
            self._known["sliced"] = Sliced.of(spark, calls)
        found: Sliced = self._known["sliced"]
        return found

    def asked(self, spark: SparkSession) -> dict[str, list[SampledCall]]:
        """By the name of a query: its calls; some aggregates share one, as every query costs time."""
        calls = [telling(some) for some in self.calls(spark).values() if some]
        return {
            f"q{at // TOGETHER}": [call for some in calls[at : at + TOGETHER] for call in some]
            for at in range(0, len(calls), TOGETHER)
        }

    def answers(self, spark: SparkSession, how: Any) -> dict[str, Any]:
        """What somebody answers to these queries: Spark, or Weft in batch or live."""
        if how not in self._known:
            self._known[how] = how(spark, self.asked(spark))
        found: dict[str, Any] = self._known[how]
        return found


# ------------------------------------------------------------------------------------------------------------ parsing


def parsed(aggregate: Aggregate, _: SparkSession) -> None:
    """Every name of it is a call of it, with as many arguments as it takes and no others."""
    assert AGGREGATES.get(aggregate.name) is aggregate, f"{aggregate.name} is not registered"
    arguments = ["d"] * aggregate.least
    for name in (aggregate.name, *aggregate.synonyms, aggregate.name.upper()):
        (query,) = parse_file(f"{answering.select([_call(name, arguments)])};")
        assert query.calls[0].function == aggregate.name, f"{name} is parsed as {query.calls[0].function}"
    too_few, too_many = arguments[1:], ["d"] * ((aggregate.most or 0) + 1)
    for wrong in [too_few] + ([too_many] if aggregate.most is not None else []):
        try:
            parse_file(f"{answering.select([_call(aggregate.name, wrong)])};")
        except WeftError as error:
            assert "argument" in str(error), error
        else:
            raise AssertionError(f"{aggregate.name} takes {len(wrong)} arguments, though it says {aggregate.takes}")


def _call(name: str, arguments: Sequence[str]) -> str:
    return f"{name}({', '.join(arguments)})"


# ------------------------------------------------------------------------------------------------------------ algebra


def lawful(trial: AggregateTrial, aggregate: Aggregate, spark: SparkSession) -> None:
    """The partials of slices keep what their monoid declares."""
    sliced, calls = trial.sliced(spark), trial.calls(spark)[aggregate.name]
    assert calls, f"{aggregate.name} takes no column of {', '.join(sample().schema.names)}"
    for call in calls:
        for measure in call.recipe.measures:
            decoded = sliced.decoded(call, measure, range(SLICES))
            declared = (measure.monoid.invertible, measure.monoid.selective, measure.monoid.commutative)
            chosen = (decoded.monoid.invertible, decoded.monoid.selective, decoded.monoid.commutative)
            assert chosen == declared, f"{call.sql} is decoded for {decoded.monoid.name}, not {measure.monoid.name}"
            keeps_laws(decoded.monoid, partials(decoded), call.sql)


def lawful_items(aggregate: Aggregate, _: SparkSession) -> None:
    """The partials of items keep what their monoid declares."""
    for kind, items in items_by_kind().items():
        resolved = resolved_for(aggregate, kind, items[0])
        if resolved is not None:
            lifted = resolved.lift(items[:SLICES])
            keeps_laws(resolved.monoid, [load(lifted, row) for row in range(SLICES)], f"{aggregate.name} of {kind}")


def keeps_laws(monoid: Monoid, operands: Sequence[Any], what: str) -> None:
    """Identity, associativity, and whatever else is declared, for these operands."""
    empty = identity_of(monoid)
    for x in operands:
        assert agree(merge(monoid, empty, x), x), f"{what}: empty merged with {x} is {merge(monoid, empty, x)}"
        assert agree(merge(monoid, x, empty), x), f"{what}: {x} merged with empty is {merge(monoid, x, empty)}"
    for x, y in itertools.product(operands, repeat=2):
        both = merge(monoid, x, y)
        if monoid.commutative:
            assert agree(both, merge(monoid, y, x)), f"{what}: {x} and {y} do not commute"
        if monoid.selective:
            assert agree(both, x) or agree(both, y), f"{what}: {both} is neither {x} nor {y}"
        if monoid.invertible:
            assert agree(invert(monoid, both, x), y), f"{what}: {x} cannot be taken out of {both}"
    for x, y, z in itertools.permutations(operands[:4], 3):
        left, right = merge(monoid, merge(monoid, x, y), z), merge(monoid, x, merge(monoid, y, z))
        assert agree(left, right), f"{what}: ({x} {y}) {z} is {left}, {x} ({y} {z}) is {right}"


# ------------------------------------------------------------------------------------------------------------- slices


def merges(trial: AggregateTrial, aggregate: Aggregate, spark: SparkSession) -> None:
    """Decoded, merged and lowered, slices give Spark's answer in Spark's type."""
    sliced = trial.sliced(spark)
    for call in trial.calls(spark)[aggregate.name]:
        for over, slices in OVER.items():
            measures = [merged(sliced.decoded(call, measure, slices)) for measure in call.recipe.measures]
            check_answer(sliced, call, over, call.recipe.lower([answered(one) for one in measures], call.result))


def keeps(trial: AggregateTrial, aggregate: Aggregate, spark: SparkSession) -> None:
    """What is encoded of merged slices stands for all their rows: it is decoded and merged on like a slice."""
    sliced = trial.sliced(spark)
    for call in trial.calls(spark)[aggregate.name]:
        measures = []
        for measure in call.recipe.measures:
            originals = sliced.columns(call, measure, WITHOUT_NAN)
            older = measure.encode(merged(_part(measure.decode(originals), slice(0, 4))), originals)
            for column, original in zip(older, originals, strict=True):
                assert column.type == original.type, f"{call.sql}: {original.type} comes back as {column.type}"
            newer = [column.slice(4) for column in originals]
            both = [pa.concat_arrays(pair) for pair in zip(older, newer, strict=True)]
            measures.append(merged(measure.decode(both)))
        check_answer(sliced, call, FINITE, call.recipe.lower([answered(one) for one in measures], call.result))


def _part(decoded: Any, rows: slice) -> Any:
    valid = None if decoded.valid is None else decoded.valid[rows]
    return decoded.having(tuple(column[rows] for column in decoded.values), valid)


def check_answer(sliced: Sliced, call: SampledCall, over: int, found: pa.Array) -> None:
    """One answer is Spark's, and of its type."""
    assert found.type == call.result, f"{call.sql} is {found.type}, and Spark's is {call.result}"
    ours, theirs = found[0].as_py(), sliced.answer(call, over)
    assert agree(ours, theirs), f"{call.sql} is {ours}, and Spark's is {theirs}"


# -------------------------------------------------------------------------------------------------------------- items


def as_in_sql(trial: AggregateTrial, aggregate: Aggregate, spark: SparkSession) -> None:
    """Items one after another give what Spark answers over a column of them."""
    table = spark.createDataFrame(sample())
    for kind, column in WHOLE.items():
        items = items_by_kind()[kind]
        resolved = resolved_for(aggregate, kind, items[0])
        if resolved is None:
            continue
        lifted = resolved.lift(items)
        one = total(resolved.monoid, [load(lifted, row) for row in range(len(items))])
        columns = one if isinstance(one, tuple) else (one,)
        ours = resolved.lower(tuple(np.array([value]) for value in columns))[0]
        theirs = table.selectExpr(in_spark(aggregate, (column,))).toArrow()[0][0].as_py()
        assert agree(ours.item(), theirs), f"{aggregate.name} of items is {ours}, and Spark's is {theirs}"


# ------------------------------------------------------------------------------------------------------------ engines


def in_batch(trial: AggregateTrial, aggregate: Aggregate, spark: SparkSession) -> None:
    """``Engine.run`` gives the rows of Spark."""
    check_rows(trial, aggregate, spark, answering.in_batch)


def live(trial: AggregateTrial, aggregate: Aggregate, spark: SparkSession) -> None:
    """``Engine.start`` gives the rows of Spark."""
    check_rows(trial, aggregate, spark, answering.live)


def check_rows(trial: AggregateTrial, aggregate: Aggregate, spark: SparkSession, how: Any) -> None:
    """The same windows and keys, each with the same values."""
    asked = trial.asked(spark)
    query = next(name for name, calls in asked.items() if any(call.aggregate is aggregate for call in calls))
    table = trial.answers(spark, how)[query]
    if isinstance(table, Exception):
        raise AssertionError(f"{query}, {answering.select([c.sql for c in asked[query]])}: {table}") from table
    found, expected = answering.keyed(table), trial.answers(spark, answering.of_spark)[query]
    assert found.keys() == expected.keys(), f"{query} has other windows: {found.keys() ^ expected.keys()}"
    for at, call in enumerate(asked[query]):
        for place, values in expected.items() if call.aggregate is aggregate else ():
            ours, theirs = found[place][at], values[at]
            assert agree(ours, theirs), f"{call.sql}, {place}: {ours}, and Spark's is {theirs}"
