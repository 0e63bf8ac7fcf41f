"""The worked examples of paper 004 (3 to 6): answers and operation counts."""

from __future__ import annotations

import numpy as np

from weft.evaluate import SlidingWindow

FLATFIT_INPUT = [2, 4, 0, 3, 7, 6, 1, 8, 9, 5]
SLICKDEQUE_INPUT = [6, 5, 0, 1, 3, 4, 2, 7]


def run(aggregate: str, technique: str, ranges: list[int], items: list[int]) -> tuple[np.ndarray, int]:
    window = SlidingWindow(aggregate, ranges, technique, counting=True)
    return window.push_many(items).T, window.operations[0]


def test_example_3_flatfit_with_one_query_takes_21_operations() -> None:
    """Counted are the merges with the pre-filled identities; wReset starts from the newest partial, so it takes 4."""
    (answers,), operations = run("max", "flatfit", [5], FLATFIT_INPUT)
    assert answers.tolist() == [2, 4, 4, 4, 7, 7, 7, 8, 9, 9]
    assert operations == 21
    assert run("max", "panes", [5], FLATFIT_INPUT)[1] == 40


def test_example_4_flatfit_answers_a_second_query_with_6_more_operations() -> None:
    (longer, shorter), operations = run("max", "flatfit", [5, 2], FLATFIT_INPUT)
    assert longer.tolist() == [2, 4, 4, 4, 7, 7, 7, 8, 9, 9]
    assert shorter.tolist() == [2, 4, 4, 3, 7, 7, 6, 8, 9, 9]
    assert operations == 21 + 6
    assert run("max", "panes", [5, 2], FLATFIT_INPUT)[1] == 40 + 10


def test_example_5_slickdeque_inv_takes_32_operations() -> None:
    (shorter, longer), operations = run("sum", "slickdeque-inv", [3, 5], SLICKDEQUE_INPUT)
    assert shorter.tolist() == [6, 11, 11, 6, 4, 8, 9, 13]
    assert longer.tolist() == [6, 11, 11, 12, 15, 13, 10, 17]
    assert operations == 32
    assert run("sum", "panes", [3, 5], SLICKDEQUE_INPUT)[1] == 48


def test_example_6_slickdeque_noninv_takes_11_operations() -> None:
    (shorter, longer), operations = run("max", "slickdeque-noninv", [3, 5], SLICKDEQUE_INPUT)
    assert shorter.tolist() == [6, 6, 6, 5, 3, 4, 4, 7]
    assert longer.tolist() == [6, 6, 6, 6, 6, 5, 4, 7]
    assert operations == 11
    assert run("max", "panes", [3, 5], SLICKDEQUE_INPUT)[1] == 48
