"""The Markdown that a run writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


class Report:
    """Sections in order; printed as they come, written at the end."""

    def __init__(self, title: str, introduction: str) -> None:
        self.parts = [f"# {title}", introduction]

    def add(self, title: str, *paragraphs: str) -> None:
        self.parts += [f"## {title}", *paragraphs]
        print("\n\n".join(self.parts[-len(paragraphs) - 1 :]), end="\n\n", flush=True)

    def write(self, path: Path) -> None:
        path.write_text("\n\n".join(self.parts) + "\n")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    lines += [" | ".join(_cell(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def figure(name: str, text: str) -> str:
    return f"![{text}](figures/{name})"
