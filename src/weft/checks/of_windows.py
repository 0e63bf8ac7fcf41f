"""What every kind of window must do: its arithmetic agrees with windows that are looked up one by one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import product

import numpy as np

from weft.checks.check import Check
from weft.slicing.progression import edges_between
from weft.slicing.window import Window

WindowCheck = Check[[]]
NUMBERS = range(-60, 61)
"""The windows that are looked up; instants near the outermost of them are not asked about."""


def checks_of_windows(windows: Iterable[Window]) -> list[WindowCheck]:
    """The checks of some windows: take short ones of every shape that the kind knows.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> for check in checks_of_windows([TimeWindow(range=7, slide=3, start=1)]):
    ...     check()
    """
    return [
        Check(f"{window}", sentence, partial(holds, window))
        for window in windows
        for sentence, holds in (
            ("numbers its windows by their starts", numbered),
            ("is cut exactly where a window starts or ends", cut),
            ("covers the instants that some window holds", covering),
            ("tells which windows are due between two instants", due),
            ("is open since the start of the first window that has yet to end", open_since),
            ("knows the last start at or before an edge", last_starts),
            ("puts every window together from whole panes", paned),
            ("shares its panes with windows of the same slicing", shared),
            ("holds a row as often as it says", overlapping),
        )
    ]


def _spans(window: Window) -> list[tuple[int, int, int]]:
    """Number, start and end of every window that is looked up."""
    numbers = np.array(NUMBERS)
    starts, ends = window.starts(numbers).tolist(), window.ends(numbers).tolist()
    return list(zip(NUMBERS, starts, ends, strict=True))


def _instants(window: Window) -> range:
    """Instants whose windows are all looked up."""
    spans = _spans(window)
    longest = max(end - start for _, start, end in spans)
    middle = spans[len(spans) // 2][1]
    reach = min(middle - spans[0][1], spans[-1][1] - middle) - longest
    assert reach > 0, f"{window} is too long for its slide: check it with a shorter one"
    return range(middle - min(reach, 100), middle + min(reach, 100))


def numbered(window: Window) -> None:
    """A window's number is told by its start; both ends rise with it."""
    numbers = np.array(NUMBERS)
    starts, ends = window.starts(numbers), window.ends(numbers)
    assert (window.numbers(starts) == numbers).all(), "a number is not that of its start"
    assert (np.diff(starts) > 0).all() and (np.diff(ends) > 0).all(), "starts and ends do not rise"
    assert (ends > starts).all(), "a window ends before it starts"


def cut(window: Window) -> None:
    """Every start and every end is an edge, and nothing else is."""
    instants = _instants(window)
    first, last = instants[0], instants[-1]
    ends = {at for _, start, end in _spans(window) for at in (start, end) if first < at <= last}
    assert edges_between(window.edges(), first, last) == sorted(ends)


def covering(window: Window) -> None:
    """An instant is covered if a window holds it."""
    instants = np.array(_instants(window))
    found = window.covers(instants)
    for place, instant in enumerate(instants.tolist()):
        held = any(start <= instant < end for _, start, end in _spans(window))
        assert held == (found is None or bool(found[place])), f"{instant} is {'' if held else 'not '}held"


def due(window: Window) -> None:
    """Those that end after one instant and not after another, and that do not start before a third."""
    instants = _instants(window)[::7]
    for after, until, first in product(instants, instants, (None, *instants[::5])):
        least, most = window.due(after, until, first)
        expected = [
            number
            for number, start, end in _spans(window)
            if after < end <= until and (first is None or start >= first)
        ]
        assert list(range(least, most + 1)) == expected, f"due after {after}, until {until}, first {first}"
    least, most = window.due(None, None)
    assert least < NUMBERS[0] and most > NUMBERS[-1], "without bounds, some window is not due"


def open_since(window: Window) -> None:
    """Slices that start there and later are still needed, and no earlier ones."""
    for first, watermark in product((None, *_instants(window)[::9]), (None, *_instants(window)[::5])):
        if first is None and watermark is None:
            assert window.open_since(first, watermark) is None
            continue
        spans = _spans(window)
        starts = (s for _, s, e in spans if (watermark is None or e > watermark) and (first is None or s >= first))
        assert window.open_since(first, watermark) == next(starts), f"first {first}, watermark {watermark}"


def last_starts(window: Window) -> None:
    """Of every instant."""
    instants = np.array(_instants(window))
    for instant, found in zip(instants.tolist(), window.last_starts(instants).tolist(), strict=True):
        assert found == max(start for _, start, _ in _spans(window) if start <= instant), f"at {instant}"


def paned(window: Window) -> None:
    """A window begins with the pane of its start, and covers as many as it says; panes lie between edges."""
    step, many = window.extent
    instants = np.array(_instants(window))
    panes = window.pane_numbers(instants)
    edges = set(edges_between(window.edges(), int(instants[0]), int(instants[-1])))
    for instant, grown in zip(instants[1:].tolist(), np.diff(panes).tolist(), strict=True):
        assert grown == (1 if instant in edges else 0), f"the pane number grows by {grown} at {instant}"
    starts = [start for _, start, end in _spans(window) if instants[0] <= start and end <= instants[-1]]
    ends = {start: end for _, start, end in _spans(window)}
    first = window.pane_numbers(np.array(starts))
    last = window.pane_numbers(np.array([ends[start] - 1 for start in starts]))
    assert (last - first + 1 == many).all(), f"windows cover {set((last - first + 1).tolist())} panes, not {many}"
    assert (np.diff(first) == step).all(), f"windows start {set(np.diff(first).tolist())} panes apart, not {step}"


def shared(window: Window) -> None:
    """The slicing stands for the panes, and is its own."""
    slicing, instants = window.slicing, np.array(_instants(window))
    assert slicing == slicing.slicing and hash(slicing) == hash(slicing.slicing)
    assert (slicing.pane_numbers(instants) == window.pane_numbers(instants)).all()
    assert window.panes_nest_in(slicing) and window.panes_nest_in(window)


def overlapping(window: Window) -> None:
    """On average over many instants."""
    instants = _instants(window)
    held = sum(start <= instant < end for instant in instants for _, start, end in _spans(window))
    longest = max(end - start for _, start, end in _spans(window))
    assert abs(held / len(instants) - window.overlap) <= longest / len(instants) + 1e-9
    assert window.slices >= 0 and window.per_second > 0
