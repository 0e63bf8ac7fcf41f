"""Draws the pictures of docs/architecture.md from the code: the rooms with their imports, and the path of data.

``python docs/pictures.py`` writes them anew; the tests compare them with what is committed.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from html import escape
from pathlib import Path

import grimp

HERE = Path(__file__).parent
WIDTH, ROW, BOX = 980, 74, 40
INK, PALE, KNOWS_SPARK, PLAIN = "#1f2933", "#9aa5b1", "#fde8d7", "#e6effa"
SPARK = {"launch", "spark", "sources", "java"}
FONT = 'font-family="Helvetica, Arial, sans-serif"'
PATH = (
    ("parse", "texts", "queries", "query"),
    ("bind", "schema", "bound queries", "spark"),
    ("plan", "seen, constants", "plan", "optimize"),
    ("cut", "rows", "slices", "spark"),
    ("turn", "state", "answers, state'", "step"),
    ("write", "select lists", "files", "step"),
    ("commit", "manifest", "batch", "job"),
    ("deliver", "", "sinks", "job"),
)
"""What is done, what it takes beside the last thing, what it gives, and the room that does it."""


def layers() -> list[list[str]]:
    """The rooms as the import contract orders them, from the faces down."""
    settings = tomllib.loads((HERE.parent / "pyproject.toml").read_text())
    contract = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return [
        [room.strip().removeprefix("weft.") for room in layer.replace(":", "|").split("|")]
        for layer in contract["layers"]
    ]


def imports() -> Counter[tuple[str, str]]:
    """How many imports go from one room to another."""
    graph = grimp.build_graph("weft", cache_dir=None)
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = tuple(name.split(".")[1] if "." in name else name for name in (module, other))
            if pair[0] != pair[1]:
                found[pair[0], pair[1]] += 1
    return found


def rooms() -> str:
    """The rooms in their order, with a line for every pair of rooms of which one imports the other."""
    rows = layers()
    places = {}
    for number, row in enumerate(rows):
        for at, room in enumerate(row):
            places[room] = (WIDTH * (at + 1) / (len(row) + 1), 50 + number * ROW)
    parts = []
    known = {pair: count for pair, count in imports().items() if pair[0] in places and pair[1] in places}
    for (one, other), count in sorted(known.items()):
        (x1, y1), (x2, y2) = places[one], places[other]
        bend = x1 + (x2 - x1) / 2 + (150 + 11 * (y2 - y1) / ROW) * (1 if (len(one) + len(other)) % 2 else -1)
        path = f"M {x1:.0f} {y1 + BOX / 2:.0f} Q {bend:.0f} {(y1 + y2) / 2:.0f} {x2:.0f} {y2 - BOX / 2:.0f}"
        if y2 - y1 <= ROW:
            path = f"M {x1:.0f} {y1 + BOX / 2:.0f} L {x2:.0f} {y2 - BOX / 2:.0f}"
        # three widths, so that not every import draws another picture
        width = 0.7 if count < 5 else 1.5 if count < 30 else 3.0
        title = f"<title>{one} imports {other}</title>"
        parts.append(
            f'<path d="{path}" fill="none" stroke="{PALE}" stroke-width="{width:.1f}" opacity="0.7">{title}</path>'
        )
    for room, (x, y) in places.items():
        fill = KNOWS_SPARK if room in SPARK else PLAIN
        parts.append(_box(x, y, 130, room, fill))
    parts.append(_text(WIDTH - 20, 24, "imports only go down; orange rooms know Spark", 12, anchor="end"))
    return _svg(50 + len(rows) * ROW, parts)


def path_of_data() -> str:
    """The one path of data, step by step."""
    step = (WIDTH - 60) / len(PATH)
    parts = []
    for number, (verb, beside, gives, room) in enumerate(PATH):
        x = 30 + step * (number + 0.5)
        fill = KNOWS_SPARK if room in SPARK else PLAIN
        parts.append(_box(x, 90, step - 26, verb, fill))
        parts.append(_text(x, 142, gives, 12))
        parts.append(_text(x, 158, room, 11, PALE))
        if beside:
            parts.append(_text(x, 50, beside, 12))
            parts.append(f'<path d="M {x:.0f} 55 L {x:.0f} 68" stroke="{INK}"/>')
        if number:
            parts.append(
                f'<path d="M {x - step / 2 - 11:.0f} 90 l 22 0 m -6 -5 l 6 5 l -6 5" fill="none" stroke="{INK}"/>'
            )
    parts.append(
        f'<path d="M {30 + step * 4.5 + 40:.0f} 112 q 30 70 -40 62 q -70 8 -40 -62" fill="none" stroke="{PALE}"/>'
        + _text(30 + step * 4.5, 190, "the state of a batch is that of the next", 11, PALE)
    )
    return _svg(205, parts)


def _box(x: float, y: float, width: float, text: str, fill: str) -> str:
    corner = f'x="{x - width / 2:.0f}" y="{y - BOX / 2:.0f}" width="{width:.0f}" height="{BOX}"'
    return f'<rect {corner} rx="6" fill="{fill}" stroke="{INK}"/>' + _text(x, y + 5, text, 14)


def _text(x: float, y: float, text: str, size: int, colour: str = INK, anchor: str = "middle") -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"'
    return f'<text {place} {FONT} font-size="{size}" fill="{colour}">{escape(text)}</text>'


def _svg(height: float, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>', *parts, "</svg>\n"])


PICTURES = {"rooms.svg": rooms, "path.svg": path_of_data}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / "figures" / name).write_text(draw())
