"""The hostile-query suite: every kind beside 50 good queries, in batch and live, before and after a restart.

``python tests/hostile/suite.py [docs/hostile.md]`` prints what each got, and writes a page. It takes minutes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from hostile.kinds import KINDS, Kind, good_queries
from hostile.neighbours import Got, Neighbourhood, batch_answers, rows_of, wrong
from weft.launch.session import local_session

GOOD = 50
MOMENTS = {"in its first batch": (0, 0), "in a later batch": (1, 2), "after a restart": (1, 3)}
"""When hostile queries are added, and which batch has what triggers them."""


def in_batch(spark: object, folder: Path) -> Got:
    """What each kind got in a run."""
    good = good_queries(GOOD)
    rows = [row for batch in rows_of(3, trigger=1) for row in batch]
    expected, _ = batch_answers(spark, folder / "alone", good, (), rows)
    found, got = batch_answers(spark, folder / "beside", good, KINDS, rows)
    check(found == expected, got)
    return got


def in_stream(spark: object, folder: Path, moment: str) -> Got:
    """What each kind got in a stream."""
    good = good_queries(GOOD)
    added, trigger = MOMENTS[moment]
    alone, beside = (Neighbourhood(spark, folder / name, good) for name in ("alone", "beside"))
    for number, rows in enumerate(rows_of(5, trigger)):
        if number == added:
            beside.add(KINDS)
        if moment == "after a restart" and number == trigger:
            beside.restart()
        alone.feed(rows)
        beside.feed(rows)
    check(beside.answers() == alone.answers(), beside.got)
    return beside.got


def check(equal: bool, got: Got) -> None:
    """The good queries noticed nothing, and every hostile one got what it should."""
    assert equal, "the answers of the good queries differ"
    assert not wrong(KINDS, got), wrong(KINDS, got)


def row(kind: Kind, everywhere: dict[str, Got]) -> str:
    """A line of the table."""
    name = "../x y" if kind.name == "odd_name" else kind.name
    said = [got.get(name) for got in everywhere.values()]
    moments = " | ".join("answered" if one is None else one.split(":")[0] for one in said)
    reason = next((one.split(": ", 1)[1] for one in said if one), "")
    lines = reason.removeprefix(f"query {kind.name}: ").splitlines()
    short = lines[0].replace("|", "\\|")[:150] if lines else ""
    text = kind.text if len(kind.text) < 90 else f"{kind.text[:87]}..."
    return f"| {kind.name} | {kind.stage} | `{text.replace('|', '¦')}` | {moments} | {short} |"


def main(page: Path | None) -> None:
    """Run all, print the table, write the page."""
    spark = local_session(memory="1g")
    everywhere: dict[str, Got] = {}
    with tempfile.TemporaryDirectory() as folder:
        for what in ("run", *MOMENTS):
            began = time.perf_counter()
            root = Path(folder) / what.replace(" ", "-")
            everywhere[what] = in_batch(spark, root) if what == "run" else in_stream(spark, root, what)
            print(f"{what}: {time.perf_counter() - began:.0f} s, {GOOD} good queries as without", flush=True)
    table = "\n".join(row(kind, everywhere) for kind in KINDS)
    print(table)
    if page is not None:
        page.write_text(PAGE.format(kinds=len(KINDS), good=GOOD, table=table))


PAGE = """# Queries that ask for trouble

What {kinds} kinds of them got beside {good} good queries, whose answers were the same as without them: in a run, and
in a stream where what they stumble over came in their first batch, in a later one, and after a restart.

Written by `python tests/hostile/suite.py docs/hostile.md`. The limits are those of the suite (50,000 answers, 30 keys),
the JVM has 1 GB.

In the stream they were put into the catalog, as `weft add` does: what cannot be bound is refused before the batch that
it would first be in.

| kind | where | text | in a run | first batch | later batch | after a restart | why |
|---|---|---|---|---|---|---|---|
{table}

A query that kills the JVM (`kill -9` while it is computed) is in `tests/hostile/test_killed_jvm.py`: the next starts
find it.
"""

if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
