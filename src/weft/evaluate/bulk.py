"""Bulk kernels: many partials of many keys at once, many answers a call.

This is what Spark delivers. ``values`` holds the partials of many keys, one key after another and in time order within
a key; answer ``i`` covers ``values[lo[i]:hi[i]]``. Neither ``lo`` nor ``hi`` ever falls, as keys lie one after another
and a window never spans two, so one pass serves all keys.

Exact invertible monoids keep a running total, or take a difference of prefixes that several calls share. All others
run one flip after another, the bulk form of TwoStacks and of van Herk's block maxima: at a flip the window's suffixes
are aggregated once, later windows merge the suffix at their start with the run of what arrived since. Only partials
of a window ever enter its answer, so nothing that left it leaves a trace. A monotonic deque is measured slower for
one range a pass, as its branches mispredict.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from weft.algebra.monoid import Monoid
from weft.algebra.monoids import MONOIDS
from weft.algebra.numbers import Columns
from weft.evaluate.columns import empty_columns, frozen, identity_columns, load, store
from weft.evaluate.compile import bind, identity, invert, merge


def slide(monoid: Monoid, values: Columns, lo: np.ndarray, hi: np.ndarray, *, threads: int = 1) -> Columns:
    """Merge ``values[lo[i]:hi[i]]``, in order, for every ``i``.

    Parameters
    ----------
    monoid
        The operation.
    values
        One C-contiguous array a column of the monoid.
    lo, hi
        int64, neither ever falling, ``0 <= lo <= hi <= len(values[0])``.
    threads
        More than one cuts the answers into that many stretches and runs them side by side; kernels hold no lock. A
        Spark task owns one core, so there it stays at one.

    Returns
    -------
    tuple of arrays
        One a column, as long as ``lo``; the identity where a window is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from weft.algebra.monoids import max_int
    >>> values = (np.array([3, 1, 4, 1, 5]),)
    >>> slide(max_int, values, np.array([0, 0, 1, 2]), np.array([1, 2, 4, 5]))
    (array([3, 3, 4, 5]),)
    """
    run = _running_stretch if monoid.invertible else _flip_stretch
    return _in_stretches(run, monoid, values, lo, hi, threads)


def slide_prefix(monoid: Monoid, prefixes: Columns, lo: np.ndarray, hi: np.ndarray, *, threads: int = 1) -> Columns:
    """``slide`` from prefixes that :func:`prefix` made, so that several sets of windows can share them.

    Examples
    --------
    >>> import numpy as np
    >>> from weft.algebra.monoids import add_int
    >>> prefixes = prefix(add_int, (np.array([3, 1, 4, 1, 5]),))
    >>> slide_prefix(add_int, prefixes, np.array([0, 2]), np.array([2, 5]))
    (array([ 4, 10]),)
    """
    return _in_stretches(_prefix_stretch, monoid, prefixes, lo, hi, threads)


def prefix(monoid: Monoid, values: Columns) -> Columns:
    """Aggregates of ``values[:i]`` for every i from 0 to n: n + 1 rows, the first of them the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from weft.algebra.monoids import add_int
    >>> prefix(add_int, (np.array([3, 1, 4]),))
    (array([0, 3, 4, 8]),)
    """
    out = empty_columns(monoid, len(values[0]) + 1)
    bind(_prefix, monoid)(frozen(values), out)
    return out


def reduce_segments(monoid: Monoid, values: Columns, pointers: np.ndarray) -> Columns:
    """Merge ``values[pointers[i]:pointers[i + 1]]``, in order, for every ``i``; no segment may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from weft.algebra.monoids import add_int
    >>> reduce_segments(add_int, (np.array([3, 1, 4, 1, 5]),), np.array([0, 2, 5]))
    (array([ 4, 10]),)
    """
    out = empty_columns(monoid, len(pointers) - 1)
    bind(_reduce, monoid)(frozen(values), *frozen((pointers,)), out)
    return out


def merge_segments(monoid: Monoid, older: Columns, newer: Columns, order: np.ndarray, pointers: np.ndarray) -> Columns:
    """:func:`reduce_segments` of two lists, whose rows follow each other as ``order`` tells.

    Rows of ``older`` are numbered from 0, those of ``newer`` from the length of ``older``.

    Examples
    --------
    >>> import numpy as np
    >>> from weft.algebra.monoids import add_int
    >>> merge_segments(add_int, (np.array([3, 1]),), (np.array([4]),), np.array([0, 2, 1]), np.array([0, 2, 3]))
    (array([7, 1]),)
    """
    out = empty_columns(monoid, len(pointers) - 1)
    bind(_merge, monoid)(frozen(older), frozen(newer), *frozen((order, pointers)), out)
    return out


STEPS = len(MONOIDS)
"""Groups of kernels that are compiled one after another."""


def warm(report: Callable[[int], object] = lambda done: None) -> None:
    """Compile every bulk kernel into numba's cache on disk, so that no Spark task compiles one; tells how many are."""
    two = np.array([0, 1], np.int64)
    for number, monoid in enumerate(MONOIDS.values(), start=1):
        values = identity_columns(monoid, 1)
        slide(monoid, values, two[:1], two[1:])
        if monoid.invertible:
            slide_prefix(monoid, prefix(monoid, values), two[:1], two[1:])
        reduce_segments(monoid, values, two)
        merge_segments(monoid, values, values, two, two)
        report(number)


def _in_stretches(
    run: Callable[..., None], monoid: Monoid, source: Columns, lo: np.ndarray, hi: np.ndarray, threads: int
) -> Columns:
    """``run`` on all answers at once, or on ``threads`` neighbouring stretches of them, each of which stands alone."""
    out = empty_columns(monoid, len(lo))
    source, (lo, hi) = frozen(source), frozen((lo, hi))
    if threads == 1 or len(lo) < threads:
        run(monoid, source, lo, hi, out)
        return out
    cuts = np.linspace(0, len(lo), threads + 1).astype(np.int64)
    with ThreadPoolExecutor(threads) as pool:
        stretches = [slice(start, end) for start, end in itertools.pairwise(cuts)]
        running = [
            pool.submit(run, monoid, source, lo[part], hi[part], tuple(column[part] for column in out))
            for part in stretches
        ]
        for stretch in running:
            stretch.result()
    return out


def _prefix_stretch(monoid: Monoid, prefixes: Columns, lo: np.ndarray, hi: np.ndarray, out: Columns) -> None:
    bind(_prefix_difference, monoid)(prefixes, lo, hi, out)


def _running_stretch(monoid: Monoid, values: Columns, lo: np.ndarray, hi: np.ndarray, out: Columns) -> None:
    bind(_running, monoid)(values, lo, hi, out)


def _flip_stretch(monoid: Monoid, values: Columns, lo: np.ndarray, hi: np.ndarray, out: Columns) -> None:
    bind(_flip, monoid)(values, lo, hi, empty_columns(monoid, widest(lo, hi)), out)


@njit(cache=True, nogil=True)
def widest(lo: np.ndarray, hi: np.ndarray) -> int:
    """The most partials that one window covers."""
    most = 0
    for answer in range(len(lo)):
        most = max(most, hi[answer] - lo[answer])
    return most


# --------------------------------------------------------------------------------------------------------- templates


def _prefix(values: Columns, out: Columns) -> None:
    total = identity
    store(out, 0, total)
    for index in range(len(values[0])):
        total = merge(total, load(values, index))
        store(out, index + 1, total)


def _prefix_difference(prefixes: Columns, lo: np.ndarray, hi: np.ndarray, out: Columns) -> None:
    for answer in range(len(lo)):
        store(out, answer, invert(load(prefixes, hi[answer]), load(prefixes, lo[answer])))


def _running(values: Columns, lo: np.ndarray, hi: np.ndarray, out: Columns) -> None:
    first = last = 0  # total aggregates values[first:last]
    total = identity
    for answer in range(len(lo)):
        start, end = lo[answer], hi[answer]
        if start >= last:
            first, last, total = start, start, identity
        while last < end:
            total = merge(total, load(values, last))
            last += 1
        while first < start:
            total = invert(total, load(values, first))
            first += 1
        store(out, answer, total)


def _reduce(values: Columns, pointers: np.ndarray, out: Columns) -> None:
    for segment in range(len(pointers) - 1):
        total = load(values, pointers[segment])
        for index in range(pointers[segment] + 1, pointers[segment + 1]):
            total = merge(total, load(values, index))
        store(out, segment, total)


def _merge(older: Columns, newer: Columns, order: np.ndarray, pointers: np.ndarray, out: Columns) -> None:
    known = len(older[0])
    for segment in range(len(pointers) - 1):
        total = identity
        for index in range(pointers[segment], pointers[segment + 1]):
            row = order[index]
            if row < known:
                total = load(older, row) if index == pointers[segment] else merge(total, load(older, row))
            else:
                total = (
                    load(newer, row - known) if index == pointers[segment] else merge(total, load(newer, row - known))
                )
        store(out, segment, total)


def _flip(values: Columns, lo: np.ndarray, hi: np.ndarray, suffixes: Columns, out: Columns) -> None:
    front_start = 0  # suffixes[k] aggregates values[front_start + k : flipped]
    flipped = 0
    back_end = 0  # back aggregates values[flipped:back_end]
    back = identity
    for answer in range(len(lo)):
        start, end = lo[answer], hi[answer]
        if start >= flipped:
            total = identity
            for index in range(end - 1, start - 1, -1):
                total = merge(load(values, index), total)
                store(suffixes, index - start, total)
            front_start, flipped, back_end, back = start, end, end, identity
            store(out, answer, total)
        else:
            while back_end < end:
                back = merge(back, load(values, back_end))
                back_end += 1
            store(out, answer, merge(load(suffixes, start - front_start), back))
