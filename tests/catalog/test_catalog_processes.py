"""Many processes change one catalog at once: nothing is lost, nothing is twice."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable

from weft.catalog import Catalog
from weft.errors import WeftError

PROCESSES = 4
ROUNDS = 12

SPAWN = multiprocessing.get_context("spawn")


def query(name: str, minutes: int = 5) -> str:
    return f"CREATE VIEW {name} AS SELECT count(*) AS n FROM t GROUP BY window(ts, '{minutes} minutes')"


def at_once(work: Callable[..., object], url: str) -> list[object]:
    """What the processes gave back; all of them begin when all are there."""
    with SPAWN.Manager() as manager:
        gate = manager.Barrier(PROCESSES)
        with SPAWN.Pool(PROCESSES) as pool:
            return pool.starmap(work, [(url, number, gate) for number in range(PROCESSES)], chunksize=1)


def open_first(url: str, number: int, gate: object) -> str:
    gate.wait()  # type: ignore[attr-defined]
    with Catalog.open(url) as catalog:
        return catalog.uid()


def test_all_that_open_a_new_catalog_at_once_open_the_same_one(url: str) -> None:
    assert len(set(at_once(open_first, url))) == 1


def add_many(url: str, number: int, gate: object) -> list[str]:
    with Catalog.open(url) as catalog:
        gate.wait()  # type: ignore[attr-defined]
        added = [
            catalog.add("SELECT count(*) AS n FROM t GROUP BY window(ts, '1 hour')")[0].name for _ in range(ROUNDS)
        ]
        catalog.put_status({"state": "running", "batch": number})
        return added


def test_queries_without_names_that_are_added_at_once_get_different_ones(url: str) -> None:
    names = [name for some in at_once(add_many, url) for name in some]  # type: ignore[attr-defined]
    assert sorted(names, key=lambda name: int(name[1:])) == [f"q{n}" for n in range(1, PROCESSES * ROUNDS + 1)]
    with Catalog.open(url) as catalog:
        assert len(catalog.entries("pending")) == PROCESSES * ROUNDS
        assert catalog.version() == PROCESSES * ROUNDS


def fight(url: str, number: int, gate: object) -> Counter[str]:
    """Add, accept and drop the same name again and again; most attempts are refused."""
    done: Counter[str] = Counter()
    with Catalog.open(url) as catalog:
        gate.wait()  # type: ignore[attr-defined]
        for turn in range(ROUNDS):
            for what, change in (
                ("added", lambda turn=turn: catalog.add(query("contested", turn + 1))),
                ("accepted", lambda turn=turn: catalog.accept("contested", turn)),
                ("dropped", lambda: catalog.drop("contested")),
            ):
                try:
                    done[what] += bool(change())
                except WeftError as error:
                    assert "contested" in str(error), error
                    done["turned away"] += 1
                if turn == 0 and what == "added":
                    gate.wait()  # type: ignore[attr-defined]  # all have tried before the first one drops
    return done


def test_a_contested_name_belongs_to_one_query_at_a_time(url: str) -> None:
    done: Counter[str] = sum(at_once(fight, url), Counter())  # type: ignore[arg-type]
    with Catalog.open(url) as catalog:
        told = Counter(change.action for change in catalog.changes())
        alive = False
        for change in catalog.changes():
            if change.action in ("added", "dropped"):
                assert alive == (change.action == "dropped"), "added and dropped take turns"
                alive = change.action == "added"
        assert {what: told[what] for what in ("added", "accepted", "dropped")} == {
            what: done[what] for what in ("added", "accepted", "dropped")
        }
        assert len(catalog.entries("pending", "active")) == alive
    assert done["turned away"] >= PROCESSES - 1, "only one of the first attempts to add can succeed"


def read_while_others_write(url: str, number: int, gate: object) -> int:
    with Catalog.open(url) as catalog:
        gate.wait()  # type: ignore[attr-defined]
        if number % 2:
            for turn in range(ROUNDS):
                catalog.add(f"{query(f'a_{number}_{turn}')}; {query(f'b_{number}_{turn}')}")
            return 0
        halves = 0
        for _ in range(10 * ROUNDS):
            names = {entry.name for entry in catalog.entries()}
            halves += sum(name.startswith("a_") and name.replace("a_", "b_") not in names for name in names)
            catalog.version()
        return halves


def test_a_reader_never_sees_half_of_a_change(url: str) -> None:
    assert sum(at_once(read_while_others_write, url)) == 0  # type: ignore[arg-type]
