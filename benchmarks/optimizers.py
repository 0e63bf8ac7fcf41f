"""The optimizers against the papers: 000 Fig. 4-11 and 14, 004 Fig. 34-46 with Tables 6, 9 and 10, and our own bars.

Run one experiment, all of them, or only the report::

    python benchmarks/optimizers.py quality
    python benchmarks/optimizers.py quality --only skew
    python benchmarks/optimizers.py everything
    python benchmarks/optimizers.py report

An experiment leaves its rows in ``benchmarks/results/optimizers-NAME.json`` and its figure in ``docs/figures``; the
report reads the rows and writes ``docs/benchmarks-optimizers.md``, the papers' claims beside what was measured. Times
are CPU seconds of one process, so that a busy machine does not change them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import lcm
from pathlib import Path
from random import Random
from resource import RUSAGE_CHILDREN, getrusage
from statistics import mean
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import altair as alt
import typer
import vl_convert

from weft.optimize import optimize
from weft.optimize.cost import two_level
from weft.optimize.incremental import IncrementalWeaveShare
from weft.optimize.items import Item, items_of
from weft.optimize.loom import Loom
from weft.optimize.omega import TechniqueCode
from weft.optimize.registry import NODE_OPTIMIZERS
from weft.optimize.weave_share import weave_share
from weft.optimize.workload import Workload
from weft.plan.forest import Forest
from weft.slicing.density import prime_factors
from weft.slicing.edge_rate import Method, edge_rate
from weft.slicing.edges_bitmap import EdgesBitmap, OverBudgetError
from weft.slicing.progression import Progression, composite_slide, edges_between, prune
from weft.slicing.time_window import TimeWindow

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FIGURES = ROOT / "docs" / "figures"
Row = dict[str, Any]
PATIENCE = 60.0
"""CPU seconds after which a method counts as dead."""


def items(*, milliseconds: bool = False, **parameters: Any) -> tuple[Item, ...]:
    """What a workload comes to; 000's slides of 1 to 100,000 only make sense as milliseconds at its input rates."""
    questions = Workload(**parameters).questions()
    if milliseconds:
        questions = [(name, TimeWindow(one.range // 1000, one.slide // 1000)) for name, one in questions]
    return items_of(questions)


def planned(some: tuple[Item, ...], rate: float, optimizer: str, **options: Any) -> tuple[Forest, float]:
    began = process_time()
    forest = optimize(some, rate, optimizer, **{"model": "two-level", **options})
    return forest, process_time() - began


# -- 000: quality of plans ---------------------------------------------------------------------------------------

OPTIMIZERS = ("no-share", "random", "shared", "insert-then-weave", "local-search", "weave-share", "weft")
SLOW_FROM = {"local-search": 300, "weft": 600}


def quality(only: str) -> Iterator[Row]:
    """Cost against queries, input rate, overlap and skew (000 Fig. 4-10); slides up to 100,000 ms, real overlaps."""
    if only in ("", "queries"):
        for queries, rate in product((50, 100, 250, 500, 1000), (50.0, 300.0, 10_000.0)):
            yield from compared("queries", queries, rate, queries=queries, max_overlap=50, zipf=0.6)
    if only in ("", "rate"):
        for queries, rate in product((250, 1000), (50.0, 500.0, 2_000.0, 10_000.0, 50_000.0)):
            yield from compared("rate", rate, rate, queries=queries, max_overlap=50, zipf=0.6)
    if only in ("", "overlap"):
        for overlap, rate in product((50, 200, 800, 2000), (100.0, 10_000.0, 100_000.0)):
            yield from compared("overlap", overlap, rate, queries=1000, max_overlap=overlap, zipf=0.6)
    if only in ("", "skew"):
        for skew, queries in product((0.0, 0.6, 1.2, 1.8, 2.4, 3.3), (100, 500)):
            yield from compared("skew", skew, 100.0, queries=queries, max_overlap=10, zipf=skew)


def compared(figure: str, value: float, rate: float, **workload: Any) -> Iterator[Row]:
    some = items(milliseconds=True, max_slide=100_000, real_overlap=True, seed=1, **workload)
    names = OPTIMIZERS if figure == "queries" else ("shared", "weave-share")
    for name in names:
        if workload["queries"] < SLOW_FROM.get(name, 10**9):
            forest, seconds = planned(some, rate, name)
            yield {
                "figure": figure,
                "value": value,
                "rate": rate,
                "queries": workload["queries"],
                "optimizer": name,
            } | {
                "cost": forest.cost,
                "trees": len(forest.trees),
                "seconds": seconds,
            }


def incremental(_: str) -> Iterator[Row]:
    """Deviation from the offline plan against overhead, by tolerance (000 Fig. 11)."""
    some = items(milliseconds=True, queries=500, max_slide=100_000, max_overlap=50, zipf=0.6, seed=1)
    model = two_level(300.0)
    every = (25, 50, 100, 200, 300, 400, len(some))
    offline = {}
    for count in every:
        loom = Loom(some[:count], model, TechniqueCode.PANES)
        weave_share(loom, Random(0))
        offline[count] = loom.cost
    for tolerance in (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, float("inf")):
        forest = IncrementalWeaveShare(Loom(some, model, TechniqueCode.PANES), tolerance)
        errors = []
        for item in range(len(some)):
            forest.add(item)
            if forest.due:
                forest.reconstruct()
            if item + 1 in offline:
                errors.append(forest.loom.cost / offline[item + 1] - 1)
        yield {
            "tolerance": str(tolerance),
            "comparisons": forest.loom.comparisons,
            "deviation": mean(errors),
            "reconstructions": forest.reconstructions,
        }


# -- 000 §8: the effect of each optimization ---------------------------------------------------------------------


def optimizations(_: str) -> Iterator[Row]:
    """Weave Share as first written, then with cost lookup, edges bitmap, probing reorder (000 Fig. 14), and ours."""
    some = items(queries=250, max_slide=5040, max_overlap=10, zipf=0.7, generator="template", seed=1)
    rate = 100.0
    variants: dict[str, tuple[Callable[..., float], bool]] = {
        "as first written": (edges_one_by_one, False),
        "+ cost lookup": (edges_one_by_one, True),
        "+ edges bitmap": (edges_on_bitmap, True),
        "+ probing reorder": (edges_by_probing, True),
    }
    for name, (count, lookup) in variants.items():
        began = process_time()
        cost = textbook_weave_share(some, rate, count, lookup=lookup, patience=600)
        yield {"variant": name, "seconds": process_time() - began, "cost": cost}
    planned(some, rate, "weave-share")
    forest, seconds = planned(some, rate, "weave-share")
    yield {"variant": "ours", "seconds": seconds, "cost": forest.cost}


def edges_one_by_one(one: list[Item], other: list[Item]) -> float:
    """000 Example 4: every edge of one tree is held against every query of the other."""
    left, right = ([edge for item in tree for edge in item.progressions] for tree in (one, other))
    period = composite_slide([*left, *right])
    mine, others = edges_between(left, 0, period), edges_between(right, 0, period)
    common = sum(any((edge - its.offset) % its.step == 0 for its in left) for edge in others)
    return (len(mine) + len(others) - common) / period * 1e6


def edges_on_bitmap(one: list[Item], other: list[Item]) -> float:
    left, right = bitmaps(one, other)
    return float(left.woven(right).rate) * 1e6


def edges_by_probing(one: list[Item], other: list[Item]) -> float:
    left, right = bitmaps(one, other)
    period = lcm(left.marks.size, right.marks.size) * left.unit
    return float(left.rate + right.rate) * 1e6 - left.common(right) / period * 1e6


def bitmaps(one: list[Item], other: list[Item]) -> list[EdgesBitmap]:
    trees = [prune(edge for item in tree for edge in item.progressions) for tree in (one, other)]
    return [EdgesBitmap.of(tree, unit=10**6) for tree in trees]


def edges_by(method: Method) -> Callable[[list[Item], list[Item]], float]:
    def count(one: list[Item], other: list[Item]) -> float:
        return edge_rate((edge for item in (*one, *other) for edge in item.progressions), method).per_second

    return count


def textbook_weave_share(
    some: tuple[Item, ...], rate: float, count: Callable[..., float], *, lookup: bool = True, patience: float = PATIENCE
) -> float:
    """000 Fig. 2, with or without the cost lookup of §8.1; returns the plan's cost."""
    until = process_time() + patience
    trees = {index: [item] for index, item in enumerate(some)}
    rates = {index: edge_rate(item.progressions).per_second for index, item in enumerate(some)}
    savings: dict[tuple[int, int], float] = {}
    woven: dict[tuple[int, int], float] = {}

    def omega(tree: list[Item]) -> float:
        return sum(item.windows_per_edge for item in tree)

    while len(trees) > 1:
        if not lookup:
            savings.clear()
        for one, other in ((one, other) for one in trees for other in trees if one < other):
            if (one, other) not in savings:
                if process_time() > until:
                    raise TimeoutError
                woven[one, other] = count(trees[one], trees[other])
                apart = rates[one] * omega(trees[one]) + rates[other] * omega(trees[other])
                together = woven[one, other] * (omega(trees[one]) + omega(trees[other]))
                savings[one, other] = rate + apart - together
        best = max(savings, key=savings.__getitem__)
        if savings[best] <= 0:
            break
        one, other = best
        trees[one] += trees.pop(other)
        rates[one] = woven[best]
        savings = {pair: saving for pair, saving in savings.items() if not {one, other} & {*pair}}
    return sum(rate + rates[tree] * omega(members) for tree, members in trees.items())


# -- 004 ch. 5: how long edge counting takes ---------------------------------------------------------------------


def edge_rates(_: str) -> Iterator[Row]:
    """Time of one edge rate over the slides 2, 3, ... n+1 (004 Fig. 34) and over n primes."""
    for kind, slides in (
        ("2..n+1", range(2, 200)),
        ("primes", [n for n in range(2, 1000) if prime_factors(n) == (n,)]),
    ):
        for method in ("bitmap", "f1", "factored"):
            for count in (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 40, 80, 160):
                some = [Progression(slide) for slide in slides[:count]]
                if method == "f1" and len(prune(some)) > 21:
                    break
                began = process_time()
                try:
                    edge_rate(some, method)  # type: ignore[arg-type]
                except OverBudgetError:
                    break
                yield {"slides": kind, "method": method, "count": count, "seconds": process_time() - began}


def plan_times(only: str) -> Iterator[Row]:
    """Weave Share's time with each way of counting edges, until it dies (004 Table 6, Fig. 35-39)."""
    experiments: list[tuple[str, Iterable[float], Callable[[float], tuple[dict[str, Any], float]]]] = [
        ("queries", (100, 300, 550, 1000, 10_000, 1_000_000), lambda n: (table_5(n, 1000, 0.5, 10), 0.002)),
        ("max slide", (100, 200, 400, 800, 2000, 10_000), lambda s: (table_5(200, s, 3, 100, "diverse"), 1.0)),
        ("rate", (100, 400, 900, 10_000, 100_000, 1_000_000), lambda rate: (table_5(200, 100, 1, 1000), rate)),
        ("skew", (0, 1, 2.25, 10, 100), lambda skew: (table_5(50, 500, skew, 100), 0.1)),
        ("max overlap", (100, 40, 10, 1), lambda overlap: (table_5(200, 600, 3, overlap, "diverse"), 1.0)),
    ]
    for name, values, parameters in experiments:
        if only not in ("", name):
            continue
        for method in ("bitmap", "f1", "factored"):
            for value in values:
                workload, rate = parameters(value)
                some = items(**workload)
                began = process_time()
                try:
                    cost = textbook_weave_share(some, rate, edges_by(method), patience=30.0)  # type: ignore[arg-type]
                except (OverBudgetError, TimeoutError, MemoryError) as death:
                    yield {"experiment": name, "method": method, "value": value, "died": type(death).__name__}
                    break
                seconds = process_time() - began
                yield {"experiment": name, "method": method, "value": value, "seconds": seconds, "cost": cost}
        for value in values:
            workload, rate = parameters(value)
            forest, seconds = planned(items(**workload), rate, "weave-share")
            yield {"experiment": name, "method": "ours", "value": value, "seconds": seconds, "cost": forest.cost}


def table_5(
    queries: float, max_slide: float, zipf: float, max_overlap: float, generator: str = "normal"
) -> dict[str, Any]:
    numbers = {
        "queries": int(queries),
        "max_slide": int(max_slide),
        "zipf": zipf,
        "max_overlap": max_overlap,
        "seed": 1,
    }
    return numbers | {"generator": generator}


# -- 004 ch. 6: many nodes ---------------------------------------------------------------------------------------


def nodes(_: str) -> Iterator[Row]:
    """All thirteen optimizers and ours on the 256 combinations of 004 Table 8 (Fig. 40, Tables 9 and 10)."""
    grid = product((250, 500), (25, 50), (0, 1), (10, 100), ("normal", "diverse"), (10.0, 100.0), (4, 8, 16, 32))
    for number, (queries, slide, skew, overlap, generator, rate, count) in enumerate(grid):
        some = items(**table_5(queries, slide, skew, overlap, generator) | {"seed": number})
        for name in (*NODE_OPTIMIZERS, "weft"):
            forest, seconds = planned(some, rate, name, nodes=count, seed=number)
            yield {"experiment": number, "optimizer": name, "nodes": count} | {
                "total": forest.cost,
                "max": forest.max_cost,
                "seconds": seconds,
            }


def balance(_: str) -> Iterator[Row]:
    """Costs of the four nodes (004 Fig. 41)."""
    some = items(queries=250, max_slide=25, zipf=1, max_overlap=100, seed=1)
    for name in (*NODE_OPTIMIZERS, "weft"):
        forest, _ = planned(some, 100.0, name, nodes=4)
        for node, cost in enumerate(forest.node_costs):
            yield {"optimizer": name, "node": node, "cost": cost}


# -- 004 ch. 7: techniques ---------------------------------------------------------------------------------------

COMPARED = ("panes", "flatfat", "flatfit", "slickdeque-inv", "slickdeque-noninv")


def techniques(_: str) -> Iterator[Row]:
    """Plan cost by technique, with Weave Share and TriWeave (004 Fig. 42-46); slides are factors of the largest."""
    usual = {"queries": 100, "max_slide": 1000, "max_overlap": 10_000, "rate": 1.0, "zipf": 0.0}
    sweeps: dict[str, tuple[float, ...]] = {
        "queries": (1, 10, 100, 1000, 10_000),
        "max_slide": (10, 100, 1000, 10_000, 100_000),
        "max_overlap": (100, 1000, 10_000, 100_000, 1_000_000),
        "rate": (0.01, 0.1, 1.0, 10.0, 100.0),
        "zipf": (-1.0, -0.5, 0.0, 0.5, 1.0),
    }
    for parameter, values in sweeps.items():
        for value in values:
            setting = usual | {parameter: value}
            rate = setting.pop("rate")
            workload = {name: number if name == "zipf" else int(number) for name, number in setting.items()}
            some = items(**workload, generator="template", seed=1)
            for technique, optimizer in product(COMPARED, ("weave-share", "tri-weave")):
                forest, _ = planned(some, rate, optimizer, technique=technique)
                yield {"parameter": parameter, "value": value, "technique": technique, "optimizer": optimizer} | {
                    "cost": forest.cost
                }


# -- our bars ----------------------------------------------------------------------------------------------------


def scale(_: str) -> Iterator[Row]:
    """Plan times of the issue's bars, by the command itself where it reads a file."""
    yield from million()
    some = items(queries=20_000, max_slide=1000, max_overlap=10, zipf=0.5, real_overlap=True, seed=1)
    for rate in (0.002, 1.0):
        forest, seconds = planned(some, rate, "weave-share")
        what = f"20,000 queries with real overlap, rate {rate:g}"
        yield {"what": what, "seconds": seconds, "items": len(some), "trees": len(forest.trees), "cost": forest.cost}
    for seed, rate in product((1, 2, 3), (0.002, 1.0)):
        few = items(queries=1000, max_slide=1000, max_overlap=10, zipf=0.5, real_overlap=True, seed=seed)
        bounded = glancing(few, rate)
        plain = optimize(few, rate, "weave-share", model="two-level").cost
        yield {"what": f"bounds against plain, 1,000 queries, rate {rate:g}", "excess": bounded / plain - 1}
    yield from exact_rates()


def glancing(some: tuple[Item, ...], rate: float) -> float:
    """Weave Share with the short horizon and the glances that many items get; the cost as it is reported."""
    from weft.optimize import loom as settings

    kept = settings._bits, settings._GLANCE_FROM
    settings._bits, settings._GLANCE_FROM = (lambda _: settings._FEWEST_BITS), 0
    try:
        loom = Loom(some, two_level(rate), TechniqueCode.PANES)
        return sum(loom.finished(tree).cost for tree in weave_share(loom, Random(0)))
    finally:
        settings._bits, settings._GLANCE_FROM = kept


def million() -> Iterator[Row]:
    weft = "import typer; from weft.cli.{0} import {0}_command; typer.run({0}_command)"
    workload, plan = ([sys.executable, "-c", weft.format(name)] for name in ("workload", "plan"))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "windows.jsonl"
        arguments = [
            "--queries",
            "1000000",
            "--max-slide",
            "1000",
            "--zipf",
            "0.5",
            "--max-overlap",
            "10",
            "--seed",
            "1",
        ]
        with path.open("w") as out:
            subprocess.run([*workload, *arguments], stdout=out, check=True)
        before = getrusage(RUSAGE_CHILDREN)
        options = ["--rate", "0.002", "--optimizer", "weave-share", "--model", "two-level", "--json"]
        run = subprocess.run([*plan, str(path), *options], capture_output=True, check=True)
        after = getrusage(RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    trees = len(json.loads(run.stdout)["trees"])
    yield {"what": "1,000,000 queries, reading included", "seconds": seconds, "trees": trees} | {
        "megabytes": after.ru_maxrss / 1024
    }


def exact_rates() -> Iterator[Row]:
    primes = [number for number in range(2, 10_000) if prime_factors(number) == (number,)]
    rng = Random(1)
    hard = [Progression(prime, offset) for prime in primes for offset in (0, rng.randrange(prime))]
    coprime = [Progression(prime) for prime in primes[:20]]
    for what, edges, method in (
        ("all primes below 10,000 with fragments", hard, "factored"),
        ("20 coprime slides, f1", coprime, "f1"),
        ("20 coprime slides, factored", coprime, "factored"),
    ):
        began = process_time()
        rate = edge_rate(edges, method)  # type: ignore[arg-type]
        yield {"what": what, "seconds": process_time() - began, "exact": rate.exact}


# -- figures -----------------------------------------------------------------------------------------------------


def draw(name: str, rows: list[Row]) -> None:
    chart = CHARTS[name](alt.Data(values=rows))
    if chart is not None:
        FIGURES.mkdir(parents=True, exist_ok=True)
        sized = chart.configure_view(continuousWidth=260, continuousHeight=180)
        picture = vl_convert.vegalite_to_png(sized.to_json(), scale=1.5)
        (FIGURES / f"optimizers-{name.replace('_', '-')}.png").write_bytes(picture)


def _log(field: str, title: str) -> alt.Y:
    return alt.Y(f"{field}:Q", scale=alt.Scale(type="log"), title=title)


def _lines(data: alt.Data, x: str, y: alt.Y, colour: str, column: str, log_x: bool = True) -> alt.Chart:
    scale = alt.Scale(type="log" if log_x else "linear")
    return (
        alt.Chart(data)
        .mark_line(point=True)
        .encode(x=alt.X(f"{x}:Q", scale=scale), y=y, color=f"{colour}:N")
        .facet(f"{column}:N", columns=3)
        .resolve_scale(x="independent", y="independent")
    )


CHARTS: dict[str, Callable[[alt.Data], Any]] = {
    "quality": lambda data: (
        alt.Chart(data)
        .transform_filter("datum.figure == 'queries'")
        .mark_line(point=True)
        .encode(x="queries:Q", y=_log("cost", "operations a second"), color="optimizer:N")
        .facet("rate:N")
        .resolve_scale(y="independent")
    ),
    "incremental": lambda data: (
        alt.Chart(data).mark_point(filled=True, size=60).encode(x="comparisons:Q", y="deviation:Q", color="tolerance:N")
    ),
    "optimizations": lambda data: (
        alt.Chart(data).mark_bar().encode(x=alt.X("variant:N", sort=None), y=_log("seconds", "CPU seconds"))
    ),
    "edge_rates": lambda data: _lines(data, "count", _log("seconds", "CPU seconds"), "method", "slides"),
    "plan_times": lambda data: _lines(data, "value", _log("seconds", "CPU seconds"), "method", "experiment"),
    "nodes": lambda data: (
        alt.Chart(data)
        .mark_boxplot()
        .encode(x="optimizer:N", y=alt.Y("above:Q", title="cost above the best"))
        .transform_joinaggregate(best="min(total)", groupby=["experiment"])
        .transform_calculate(above="datum.total / datum.best - 1")
        .properties(width=520)
    ),
    "balance": lambda data: (
        alt.Chart(data).mark_bar().encode(x="optimizer:N", y="cost:Q", color="node:N", xOffset="node:N")
    ),
    "techniques": lambda data: (
        alt.Chart(data)
        .mark_line(point=True)
        .encode(
            x=alt.X("value:Q", scale=alt.Scale(type="symlog")),
            y=_log("cost", "operations a second"),
            color="technique:N",
            strokeDash="optimizer:N",
        )
        .facet("parameter:N", columns=3)
        .resolve_scale(x="independent", y="independent")
    ),
    "scale": lambda _: None,
    "reality": lambda data: (
        alt.Chart(data)
        .mark_point(filled=True, size=50)
        .encode(
            x=alt.X("predicted:Q", scale=alt.Scale(type="log"), title="predicted seconds"),
            y=_log("measured", "measured seconds"),
            color="plan:N",
        )
        .properties(width=420, height=420)
    ),
    "throughput": lambda data: (
        alt.Chart(data)
        .transform_fold(["estimated", "actual", "calibrated"], as_=["what", "throughput"])
        .transform_joinaggregate(most="max(throughput)", groupby=["optimizer", "what"])
        .transform_calculate(share="datum.throughput / datum.most")
        .mark_bar()
        .encode(x="what:N", y=alt.Y("share:Q", title="throughput, the largest as 1"), color="what:N")
        .facet(column="technique:N", row="optimizer:N")
    ),
}

EXPERIMENTS: dict[str, Callable[[str], Iterator[Row]]] = {
    "quality": quality,
    "incremental": incremental,
    "optimizations": optimizations,
    "edge_rates": edge_rates,
    "plan_times": plan_times,
    "nodes": nodes,
    "balance": balance,
    "techniques": techniques,
    "scale": scale,
}


PARTS = {"quality": "figure", "plan_times": "experiment"}
"""Experiments that can be run a part at a time, and the column that names the part."""


def run(name: str, only: str = "") -> None:
    planned(items(queries=20, max_slide=50, max_overlap=5, seed=0), 1.0, "weft")  # compiled code is loaded
    path = RESULTS / f"optimizers-{name}.json"
    kept = json.loads(path.read_text()) if only and path.exists() else []
    rows = [row for row in kept if row[PARTS[name]] != only] + list(EXPERIMENTS[name](only))
    RESULTS.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f"[\n{lines}\n]\n")
    draw(name, rows)


def main(
    name: str = typer.Argument(help=", ".join((*EXPERIMENTS, "everything", "report"))),
    only: str = typer.Option("", help="Of quality and plan_times: one figure, such as skew."),
) -> None:
    if name in EXPERIMENTS:
        run(name, only)
    elif name == "everything":
        for one in EXPERIMENTS:
            run(one)
    if name not in EXPERIMENTS:
        from optimizers_report import write_report

        for one in ("reality", "throughput"):  # left by optimizers_reality.py, which runs on Spark
            path = RESULTS / f"optimizers-{one}.json"
            if path.exists():
                draw(one, json.loads(path.read_text()))

        write_report(RESULTS, ROOT / "docs" / "benchmarks-optimizers.md")


if __name__ == "__main__":
    typer.run(main)
