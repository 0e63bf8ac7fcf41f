"""The documentation says what the code says."""

from __future__ import annotations

from pathlib import Path

from weft.evaluate.registry import card_table

DOCS = Path(__file__).parents[2] / "docs"


def test_the_documented_cards_are_those_of_the_code() -> None:
    assert card_table() in (DOCS / "techniques.md").read_text()
