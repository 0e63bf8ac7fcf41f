"""The figures of 004 chapters 3 and 4, drawn again from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import pandas as pd

Rows = Sequence[dict[str, object]]
ORDER = [
    *("panes", "panes-inv", "flatfat", "b-int", "flatfit", "twostacks", "twostacks-lite", "daba", "daba-lite"),
    *("slickdeque-inv", "slickdeque-noninv"),
]
COLOURS = [
    *("#7f7f7f", "#bcbd22", "#1f77b4", "#17becf", "#2ca02c", "#ff7f0e", "#d62728", "#9467bd", "#e377c2"),
    *("#8c564b", "#000000"),
]
TECHNIQUE = alt.Color("technique:N", scale=alt.Scale(domain=ORDER, range=COLOURS), sort=ORDER)
WINDOW = alt.X(
    "window:Q", scale=alt.Scale(type="log", base=2), axis=alt.Axis(format="~s", labelOverlap=True), title="window"
)


def save(chart: alt.TopLevelMixin, directory: Path, name: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    chart.save(str(directory / name), scale_factor=1.5)
    return name


def lines(rows: Rows, field: str, title: str, axis: str) -> alt.Chart:
    """One line a technique over the window, both axes logarithmic."""
    frame = pd.DataFrame(rows)
    y = alt.Y(f"{field}:Q", scale=alt.Scale(type="log"), title=axis, axis=alt.Axis(format="~s"))
    chart = alt.Chart(frame, title=title, width=430, height=300)
    return chart.mark_line(point=True).encode(x=WINDOW, y=y, color=TECHNIQUE)


def theory_and_measured(rows: Rows, queries: str, title: str) -> alt.LayerChart:
    """Theory as dashed lines, what was counted as points."""
    frame = pd.DataFrame([row for row in rows if row["queries"] == queries])
    frame["theory"] = frame["theory"].clip(lower=0.5)
    frame["measured"] = frame["measured"].clip(lower=0.5)
    scale = alt.Scale(type="log")
    axis = alt.Axis(format="~s")
    base = alt.Chart(frame, title=title, width=430, height=300)
    theory = base.mark_line(strokeDash=[5, 4], opacity=0.7).encode(
        x=WINDOW, y=alt.Y("theory:Q", scale=scale, axis=axis, title="operations a slide"), color=TECHNIQUE
    )
    measured = base.mark_point(filled=True, size=45).encode(
        x=WINDOW, y=alt.Y("measured:Q", scale=scale), color=TECHNIQUE
    )
    return theory + measured


def theoretical_throughput(rows: Rows, queries: str, title: str) -> alt.Chart:
    """Slides a second at 10^9 operations a second, as 004 draws it."""
    chosen = [
        {**row, "slides/s": 1e9 / max(float(str(row["theory"])), 1.0)} for row in rows if row["queries"] == queries
    ]
    return lines(chosen, "slides/s", title, "slides/s at 1e9 operations/s")


def ratios(rows: Rows, one: str, other: str, title: str) -> alt.Chart:
    frame = pd.DataFrame(rows).pivot(index="window", columns="technique", values="slides/s")
    shown = (frame[one] / frame[other]).dropna().rename("ratio").reset_index()
    chart = alt.Chart(shown, title=title, width=430, height=240)
    return chart.mark_line(point=True).encode(x=WINDOW, y=alt.Y("ratio:Q", title=f"{one} / {other}"))


def boxes(rows: Rows, title: str) -> alt.LayerChart:
    """Minimum, quartiles and maximum of the latency, drawn from the five numbers."""
    frame = pd.DataFrame(rows)
    scale = alt.Scale(type="log")
    base = alt.Chart(frame, title=title, width=430, height=300).encode(x=alt.X("technique:N", sort=ORDER, title=None))
    whole = base.mark_rule().encode(y=alt.Y("min:Q", scale=scale, title="ns an answer"), y2="max:Q", color=TECHNIQUE)
    middle = base.mark_bar(size=18).encode(y=alt.Y("q25:Q", scale=scale), y2="q75:Q", color=TECHNIQUE)
    median = base.mark_tick(color="white", thickness=2, size=18).encode(y=alt.Y("median:Q", scale=scale))
    return whole + middle + median


def spikes(rows: Rows, title: str) -> alt.Chart:
    frame = pd.DataFrame(rows)
    y = alt.Y("ns:Q", scale=alt.Scale(type="log"), title="ns an answer")
    chart = alt.Chart(frame, title=title, width=860, height=260)
    return chart.mark_line(strokeWidth=1).encode(x=alt.X("answer:Q", title="answer"), y=y, color=TECHNIQUE)


def beside(*charts: alt.Chart | alt.LayerChart) -> alt.HConcatChart:
    return alt.hconcat(*charts).configure_axis(gridOpacity=0.4)
