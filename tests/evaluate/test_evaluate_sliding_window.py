"""``SlidingWindow`` as its users meet it: types, refusals, state."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pytest

from weft.algebra.items import MEAN_FLOAT
from weft.errors import WeftError
from weft.evaluate import AggregateError, SlidingWindow, TechniqueError, choose, user_defined


def test_integers_stay_integers_and_averages_of_them_never_overflow() -> None:
    assert SlidingWindow("sum", [2]).push_many([1, 2, 3]).dtype == np.int64
    large = 2**62
    assert SlidingWindow("avg", [4]).push_many([large] * 4)[-1, 0] == pytest.approx(large)
    assert SlidingWindow("avg", [2]).push_many([-large, -large])[-1, 0] == pytest.approx(-large)


def test_one_item_at_a_time_gives_what_many_at_once_give() -> None:
    items = [5, 3, 8, 1, 9, 2]
    one_by_one = SlidingWindow("max", [2, 4])
    assert [one_by_one.push(item).tolist() for item in items] == SlidingWindow("max", [2, 4]).push_many(items).tolist()


def test_answers_come_in_the_order_in_which_ranges_were_given() -> None:
    answers = SlidingWindow("sum", [1, 3, 2, 3]).push_many([1, 2, 4])
    assert answers[-1].tolist() == [4, 7, 6, 7]


@pytest.mark.parametrize("technique", ["panes-inv", "slickdeque-inv"])
def test_a_float_sum_with_an_inverse_technique_is_refused_when_its_type_is_known(technique: str) -> None:
    window = SlidingWindow("sum", [3], technique)
    with pytest.raises(TechniqueError, match="no exact inverse"):
        window.push(0.5)
    with pytest.raises(TechniqueError, match="no exact inverse"):
        SlidingWindow("sum", [3], technique, dtype=float)


def test_slickdeque_noninv_refuses_what_is_not_selective() -> None:
    with pytest.raises(TechniqueError, match="does not always return one of its two operands"):
        SlidingWindow("bit_or", [3], "slickdeque-noninv", dtype=int)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sum", [3], "twostack"), "did you mean twostacks"),
        (("maximum", [3]), "no aggregate"),
        (("sum", [0]), "at least 1"),
        (("sum", []), "at least 1"),
        (("sum", [2.5]), "whole number"),
    ],
)
def test_what_cannot_be_is_refused_at_once(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(WeftError, match=message):
        SlidingWindow(*arguments)  # type: ignore[arg-type]


def test_items_of_another_type_are_refused_not_cut_off() -> None:
    window = SlidingWindow("sum", [3])
    window.push(1)
    with pytest.raises(AggregateError, match="takes integers"):
        window.push(1.5)
    with pytest.raises(AggregateError, match="takes integers"):
        SlidingWindow("sum", [3], dtype=int).push_many(np.array([2**63], np.uint64))
    with pytest.raises(AggregateError, match="bit_or takes integers"):
        SlidingWindow("bit_or", [3]).push(1.5)


def test_decimals_and_large_integers_are_kept_as_objects() -> None:
    assert SlidingWindow("sum", [2]).push_many([Decimal("0.1"), Decimal("0.2")])[-1, 0] == Decimal("0.3")
    assert SlidingWindow("sum", [2]).push_many([2**80, 1])[-1, 0] == 2**80 + 1


def test_auto_goes_by_the_algebra_and_by_the_latency_wish() -> None:
    def chosen(*arguments: object, worst_case: bool = False) -> str:
        return SlidingWindow(*arguments, dtype=int, worst_case=worst_case).technique  # type: ignore[arg-type]

    assert chosen("sum", [3]) == "slickdeque-inv"
    assert chosen("max", [3]) == "twostacks-lite"
    assert chosen("max", [3, 4]) == "slickdeque-noninv"
    assert chosen("bit_or", [3, 4]) == "twostacks"
    assert chosen("max", [3], worst_case=True) == "daba-lite"
    assert SlidingWindow("sum", [3], dtype=float).technique == "twostacks-lite"
    assert "exact inverse" in choose(MEAN_FLOAT)[1]


def test_a_users_numbers_are_compiled() -> None:
    hypotenuse = user_defined("hypot", lift=lambda x: x * x, merge=lambda a, b: a + b, identity=0.0, commutative=True)
    window = SlidingWindow(hypotenuse, [2], "panes", dtype=float)
    assert window.push_many([3.0, 4.0])[-1, 0] == 25.0
    assert window._resolved.monoid.dtypes == ("float64",)


def test_two_closures_of_one_source_do_not_share_a_kernel() -> None:
    def clipped(limit: int) -> SlidingWindow:
        return SlidingWindow(user_defined("clip", merge=lambda a, b: min(a + b, limit), identity=0), [9], "panes")

    assert clipped(5).push_many([4, 4])[-1, 0] == 5
    assert clipped(7).push_many([4, 4])[-1, 0] == 7


def test_what_numba_cannot_compile_runs_as_python() -> None:
    union = user_defined("union", lift=lambda x: frozenset([x]), merge=lambda a, b: a | b, identity=frozenset())
    assert SlidingWindow(union, [2]).push_many([1, 2, 3])[-1, 0] == frozenset({2, 3})
    pairs = user_defined("pairs", lift=lambda x: ((x, x),), merge=lambda a, b: a + b, identity=())
    assert SlidingWindow(pairs, [2], "flatfat").push_many([1, 2, 3])[-1, 0] == ((2, 2), (3, 3))


def test_a_lift_that_turns_from_integers_to_floats_is_refused() -> None:
    halves = user_defined(
        "halves", lift=lambda x: x // 2 if x % 2 == 0 else x / 2, merge=lambda a, b: a + b, identity=0
    )
    window = SlidingWindow(halves, [3], "panes")
    window.push(2)
    with pytest.raises(AggregateError, match="give floats from the start"):
        window.push(3)


def test_state_survives_pickling_and_other_windows_refuse_it() -> None:
    window = SlidingWindow("avg", [2, 3])
    window.push_many([1, 2, 3])
    state = pickle.loads(pickle.dumps(window.state()))
    window.push(100)
    again = SlidingWindow("avg", [2, 3])
    again.restore(state)
    assert again.push(100).tolist() == [51.5, 35.0]
    with pytest.raises(WeftError, match="another window: ranges"):
        SlidingWindow("avg", [4]).restore(state)
    fresh = SlidingWindow("avg", [2, 3])
    again.restore(state)
    fresh.restore(SlidingWindow("avg", [2, 3]).state())
    assert fresh.push(4).tolist() == [4.0, 4.0]


def test_no_items_give_no_answers() -> None:
    assert SlidingWindow("sum", [2, 3]).push_many([]).shape == (0, 2)
