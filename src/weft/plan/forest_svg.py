"""A picture of a forest: the composite slide of each tree, who cuts where, and which edges are common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from math import lcm

from weft.plan.forest import Forest, Tree
from weft.slicing.progression import Alignment, edges_between
from weft.slicing.window import Window

_WIDTH, _LEFT, _RIGHT = 960, 190, 24
_LANE, _GAP, _TITLE = 20, 30, 24
_MOST_EDGES = 240
_MOST_LANES = 10
_MOST_TREES = 24
_INK, _PALE, _OWN, _COMMON = "#1f2933", "#d8dee4", "#5b8def", "#e4572e"
_STYLE = (
    f"text{{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:{_INK}}}"
    ".small{font-size:10px;fill:#6b7680}.head{font-weight:bold}"
)


def forest_svg(forest: Forest, windows: Mapping[str, Window], alignment: Alignment = "start") -> str:
    """Draw ``forest``; ``windows`` are the queries' windows by name.

    Examples
    --------
    >>> from weft.slicing.time_window import TimeWindow
    >>> from weft.optimize import optimize
    >>> windows = {"a": TimeWindow(12_000_000, 9_000_000), "b": TimeWindow(10_000_000, 6_000_000)}
    >>> forest = optimize(windows.items(), rate=100, optimizer="shared", model="two-level")
    >>> forest_svg(forest, windows).count("<line") > 20
    True
    """
    headline = f"{forest.optimizer}: {len(forest.trees)} trees, cost {forest.cost:.6g} ({forest.model})"
    parts: list[str] = []
    top = 46
    for number, tree in enumerate(forest.trees[:_MOST_TREES], 1):
        drawing, height = _tree(tree, number, windows, alignment, top)
        parts += drawing
        top += height + _GAP
    if len(forest.trees) > _MOST_TREES:
        parts.append(_text(24, top, f"and {len(forest.trees) - _MOST_TREES} more trees", "small"))
        top += _GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top}" viewBox="0 0 {_WIDTH} {top}">',
            f"<style>{_STYLE}</style>",
            f'<rect width="{_WIDTH}" height="{top}" fill="white"/>',
            _text(24, 26, headline, "head"),
            _mark(_WIDTH - 230, 14, 14, _OWN) + _text(_WIDTH - 224, 26, "edge of one window"),
            _mark(_WIDTH - 100, 14, 14, _COMMON) + _text(_WIDTH - 94, 26, "common edge"),
            *parts,
            "</svg>\n",
        ]
    )


def _tree(
    tree: Tree, number: int, windows: Mapping[str, Window], alignment: Alignment, top: int
) -> tuple[list[str], int]:
    lanes = Counter(windows[name] for name in tree.queries)
    period = lcm(*(window.period for window in lanes))
    shown = min(period, int(_MOST_EDGES / tree.edge_rate.value))
    owners = {window: edges_between(window.edges(alignment), 0, shown) for window in lanes}
    count = Counter(edge for edges in owners.values() for edge in edges)
    scale = (_WIDTH - _LEFT - _RIGHT) / shown
    title = f"tree {number} on node {tree.node}: {len(tree.queries)} queries, {tree.edge_rate.per_second:.4g} edges/s"
    parts = [_text(24, top + 12, title, "head")]
    y = top + _TITLE
    for window in sorted(lanes, key=lambda one: one.fineness)[:_MOST_LANES]:
        label = f"{_seconds(window.length)} by {_seconds(window.period)}" + (
            f" ({lanes[window]}x)" if lanes[window] > 1 else ""
        )
        parts += _lane(label, owners[window], count, y, scale)
        y += _LANE
    if len(lanes) > _MOST_LANES:
        parts.append(_text(24, y + 12, f"and {len(lanes) - _MOST_LANES} more windows", "small"))
        y += _LANE
    parts += _lane("slices of the tree", sorted(count), count, y, scale)
    y += _LANE
    end = f"composite slide {_seconds(period)}" if shown == period else f"{_seconds(shown)} of {_seconds(period)}"
    parts.append(_text(_WIDTH - _RIGHT, y + 12, end, "small", anchor="end"))
    parts.append(_text(_LEFT, y + 12, "0", "small"))
    return parts, y + 12 - top


def _lane(label: str, edges: list[int], count: Counter[int], y: int, scale: float) -> list[str]:
    base = f'<line x1="{_LEFT}" y1="{y + 14}" x2="{_WIDTH - _RIGHT}" y2="{y + 14}" stroke="{_PALE}"/>'
    marks = [_mark(_LEFT + edge * scale, y + 3, 11, _COMMON if count[edge] > 1 else _OWN) for edge in edges]
    return [_text(_LEFT - 10, y + 13, label, anchor="end"), base, *marks]


def _mark(x: float, y: float, height: float, colour: str) -> str:
    return f'<line x1="{x:.2f}" y1="{y}" x2="{x:.2f}" y2="{y + height}" stroke="{colour}" stroke-width="2"/>'


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 10**6:.6g} s"
