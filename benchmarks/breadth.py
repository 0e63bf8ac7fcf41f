"""What a batch run grows with, in two checkouts: queries, sets of keys, aggregates of a query, predicates.

    python benchmarks/breadth.py BEFORE AFTER [--page docs/benchmarks-breadth.md]

300,000 rows, from Parquet to written Parquet. Each checkout has a process of its own with one session; a size is run
twice, by turns, and the second time counts, so that Java has compiled what it compiles. A checkout that takes more than
two minutes for a size is not asked for a larger one. A checkout uses the packages of the Python that runs this.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import altair as alt

from checkouts import HERE, Side, Workload, side
from techniques_report import figure, table

ROWS = 300_000
PATIENCE = 120.0
SIZES = {
    "queries": (1, 10, 100, 1_000, 10_000),
    "sets of keys": (1, 10, 40, 100, 300),
    "aggregates of one query": (1, 10, 100, 1_000),
    "predicates": (1, 10, 100, 1_000),
}
PICTURE = "breadth.svg"


def answered(texts: Callable[[], str], source: Callable[[Path], Path], stream: str) -> Workload:
    """All queries over the rows, written to the end."""

    def run(spark: Any, work: Path, folder: Path) -> None:
        from weft import Engine

        engine = Engine(spark).stream(stream, spark.read.parquet(str(source(work))), "ts")
        engine.sql(texts())
        engine.run().write(str(folder / "out"))

    return run


def trades(work: Path) -> Path:
    """Some trades of ``thousand.py``."""
    from workload_thousand import write_trades

    return write_trades(work, ROWS)


def keyed_rows(work: Path) -> Path:
    """Some rows of ``keysets.py``, which an earlier checkout does not have."""
    return work / f"keysets-{ROWS}.parquet"


def many_queries(count: int) -> str:
    """The first queries of ``thousand.py``, and on."""
    from workload_thousand import queries, query_file

    return query_file(queries(count))


def many_aggregates(count: int) -> str:
    """One query with so many different aggregates."""
    functions = ("sum(price + {0})", "max(volume + {0})", "avg(bid * {0})", "min(ask - {0})")
    calls = ", ".join(f"{functions[n % 4].format(n)} AS a{n}" for n in range(count))
    return f"SELECT symbol, window.start AS w, {calls} FROM trades GROUP BY symbol, window(ts, '1 hour', '10 minutes')"


def many_predicates(count: int) -> str:
    """A query for each of so many different predicates."""
    return ";\n".join(
        f"-- name: p{n}\nSELECT symbol, window.start AS w, count(*) AS n, sum(volume) AS v FROM trades "
        f"WHERE volume >= {n} AND price < {50 + n} GROUP BY symbol, window(ts, '1 hour', '10 minutes')"
        for n in range(count)
    )


def workloads(keyed: dict[int, str]) -> dict[str, Workload]:
    """By direction and size, as they are asked for."""
    texts: dict[str, Callable[[int], str]] = {
        "queries": many_queries,
        "sets of keys": keyed.__getitem__,
        "aggregates of one query": many_aggregates,
        "predicates": many_predicates,
    }
    return {
        f"{direction} {size}": answered(
            partial(texts[direction], size), *((keyed_rows, "t") if direction == "sets of keys" else (trades, "trades"))
        )
        for direction, sizes in SIZES.items()
        for size in sizes
    }


def keyed_texts() -> dict[int, str]:
    """The queries of ``keysets.py``, one a set of keys."""
    import keysets

    return {count: ";\n".join(keysets.queries(count, 1)) for count in SIZES["sets of keys"]}


def measured(sides: dict[str, Side], direction: str) -> list[tuple[int, dict[str, float]]]:
    """Seconds by size and checkout."""
    found: list[tuple[int, dict[str, float]]] = []
    asked = list(sides)
    for size in SIZES[direction]:
        seconds: dict[str, float] = {}
        for _ in range(2):
            for at in asked:
                if seconds.get(at, 0.0) < PATIENCE / 4:
                    seconds[at] = sides[at].run(f"{direction} {size}")["seconds"]
        found.append((size, seconds))
        asked = [at for at in asked if seconds[at] < PATIENCE]
        print(direction, size, {at: round(value, 2) for at, value in seconds.items()}, flush=True)
    return found


def drawn(found: dict[str, list[tuple[int, dict[str, float]]]], folder: Path) -> None:
    """A picture of all directions."""
    points = [
        {"direction": direction, "size": size, "seconds": seconds, "checkout": at}
        for direction, sizes in found.items()
        for size, by in sizes
        for at, seconds in by.items()
    ]
    lines = alt.Chart(alt.Data(values=points)).mark_line(point=True)
    chart = lines.encode(
        x=alt.X("size:Q", scale=alt.Scale(type="log"), title=None),
        y=alt.Y("seconds:Q", scale=alt.Scale(type="log")),
        color=alt.Color("checkout:N", sort=["before", "after"]),
    ).properties(width=260, height=180)
    chart.facet(facet=alt.Facet("direction:N", title=None), columns=2).save(str(folder / PICTURE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side(options.side, workloads(kept_texts(options.side)))
        return

    import keysets

    before, after = options.checkouts
    with tempfile.TemporaryDirectory(prefix="weft-breadth-") as name:
        work = Path(name)
        keysets.write_rows(work, ROWS)
        (work / "keyed.json").write_text(json.dumps(keyed_texts()))
        sides = {
            at: Side(one.resolve(), work, HERE / "breadth.py") for at, one in (("before", before), ("after", after))
        }
        found = {direction: measured(sides, direction) for direction in SIZES}
        for each in sides.values():
            each.end()
    rows = [
        (direction, size, *(f"{by[at]:.2f}" if at in by else "over two minutes before" for at in ("before", "after")))
        for direction, sizes in found.items()
        for size, by in sizes
    ]
    text = table(("direction", "size", "before, s", "after, s"), rows)
    print(text)
    if options.page:
        drawn(found, options.page.parent / "figures")
        about = (__doc__ or "").split("\n\n")[2]
        options.page.write_text(f"# What a batch run grows with\n\n{about}\n\n{figure(PICTURE, 'growth')}\n\n{text}\n")


def kept_texts(work: Path) -> dict[int, str]:
    """What the parent wrote down of ``keysets.py``."""

    return {int(count): text for count, text in json.loads((work / "keyed.json").read_text()).items()}


if __name__ == "__main__":
    main()
