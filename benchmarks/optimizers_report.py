"""docs/benchmarks-optimizers.md from the rows that ``benchmarks/optimizers.py`` left: claims, and what was measured."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

Row = dict[str, Any]
Rows = list[Row]


def write_report(results: Path, target: Path) -> None:
    sections, missing = [], []
    for name, (title, claims, picture) in SECTIONS.items():
        path = results / f"optimizers-{name}.json"
        if path.exists():
            sections.append(_section(name, title, claims, picture, json.loads(path.read_text())))
        else:
            missing.append(f"- {title}: `{_command(name)}`")
    if missing:
        sections.append("\n".join(["\n## Not measured yet\n", *missing]) + "\n")
    target.write_text(HEAD + "\n".join(sections))


def _command(name: str) -> str:
    on_spark = {"reality": "forests", "throughput": "throughput"}
    if name in on_spark:
        return f"python benchmarks/optimizers_reality.py {on_spark[name]}"
    return f"python benchmarks/optimizers.py {name}"


def _section(name: str, title: str, claims: list[Claim], picture: bool, rows: Rows) -> str:
    lines = [f"\n## {title}\n", "| the paper | measured |", "|---|---|"]
    lines += [f"| {claim} | {measure(rows)} |" for claim, measure in claims]
    if name == "reality":
        lines += ["", _table(rows)]
    if picture:
        lines.append(f"\n![{title}](figures/optimizers-{name.replace('_', '-')}.png)")
    return "\n".join(lines) + "\n"


Claim = tuple[str, Callable[[Rows], str]]

HEAD = """# Optimizers: what the papers claim and what we measured

By `python benchmarks/optimizers.py everything`, on two cores that other work shared; times are CPU seconds. 000 is the
Weave Share paper (CIKM 2011), 004 Shein's thesis. Workloads are drawn from the papers' distributions with fixed seeds,
one draw a setting, where the papers average three to ten.
"""


def _cost(rows: Rows, **where: Any) -> float:
    return float(_one(rows, **where)["cost"])


def _one(rows: Rows, **where: Any) -> Row:
    return next(row for row in rows if all(row.get(name) == value for name, value in where.items()))


def _against(rows: Rows, other: str, rate: float, queries: int) -> float:
    setting = {"figure": "queries", "queries": queries, "rate": rate}
    return _cost(rows, optimizer=other, **setting) / _cost(rows, optimizer="weave-share", **setting)


def _gains(rows: Rows, figure: str, **where: Any) -> str:
    """What Weave Share saves against Shared, along a figure's axis."""
    values = sorted({row["value"] for row in rows if row["figure"] == figure})
    setting = {"figure": figure} | where
    gains = []
    for value in values:
        shared = _cost(rows, optimizer="shared", value=value, **setting)
        gains.append(f"{1 - _cost(rows, optimizer='weave-share', value=value, **setting) / shared:.0%} at {value:g}")
    return ", ".join(gains)


def _trees(rows: Rows, rate: float) -> str:
    found = [row for row in rows if row["figure"] == "queries" and row["rate"] == rate]
    return ", ".join(f"{row['trees']} for {row['queries']}" for row in found if row["optimizer"] == "weave-share")


def _best_other(rows: Rows, rate: float) -> str:
    names = ("no-share", "random", "shared", "insert-then-weave")
    factors = {name: _against(rows, name, rate, 1000) for name in names}
    return ", ".join(f"{name} {factor:,.1f} times" for name, factor in factors.items())


def _ours(rows: Rows) -> str:
    pairs = defaultdict(dict)
    for row in rows:
        if row["figure"] == "queries":
            pairs[row["queries"], row["rate"]][row["optimizer"]] = row["cost"]
    gains = [1 - costs["weft"] / costs["weave-share"] for costs in pairs.values() if "weft" in costs]
    return f"{mean(gains):.1%} cheaper than Weave Share on average, up to {max(gains):.1%}, never dearer"


def _local_search(rows: Rows) -> str:
    pairs = defaultdict(dict)
    for row in rows:
        if row["figure"] == "queries":
            pairs[row["queries"], row["rate"]][row["optimizer"]] = row
    found = [one for one in pairs.values() if "local-search" in one]
    costs = [one["local-search"]["cost"] / one["weave-share"]["cost"] - 1 for one in found]
    times = [one["local-search"]["seconds"] / one["weave-share"]["seconds"] for one in found]
    return f"{min(costs):+.1%} to {max(costs):+.1%} of Weave Share's cost, in {median(times):.1f} times its time"


def _deviations(rows: Rows) -> str:
    return "; ".join(
        f"{row['tolerance']}: {row['deviation']:.1%} off with {row['comparisons']:,} comparisons" for row in rows
    )


def _variants(rows: Rows) -> str:
    return ", ".join(f"{row['variant']} {row['seconds']:.3g} s" for row in rows)


def _last(rows: Rows, slides: str) -> str:
    found = []
    for method in ("bitmap", "f1", "factored"):
        mine = [row for row in rows if row["method"] == method and row["slides"] == slides]
        found.append(f"{method} {mine[-1]['seconds']:.2g} s for {mine[-1]['count']}")
    return ", ".join(found)


def _deaths(rows: Rows, experiment: str) -> str:
    parts = []
    for method in ("bitmap", "f1", "factored", "ours"):
        mine = [row for row in rows if row["experiment"] == experiment and row["method"] == method]
        alive = [row for row in mine if "seconds" in row]
        died = next((f", dead at {row['value']:g}" for row in mine if "died" in row), "")
        last = f"{alive[-1]['seconds']:.2g} s at {alive[-1]['value']:g}" if alive else "nothing"
        parts.append(f"{method} {last}{died}")
    return "; ".join(parts)


def _ranking(rows: Rows, measure: str, name: str) -> str:
    experiments = defaultdict(dict)
    for row in rows:
        if row["optimizer"] != "weft":
            experiments[row["experiment"]][row["optimizer"]] = row[measure]
    best = [costs for costs in experiments.values() if costs[name] <= min(costs.values()) * (1 + 1e-9)]
    others = [costs[name] / min(costs.values()) - 1 for costs in experiments.values() if costs not in best]
    behind = f"; else {mean(others):.1%} behind the best" if others else ""
    return f"best in {len(best) / len(experiments):.0%} of {len(experiments)}{behind}"


def _against_ours(rows: Rows, measure: str, name: str) -> str:
    experiments = defaultdict(dict)
    for row in rows:
        experiments[row["experiment"]][row["optimizer"]] = row[measure]
    return f"{mean(costs['weft'] / costs[name] - 1 for costs in experiments.values()):+.1%}"


def _longest(rows: Rows) -> str:
    times = defaultdict(list)
    for row in rows:
        times[row["optimizer"]].append(row["seconds"])
    slowest = max(times, key=lambda name: mean(times[name]))
    return f"{slowest} {mean(times[slowest]):.2f} s on average, the longest of all"


def _spread(rows: Rows) -> str:
    parts = []
    for name in ("w-tn", "wg-tn", "w-i", "wg-i", "weft"):
        costs = [row["cost"] for row in rows if row["optimizer"] == name]
        parts.append(f"{name} {sum(costs):,.0f} in all, dearest node {max(costs):,.0f}")
    return "; ".join(parts)


def _factor(rows: Rows, parameter: str, against: str) -> str:
    factors = []
    for row in rows:
        if row["parameter"] == parameter and row["technique"] == against and row["optimizer"] == "weave-share":
            slick = [
                _cost(rows, parameter=parameter, value=row["value"], technique=name, optimizer="weave-share")
                for name in ("slickdeque-inv", "slickdeque-noninv")
            ]
            factors.append(row["cost"] / min(slick))
    return f"up to {max(factors):,.3g} times"


def _tri(rows: Rows, parameter: str) -> str:
    ratios = [
        1 - _cost(rows, **_by_tri_weave(row)) / row["cost"]
        for row in rows
        if row["parameter"] == parameter and row["optimizer"] == "weave-share"
    ]
    return f"TriWeave {mean(ratios):.1%} cheaper on average ({min(ratios):.0%} to {max(ratios):.0%})"


def _by_tri_weave(row: Row) -> Row:
    kept = ("parameter", "value", "technique")
    return {name: row[name] for name in kept} | {"optimizer": "tri-weave"}


def _bar(rows: Rows, what: str) -> str:
    row = _one(rows, what=what)
    parts = [f"{row['seconds']:.2g} s"]
    parts += [f"{row[name]:,.0f} {name}" for name in ("megabytes", "items", "trees") if name in row]
    return ", ".join(parts)


def _ratio(rows: Rows) -> str:
    slow, fast = (_one(rows, what=f"20 coprime slides, {name}")["seconds"] for name in ("f1", "factored"))
    return f"{slow / fast:,.0f} times ({slow:.2g} s against {fast * 1e3:.2g} ms)"


def _excess(rows: Rows) -> str:
    found = [row["excess"] for row in rows if "excess" in row]
    return f"{min(found):+.3%} to {max(found):+.3%} in {len(found)} samples"


def _cases(rows: Rows) -> dict[str, Rows]:
    cases: dict[str, Rows] = defaultdict(list)
    for row in rows:
        cases[row["case"]].append(row)
    return cases


def _ranks(values: list[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    for rank, at in enumerate(order):
        ranks[at] = float(rank)
    return ranks


def spearman(one: list[float], other: list[float]) -> float:
    """Rank correlation; times are never equal, so there are no ties."""
    count = len(one)
    apart = sum((left - right) ** 2 for left, right in zip(_ranks(one), _ranks(other), strict=True))
    return 1 - 6 * apart / (count * (count * count - 1))


def _order(rows: Rows) -> str:
    both = [[row[name] for row in rows] for name in ("predicted", "measured")]
    sizes = [row["queries"] for row in rows]
    return (
        f"Spearman {spearman(*both):.3f} over {len(rows)} forests of {len(_cases(rows))} sets of queries, "
        f"{min(sizes):,} to {max(sizes):,} queries, 1 to {max(row['trees'] for row in rows):,} trees"
    )


def _error(rows: Rows) -> str:
    errors = [abs(row["predicted"] / row["measured"] - 1) for row in rows]
    return f"{mean(errors):.1%} on average, median {median(errors):.1%}, the worst {max(errors):.0%}"


def _within(picked: Row, best: Row) -> bool:
    """Within a tenth of the fastest, or within the spread of its runs."""
    return bool(picked["measured"] <= max(1.1 * best["measured"], max(best["runs"])))


def _picks(rows: Rows) -> str:
    good, losses = 0, []
    for case in _cases(rows).values():
        picked, best = (min(case, key=lambda row, by=by: row[by]) for by in ("predicted", "measured"))  # type: ignore[misc]
        good += _within(picked, best)
        losses.append(picked["measured"] / best["measured"] - 1)
    return f"{good} of {len(_cases(rows))}; {mean(losses):.1%} behind the fastest on average, at most {max(losses):.0%}"


def _table(rows: Rows) -> str:
    """Every case: how long each plan took and what was predicted."""
    plans = list(dict.fromkeys(row["plan"] for row in rows))
    lines = [f"| seconds, and predicted | {' | '.join(plans)} |", "|---" * (len(plans) + 1) + "|"]
    for name, case in sorted(_cases(rows).items(), key=lambda one: one[1][0]["queries"]):
        best, picked = (min(case, key=lambda row, by=by: row[by]) for by in ("measured", "predicted"))  # type: ignore[misc]
        cells = []
        for plan in plans:
            row = next((row for row in case if row["plan"] == plan), None)
            if row is None:
                cells.append("")
                continue
            told = f"{row['measured']:.2f} ({row['predicted']:.2f}), {row['trees']} trees"
            cells.append((f"**{told}**" if row is best else told) + (" picked" if row is picked else ""))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _throughputs(rows: Rows, optimizer: str, estimate: str) -> str:
    mine = [row for row in rows if row["optimizer"] == optimizer]
    estimated, actual = ([row[name] / max(one[name] for one in mine) for row in mine] for name in (estimate, "actual"))
    apart = [abs(left / right - 1) for left, right in zip(estimated, actual, strict=True)]
    told = ", ".join(
        f"{row['technique']} {left:.2f} / {right:.2f}" for row, left, right in zip(mine, estimated, actual, strict=True)
    )
    return f"{mean(apart):.0%} apart on average; estimated / actual, the largest as 1: {told}"


SECTIONS: dict[str, tuple[str, list[Claim], bool]] = {
    "quality": (
        "Cost of plans (000 Fig. 4-10)",
        [
            (
                "Fig. 4, rate 50, 1,000 queries: Weave Share is 3 to 4 orders of magnitude below the others",
                lambda rows: _best_other(rows, 50.0),
            ),
            ("Fig. 5, rate 300: likewise; Shared is the best of the others", lambda rows: _best_other(rows, 300.0)),
            ("Local search finds nothing better, in a thousand times the time", _local_search),
            (
                "Fig. 6: at rate 10,000 and 1,000 queries Weave Share saves 62% against Shared",
                lambda rows: f"{1 - 1 / _against(rows, 'shared', 10_000.0, 1000):.0%}",
            ),
            ("Fig. 7: more queries make more trees, also at rate 10,000", lambda rows: _trees(rows, 10_000.0)),
            (
                "Fig. 8: 250 queries: 80% below Shared at rate 50, 24% at 2,000",
                lambda rows: _gains(rows, "rate", queries=250),
            ),
            (
                "Fig. 9, rate 100,000: one tree below overlap 200, then 19% to 74% below Shared",
                lambda rows: _gains(rows, "overlap", rate=100_000.0),
            ),
            (
                "Fig. 10: the gain grows with the skew up to a maximum, then falls to nothing",
                lambda rows: _gains(rows, "skew", queries=500),
            ),
            ("(ours) moves, splits and merges after Weave Share", _ours),
        ],
        True,
    ),
    "incremental": (
        "Incremental Weave Share (000 Fig. 11)",
        [
            (
                "More tolerance: less overhead, more error, never above the tolerance; 20-30% is a good balance",
                _deviations,
            )
        ],
        True,
    ),
    "optimizations": (
        "The effect of each optimization (000 Fig. 14)",
        [("Each adds about an order of magnitude, all three orders", _variants)],
        True,
    ),
    "edge_rates": (
        "Counting edges (004 Fig. 34)",
        [
            ("F1 needs 2^n operations, a bitmap e^n", lambda rows: f"slides 2..n+1: {_last(rows, '2..n+1')}"),
            ("Primes are the worst case", lambda rows: f"primes: {_last(rows, 'primes')}"),
        ],
        True,
    ),
    "plan_times": (
        "Plan time by counting method (004 Table 6, Fig. 35-39)",
        [
            ("Queries: bitmap dead above 550, F1 at a million", lambda rows: _deaths(rows, "queries")),
            ("Max slide: bitmap dead above 800, F1 reaches 10,000", lambda rows: _deaths(rows, "max slide")),
            ("Rate: bitmap dead at 900, F1 reaches 1,000,000", lambda rows: _deaths(rows, "rate")),
            ("Skew: bitmap dead at 2.25, F1 reaches 100", lambda rows: _deaths(rows, "skew")),
            ("Max overlap: bitmap dead at 40, F1 reaches 1", lambda rows: _deaths(rows, "max overlap")),
        ],
        True,
    ),
    "nodes": (
        "Many nodes, 256 combinations (004 Fig. 40, Tables 9 and 10)",
        [
            ("Total cost: wg-tn best in 90%, else within 0.2%", lambda rows: _ranking(rows, "total", "wg-tn")),
            ("Total cost: wg-i best in 5%, else within 9%", lambda rows: _ranking(rows, "total", "wg-i")),
            ("Max cost: wg-i best in 80%, else within 3%", lambda rows: _ranking(rows, "max", "wg-i")),
            ("Max cost: wg-tn best in 17%, else within 48%", lambda rows: _ranking(rows, "max", "wg-tn")),
            ("All plan in less than 13 s", _longest),
            ("(ours) total cost of weft against wg-tn", lambda rows: _against_ours(rows, "total", "wg-tn")),
            ("(ours) max cost of weft against wg-i", lambda rows: _against_ours(rows, "max", "wg-i")),
        ],
        True,
    ),
    "balance": (
        "Load of four nodes (004 Fig. 41)",
        [("w-tn and wg-tn are cheap and unbalanced, w-i and wg-i balanced, wg-i nearly as cheap as wg-tn", _spread)],
        True,
    ),
    "techniques": (
        "Techniques in optimizers (004 Fig. 42-46)",
        [
            ("Queries: SlickDeque up to 5,000 times below Panes", lambda rows: _factor(rows, "queries", "panes")),
            ("Queries: up to 3 times below FlatFIT", lambda rows: _factor(rows, "queries", "flatfit")),
            ("Max slide: up to 4,300 times below Panes", lambda rows: _factor(rows, "max_slide", "panes")),
            ("Max overlap: up to 270,000 times", lambda rows: _factor(rows, "max_overlap", "panes")),
            ("Rate: up to 3,000 times", lambda rows: _factor(rows, "rate", "panes")),
            ("Skew: up to 4,200 times", lambda rows: _factor(rows, "zipf", "panes")),
            ("Queries: TriWeave 8% below Weave Share", lambda rows: _tri(rows, "queries")),
            (
                "Max slide, max overlap: within 2%",
                lambda rows: f"{_tri(rows, 'max_slide')}; {_tri(rows, 'max_overlap')}",
            ),
            ("Rate: TriWeave 18% below", lambda rows: _tri(rows, "rate")),
            ("Skew: TriWeave 5% below", lambda rows: _tri(rows, "zipf")),
        ],
        True,
    ),
    "throughput": (
        "Estimated and actual throughput by technique, on Spark (004 Fig. 47-48)",
        [
            (
                "Weave Share: 1 / cost deviates 31% from the actual throughput, the largest readings equated",
                lambda rows: _throughputs(rows, "weave-share", "estimated"),
            ),
            ("TriWeave: 14%", lambda rows: _throughputs(rows, "tri-weave", "estimated")),
            (
                "(ours) the calibrated model, Weave Share",
                lambda rows: _throughputs(rows, "weave-share", "calibrated"),
            ),
            ("(ours) the calibrated model, TriWeave", lambda rows: _throughputs(rows, "tri-weave", "calibrated")),
        ],
        True,
    ),
    "reality": (
        "The calibrated model against the clock",
        [
            ("(bar) the predicted order is the measured one: Spearman at least 0.9", _order),
            ("(bar) within 25% of the time on average; 004 reports 22% for its own, normalized", _error),
            ("(bar) the plan it picks is within 10% or the spread of the fastest, in 18 of 20", _picks),
        ],
        True,
    ),
    "scale": (
        "Our own bars",
        [
            (
                "1,000,000 queries by weave-share, reading included: 15 s, 1.5 GB",
                lambda rows: _bar(rows, "1,000,000 queries, reading included"),
            ),
            (
                "20,000 queries with real overlap: 60 s",
                lambda rows: _bar(rows, "20,000 queries with real overlap, rate 0.002"),
            ),
            (
                "the same at rate 1, where most queries are woven",
                lambda rows: _bar(rows, "20,000 queries with real overlap, rate 1"),
            ),
            ("bounds and glances within 0.1% of plain Weave Share", _excess),
            ("factored 1,000 times faster than F1 on 20 coprime slides", _ratio),
            (
                "all primes below 10,000 with fragments, exact: 2 s",
                lambda rows: _bar(rows, "all primes below 10,000 with fragments"),
            ),
        ],
        False,
    ),
}
