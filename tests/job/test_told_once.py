"""What the catalog has to be told it is told once, whoever comes by."""

from __future__ import annotations

import threading
import time
from collections import Counter

from weft.job.query_registry import QueryRegistry


class SlowCatalog:
    """Takes its time, so that two threads meet in it."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()

    def refuse(self, name: str, reason: str, *, id: int) -> None:
        time.sleep(0.01)
        self.told[name] += 1


def test_two_threads_that_tell_the_catalog_tell_everything_once():
    catalog = SlowCatalog()
    registry = QueryRegistry(lambda texts: ({}, {}), catalog, None)
    registry.refusals += [(number, f"q{number}", "no") for number in range(10)]
    errors: list[BaseException] = []

    def tell() -> None:
        try:
            registry.catch_up()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert catalog.told == Counter({f"q{number}": 1 for number in range(10)})
