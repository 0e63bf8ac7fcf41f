"""Work of several threads whose results are used by one: kernels, Arrow and sorts do not hold Python up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from threading import Event
from typing import TypeVar

Given = TypeVar("Given")
Item = TypeVar("Item")
WAITING = 32
"""So many results wait to be used at most: they are in memory."""
LOOK_UP = 0.1
"""Seconds after which a thread that waits looks whether it is still wanted."""


def mapped(function: Callable[[Given], Item], items: Iterable[Given], threads: int) -> Iterator[Item]:
    """What a function makes of items, in their order; no more of these are asked for than there are threads.

    Examples
    --------
    >>> list(mapped(lambda number: number * 2, [1, 2, 3], threads=2))
    [2, 4, 6]
    """
    under_way: deque[Future[Item]] = deque()
    with ThreadPoolExecutor(threads, "weft-side") as pool:
        for item in items:
            under_way.append(pool.submit(function, item))
            if len(under_way) == threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def side_by_side(work: Sequence[Iterable[Item]], threads: int) -> Iterator[Item]:
    """What several iterators give, each in its own order, some read at the same time; those that come first begin.

    Examples
    --------
    >>> sorted(side_by_side([iter([1, 2]), iter([3]), iter([])], threads=2))
    [1, 2, 3]
    """
    made: Queue[tuple[Item] | None] = Queue(WAITING)
    unwanted = Event()

    def hand_over(item: tuple[Item] | None) -> bool:
        while not unwanted.is_set():
            try:
                made.put(item, timeout=LOOK_UP)
            except Full:
                continue
            return True
        return False

    def read(items: Iterable[Item]) -> None:
        try:
            for item in items:
                if not hand_over((item,)):
                    return
        finally:
            hand_over(None)

    with ThreadPoolExecutor(threads, "weft-side") as pool:
        try:
            reading = [pool.submit(read, items) for items in work]
            left = len(work)
            while left:
                item = made.get()
                if item is None:
                    left -= 1
                else:
                    yield item[0]
            for end in reading:
                end.result()
        finally:
            unwanted.set()
            pool.shutdown(cancel_futures=True)
