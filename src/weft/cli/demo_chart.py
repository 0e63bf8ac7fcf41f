"""The picture of ``weft demo``: delays and cancellations through the year."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pandas as pd
import vl_convert as vlc

AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}


def storms(frame: pd.DataFrame, column: str, count: int) -> pd.DataFrame:
    """The highest peaks of the mean over the airports, no two within ten days."""
    peaks: list[pd.Timestamp] = []
    level = frame.groupby("until")[column].mean().sort_values(ascending=False)
    for at in level.index:
        if all(abs(at - other) > pd.Timedelta(days=10) for other in peaks):
            peaks.append(at)
        if len(peaks) == count:
            break
    highest = frame[frame["until"].isin(peaks)].groupby("until")[column].max().reset_index()
    # the window ends a day after it begins: the storm was in the middle of it
    highest["label"] = [f"{at - pd.Timedelta(hours=17):%-d %b}" for at in highest["until"]]
    return highest


def panel(frame: pd.DataFrame, column: str, title: str, floor: float, ceiling: float, peaks: int) -> alt.LayerChart:
    """Lines by airport, with the days of the peaks written above them."""
    months = alt.Axis(format="%b", tickCount="month", grid=False, labelAlign="left")
    year = alt.Scale(domain=[alt.DateTime(year=2013, month=1, date=1), alt.DateTime(year=2014, month=1, date=1)])
    when = alt.X("until:T", title=None, axis=months, scale=year)
    height = alt.Y(f"{column}:Q", title=title, scale=alt.Scale(domain=[floor, ceiling], nice=False))
    airport = alt.Color(
        "airport:N",
        title=None,
        scale=alt.Scale(domain=list(AIRPORTS.values()), range=["#0072B2", "#E69F00", "#009E73"]),
        legend=alt.Legend(orient="top", symbolStrokeWidth=4, labelFontSize=13),
    )
    lines = alt.Chart(frame).mark_line(strokeWidth=1.2, opacity=0.9).encode(x=when, y=height, color=airport)
    words = alt.Chart(storms(frame, column, peaks)).mark_text(dy=-9, fontSize=12, fontWeight="bold", color="#333")
    both: alt.LayerChart = lines + words.encode(x="until:T", y=f"{column}:Q", text="label:N")
    return both.properties(width=980, height=210)


def draw(answer: pd.DataFrame, out: Path) -> tuple[Path, Path]:
    """One picture of the year, as PNG, and as HTML that needs no network."""
    alt.data_transformers.disable_max_rows()
    frame = answer[answer["scheduled"] >= 100].sort_values("until")
    frame = frame[frame["until"].dt.hour % 2 == 0]
    frame = frame.assign(
        airport=frame["origin"].map(AIRPORTS), percent_cancelled=100 * frame["cancelled"] / frame["scheduled"]
    )[["until", "airport", "mean_delay", "percent_cancelled"]]
    late = panel(frame, "mean_delay", "mean delay, minutes", -10, 125, 7)
    lost = panel(frame, "percent_cancelled", "cancelled, percent", 0, 100, 5)
    title = alt.TitleParams(
        "A blizzard cancelled up to nine flights in ten; the longest waits came a month later",
        subtitle="Flights from New York in 2013, over the last 24 hours: delay at departure, and share cancelled",
        anchor="start", fontSize=20, subtitleFontSize=13, subtitleColor="#555", offset=14,
    )  # fmt: skip
    chart = alt.vconcat(late, lost, spacing=18).properties(title=title, padding=16)
    spec = chart.configure_axis(labelFontSize=12, titleFontSize=13, titleFontWeight="normal").configure_view(
        stroke=None
    )
    text = spec.to_json()
    picture, page = out / "delays.png", out / "delays.html"
    picture.write_bytes(vlc.vegalite_to_png(text, scale=2))
    page.write_text(vlc.vegalite_to_html(text, bundle=True), encoding="utf-8")
    return picture, page
