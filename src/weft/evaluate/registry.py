"""Every technique by name, and the choice among them when the user leaves it to us."""

from __future__ import annotations

import difflib

from weft.algebra.monoid import Monoid
from weft.evaluate.technique import Technique, TechniqueError
from weft.evaluate.techniques.b_int import B_INT
from weft.evaluate.techniques.daba import DABA
from weft.evaluate.techniques.daba_lite import DABA_LITE
from weft.evaluate.techniques.flatfat import FLATFAT
from weft.evaluate.techniques.flatfit import FLATFIT
from weft.evaluate.techniques.panes import PANES
from weft.evaluate.techniques.panes_inv import PANES_INV
from weft.evaluate.techniques.slickdeque_inv import SLICKDEQUE_INV
from weft.evaluate.techniques.slickdeque_noninv import SLICKDEQUE_NONINV
from weft.evaluate.techniques.twostacks import TWOSTACKS
from weft.evaluate.techniques.twostacks_lite import TWOSTACKS_LITE

TECHNIQUES: dict[str, Technique] = {
    technique.name: technique
    for technique in (
        *(PANES, PANES_INV, FLATFAT, B_INT, FLATFIT),
        *(TWOSTACKS, TWOSTACKS_LITE, DABA, DABA_LITE),
        *(SLICKDEQUE_INV, SLICKDEQUE_NONINV),
    )
}


def technique_named(name: str) -> Technique:
    """The technique of that name.

    Raises
    ------
    TechniqueError
        If there is none, with the nearest name there is.

    Examples
    --------
    >>> technique_named("daba-lite").card.worst
    '6'
    >>> technique_named("slickdeck-inv")
    Traceback (most recent call last):
        ...
    weft.evaluate.technique.TechniqueError: no technique "slickdeck-inv"; did you mean slickdeque-inv?
    """
    found = TECHNIQUES.get(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name, TECHNIQUES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are auto, {', '.join(TECHNIQUES)}"
    raise TechniqueError(f'no technique "{name}"; {hint}')


def choose(monoid: Monoid, worst_case: bool = False, *, ranges: int = 1) -> tuple[str, str]:
    """The technique that ``auto`` takes, and why.

    Parameters
    ----------
    monoid
        What is aggregated.
    worst_case
        Whether no single push may take long, rather than all of them together be fast.
    ranges
        How many ranges are answered over the same items.

    Examples
    --------
    >>> from weft.algebra.monoids import add_float, add_int, max_int
    >>> choose(add_int)
    ('slickdeque-inv', 'exact inverse: 2 operations a range and slide')
    >>> choose(max_int)[0], choose(max_int, ranges=3)[0], choose(max_int, worst_case=True)[0]
    ('twostacks-lite', 'slickdeque-noninv', 'daba-lite')
    """
    if worst_case:
        return "daba-lite", "worst_case: at most 6 operations for any single slide"
    if monoid.invertible:
        return "slickdeque-inv", "exact inverse: 2 operations a range and slide"
    if ranges == 1:
        return "twostacks-lite", "no exact inverse, one range: 3 operations a slide, nothing expired leaves a trace"
    if monoid.selective:
        return "slickdeque-noninv", "selective, several ranges: less than 2 operations a slide for all of them"
    return "twostacks", "no exact inverse, several ranges: nested flips, less than 3 operations a range and slide"


def card_table() -> str:
    """The cards of all techniques as a Markdown table, as docs/techniques.md shows it."""
    head = "| technique | requires | amortized | worst | several ranges | space | origin |\n" + "|---" * 7 + "|\n"
    rows = []
    for technique in TECHNIQUES.values():
        card, needs = technique.card, ", ".join(technique.requires) or "associative"
        cells = (technique.name, needs, card.amortized, card.worst, card.multi_query, card.space, card.origin)
        rows.append("| " + " | ".join(cells) + " |\n")
    return head + "".join(rows)
