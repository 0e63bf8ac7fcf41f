"""Incremental evaluation measured: paper 004's experiments (chapters 3 and 4), our speed bars, and the figures.

    .venv/bin/python benchmarks/techniques.py [--quick]

Writes docs/benchmarks-techniques.md and docs/figures/techniques-*.png; prints each section as it is done.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np

import techniques_figures as figures
from techniques_bars import WINDOW, keys_in_step, speed_bars
from techniques_counts import Point, count_all, deque_lengths
from techniques_latency import latencies, trimmed
from techniques_report import Report, figure, table
from techniques_theory import PARTIALS
from techniques_throughput import Timed, all_ranges, rows_of, single
from techniques_timing import Runner, Turns, ratio
from weft.algebra.monoids import add_int, max_int
from weft.evaluate import TECHNIQUES

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "figures"


class Scale:
    """How much of everything is measured."""

    def __init__(self, *, quick: bool) -> None:
        self.turns = 3 if quick else 7
        self.windows = [4**k for k in range(6 if quick else 13)]
        self.all_ranges = [4**k for k in range(5 if quick else 13)]
        self.counted = [4**k for k in range(2, 5 if quick else 9)]
        self.latency_items = 100_000 if quick else 1_000_000
        self.items = 1 << (18 if quick else 21)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller windows and 3 turns, to see that all of it runs")
    scale = Scale(quick=parser.parse_args().quick)
    begin = time.perf_counter()
    report = Report("Techniques, measured", _introduction(scale))
    bars(report, scale)
    counts(report, scale)
    timed = throughput(report, scale)
    spikes = latency(report, scale)
    memory(report, scale)
    claims(report, timed, spikes)
    report.parts.append(f"The whole run took {time.perf_counter() - begin:.0f} s.")
    report.write(DOCS / "benchmarks-techniques.md")


def _introduction(scale: Scale) -> str:
    return (
        f"Made by `.venv/bin/python benchmarks/techniques.py` on {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, on one core. CPU times are medians of {scale.turns} turns in which all "
        "contenders take part one after another; a ratio is taken within each turn, and its spread stands behind it in "
        "brackets. Data: a synthetic sensor stream in the shape of DEBS 2012 (100 Hz, energy readings as integers), or "
        "random numbers where said. *n* is the window in partials."
    )


def bars(report: Report, scale: Scale) -> None:
    found = speed_bars(scale.items, scale.turns)
    head = ["claim", "ns an item", "against (ns)", "ratio (spread)", "limit", ""]
    report.add(
        f"Speed bars (n = {WINDOW:,}, random data)",
        table(head, [bar.row() for bar in found]),
        "Bulk kernels are compared with the technique they stand for under the same contract: windows by their bounds, "
        "a new array of answers. On this machine IBM's C++ library took 11.7 ns for TwoStacksLite max and 3.6 ns for "
        "subtract-on-evict (design/measured.md).",
    )
    report.add(
        "100,000 keys, 10 ranges, one new slice a key",
        table(["", "ms a step", "times the copy (spread)", "limit 3"], keys_in_step(scale.turns)),
        "The copy moves the new slice and, for each range, one expiring slice and one answer. Steps are averaged "
        "over 60, "
        "a whole cycle of flips.",
    )


def counts(report: Report, scale: Scale) -> None:
    points = count_all(scale.counted)
    for queries in ("one range", "all ranges"):
        report.add(
            f"Operations a slide, {queries} (004 Table 4)",
            _counts_table(points, queries, scale.counted),
            "Each cell: measured amortized, measured worst; then theory amortized, worst. Random input."
            if queries == "one range"
            else "Each cell: measured; then theory. All ranges 1..n are answered after every item. slickdeque-noninv "
            "needs less than 2 merges; 004 counts the n nodes it may walk. n + 2 for twostacks is ours (nested flips).",
        )
    rows = [(n, f"{h:.2f}", f"{r:.2f}", f"{s:.2f}") for n, h, r, s in deque_lengths(scale.counted)]
    report.add(
        "Mean length of the monotonic deque",
        table(["n", "H_n", "measured, random", "measured, sensor"], rows),
        "004 takes the mean length as the sum of 1/i!, about 1.72. For random input it is H_n, the number of right-"
        "to-left maxima.",
    )
    operations = figures.beside(
        figures.theory_and_measured(points, "one range", "Fig. 11: operations a slide, one range"),
        figures.theory_and_measured(points, "all ranges", "Fig. 13: operations a slide, all ranges"),
    )
    throughput_in_theory = figures.beside(
        figures.theoretical_throughput(points, "one range", "Fig. 12: throughput in theory, one range"),
        figures.theoretical_throughput(points, "all ranges", "Fig. 14: throughput in theory, all ranges"),
    )
    report.add(
        "Theory beside measurement (figures 11 to 14)",
        figure(figures.save(operations, PICTURES, "techniques-11-13-operations.png"), "operations a slide"),
        "Dashed lines are theory, points are counts.",
        figure(figures.save(throughput_in_theory, PICTURES, "techniques-12-14-theory.png"), "throughput in theory"),
    )


def _counts_table(points: list[Point], queries: str, sizes: list[int]) -> str:
    cells = {(point["technique"], point["window"]): point for point in points if point["queries"] == queries}
    rows = []
    for name in TECHNIQUES:
        if (name, sizes[0]) not in cells:
            continue
        row = [name]
        for size in sizes:
            point = cells.get((name, size))
            if point is None:
                row.append("not run")
            elif queries == "one range":
                row.append(
                    f"{point['measured']:.2f}, {point['worst']}; {point['theory']:.3g}, {point['theory worst']:.5g}"
                )
            else:
                row.append(f"{point['measured']:,.0f}; {point['theory']:,.0f}")
        rows.append(row)
    return table(["technique", *(f"n = {size:,}" for size in sizes)], rows)


def throughput(report: Report, scale: Scale) -> dict[str, Timed]:
    timed: dict[str, Timed] = {}
    for aggregate in ("sum", "max"):
        timed[f"one range, {aggregate}"] = single(aggregate, scale.windows, scale.turns)
        timed[f"all ranges, {aggregate}"] = all_ranges(aggregate, scale.all_ranges, scale.turns)
    numbers = {
        "one range, sum": "Fig. 23",
        "one range, max": "Fig. 16 and 24",
        "all ranges, sum": "Fig. 25",
        "all ranges, max": "Fig. 17 and 26",
    }
    for case, measured in timed.items():
        unit = "slides/s"
        chart = figures.lines(rows_of(measured), unit, f"{numbers[case]}: throughput, {case}", unit)
        name = "techniques-" + case.replace(", ", "-").replace(" ", "-") + ".png"
        windows = scale.windows if case.startswith("one") else scale.all_ranges
        report.add(
            f"Throughput, {case} ({numbers[case]})",
            _throughput_table(measured, windows, "all" in case),
            figure(figures.save(figures.beside(chart), PICTURES, name), f"throughput, {case}"),
        )
    chart = figures.ratios(rows_of(timed["all ranges, max"]), "flatfit", "flatfat", "Fig. 18: FlatFIT over FlatFAT")
    name = figures.save(figures.beside(chart), PICTURES, "techniques-18-flatfit-flatfat.png")
    report.add("FlatFIT over FlatFAT, all ranges, max (figure 18)", figure(name, "FlatFIT over FlatFAT"))
    return timed


def _throughput_table(measured: Timed, windows: list[int], per_slide: bool) -> str:
    shown = [size for size in windows if size in windows[:: max(1, len(windows) // 7)] or size == windows[-1]]
    cells = {(row["technique"], row["window"]): row["ns"] for row in rows_of(measured)}
    rows = [
        [name, *(cells.get((name, size), "-") for size in shown)]
        for name in TECHNIQUES
        if any((name, size) in cells for size in shown)
    ]
    unit = "ns a slide" if per_slide else "ns an answer"
    return table([unit, *(f"n = {size:,}" for size in shown)], rows)


def latency(report: Report, scale: Scale) -> dict[str, np.ndarray]:
    taken = {name: latencies(name, scale.latency_items) for name in TECHNIQUES}
    rows, numbers = [], []
    for name, raw in taken.items():
        kept = trimmed(raw)
        five = [int(np.percentile(kept, at)) for at in (0, 25, 50, 75, 100)]
        rows.append([name, *five])
        numbers.append({"technique": name, **dict(zip(("min", "q25", "median", "q75", "max"), five, strict=True))})
    at = scale.latency_items // 2
    shown = [
        {"technique": name, "answer": int(answer), "ns": int(taken[name][answer])}
        for name in ("daba", "daba-lite", "slickdeque-noninv", "twostacks-lite")
        for answer in range(at, at + 1500)
    ]
    box = figures.boxes(numbers, "Fig. 27: latency of an answer, n = 1,024")
    line = figures.spikes(shown, "Fig. 28: latency spikes, n = 1,024")
    report.add(
        f"Latency of an answer, n = 1,024, {scale.latency_items:,} items (figures 27 and 28)",
        table(["ns", "min", "25%", "median", "75%", "max"], rows),
        "Two readings of the cycle counter are in every number, and on this virtual machine it advances in steps of "
        "about 10 ns. The highest 0.005% are dropped as in 004; what is left of interrupts still shows in "
        "some maxima, so their ratio changes from run to run.",
        figure(figures.save(figures.beside(box), PICTURES, "techniques-27-latency.png"), "latency"),
        figure(figures.save(figures.beside(line), PICTURES, "techniques-28-spikes.png"), "latency spikes"),
    )
    return {name: trimmed(raw) for name, raw in taken.items()}


def memory(report: Report, scale: Scale) -> None:
    sizes = sorted({size for n in scale.counted for size in (n, n + n // 2)})
    points = []
    for size in sizes:
        for name, technique in TECHNIQUES.items():
            monoid = add_int if "invertible" in technique.requires else max_int
            allocated = Runner(technique, monoid, (size,), 1).bytes()
            points.append({"technique": name, "window": size, "theory": 8 * PARTIALS[name](size), "bytes": allocated})
    last = [point for point in points if point["window"] == sizes[-1]]
    rows = [(p["technique"], int(p["bytes"]), int(p["theory"]), p["bytes"] / (8 * sizes[-1])) for p in last]
    chart = figures.beside(
        figures.lines(points, "theory", "Fig. 15: memory in theory", "bytes"),
        figures.lines(points, "bytes", "Fig. 19 and 29: memory allocated", "bytes"),
    )
    report.add(
        f"Memory, n = {sizes[-1]:,} (figures 15, 19, 29)",
        table(["technique", "bytes allocated", "bytes in theory", "partials' worth, times n"], rows),
        "Rings are preallocated and rounded up to a power of two, which is what makes them fast; slickdeque-noninv "
        "therefore holds room for "
        "its worst case, though only about H_n elements are in use. 004's growing deque is smaller by that factor.",
        figure(figures.save(chart, PICTURES, "techniques-15-19-29-memory.png"), "memory"),
    )


def claims(report: Report, timed: dict[str, Timed], spikes: dict[str, np.ndarray]) -> None:
    """Who wins where and by how much, beside what 004 says."""
    paper = {
        "one range, sum": ("slickdeque-inv", "+15% on average, +19% at most"),
        "one range, max": ("slickdeque-noninv", "+7% on average, +10% at most"),
        "all ranges, sum": ("slickdeque-inv", "+45% on average, +60% at most"),
        "all ranges, max": ("slickdeque-noninv", "+266% on average, +345% at most"),
    }
    rows = []
    for case, (champion, claim) in paper.items():
        gains = _gains(timed[case], champion)
        mean = np.mean([gain.median for _, gain in gains])
        (low_at, lowest), (high_at, highest) = (choose(gains, key=lambda pair: pair[1].median) for choose in (min, max))
        measured = (
            f"{mean - 1:+.0%} on average; {_percent(lowest)} at n = {low_at:,}; {_percent(highest)} at n = {high_at:,}"
        )
        rows.append((case, claim, f"{champion}: {measured}", _most_often_fastest(timed[case])))
    slick, daba = spikes["slickdeque-noninv"][-1], spikes["daba"][-1]
    rows.append(("highest latency, daba / slickdeque-noninv", "+283%", f"{daba / slick - 1:+.0%}", ""))
    size = 1 << 16
    deque, ring = (Runner(TECHNIQUES[name], max_int, (size,), 1).bytes() for name in ("slickdeque-noninv", "panes"))
    in_use = deque_lengths([size])[0][2] * 16
    found = (
        f"allocated {ring / deque:.2g} times less, as rings are preallocated; in use {ring / in_use:,.0f} times less"
    )
    rows.append(("memory, slickdeque-noninv against panes", "2 times less on average, 5 at most", found, ""))
    report.add(
        "Beside the paper's claims (windows of 16 and more)",
        table(
            [
                "case",
                "004: SlickDeque over the second best",
                "measured here: over the best rival",
                "most often fastest",
            ],
            rows,
        ),
        "004 compares with FlatFAT, B-Int, FlatFIT, TwoStacks and DABA. Here TwoStacks Lite, DABA Lite and TwoStacks "
        "with nested flips take part too, and all rings are preallocated, so the rivals are faster than the paper's. "
        "For one range of max the deque's branches mispredict.",
    )


def _gains(timed: Timed, champion: str) -> list[tuple[int, Turns]]:
    """For every window of 16 and more, the champion's throughput over that of its best rival.

    panes-inv is no rival: for one range it is slickdeque-inv's own loop.
    """
    gains = []
    for size in _sizes(timed):
        cost = {name: times.median / slides for (name, n), (times, slides) in timed.items() if n == size}
        best = min((name for name in cost if name not in (champion, "panes-inv")), key=cost.__getitem__)
        (rival, rival_slides), (own, own_slides) = timed[best, size], timed[champion, size]
        between = ratio(rival, own)
        gains.append((size, Turns(tuple(value * own_slides / rival_slides for value in between.values))))
    return gains


def _most_often_fastest(timed: Timed) -> str:
    fastest = []
    for size in _sizes(timed):
        cost = {name: times.median / slides for (name, n), (times, slides) in timed.items() if n == size}
        fastest.append(min(cost, key=cost.__getitem__))
    return max(set(fastest), key=fastest.count)


def _sizes(timed: Timed) -> list[int]:
    return sorted({size for _, size in timed if size >= 16})


def _percent(gain: Turns) -> str:
    low, high = min(gain.values), max(gain.values)
    return f"{gain.median - 1:+.0%} ({low - 1:+.0%}..{high - 1:+.0%})"


if __name__ == "__main__":
    main()
