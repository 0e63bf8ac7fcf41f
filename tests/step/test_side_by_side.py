"""Work of several threads, used by one: nothing is lost, errors arrive, nobody is left waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from weft.step.side_by_side import WAITING, mapped, side_by_side


def counted(count: int) -> Iterator[int]:
    """Numbers, as a generator that a thread reads."""
    yield from range(count)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_all_that_several_iterators_give_comes_out_each_in_its_order(threads: int) -> None:
    work = [[(number, item) for item in range(3 * WAITING * number)] for number in range(4)]
    found = list(side_by_side(work, threads))
    for number, items in enumerate(work):
        assert [item for item in found if item[0] == number] == items
    assert len(found) == sum(map(len, work))


def test_an_error_of_a_thread_is_raised_where_results_are_used() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("of a thread")

    with pytest.raises(ValueError, match="of a thread"):
        list(side_by_side([broken(), counted(5 * WAITING)], 2))


def test_whoever_stops_reading_leaves_no_thread_behind() -> None:
    reading = side_by_side([counted(10**9), counted(10**9)], 2)
    assert next(reading) == 0
    reading.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("weft-side")]


def test_what_is_mapped_keeps_its_order_and_is_asked_for_no_sooner_than_needed() -> None:
    asked: list[int] = []

    def given() -> Iterator[int]:
        for number in range(20):
            asked.append(number)
            yield number

    made = mapped(lambda number: -number, given(), 3)
    assert next(made) == 0
    assert len(asked) <= 3
    assert list(made) == [-number for number in range(1, 20)]
