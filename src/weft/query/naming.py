"""Names of queries: every place that answers go to has to hold them."""

from __future__ import annotations

from weft.query.refusals import Refusal
from weft.store.folder import Folder

LONGEST = 249
"""Bytes of a name where it is part of a path: a folder's name has 255 at most, and ``query=`` stands before it."""


def refused_name(name: str) -> Refusal | None:
    """What is wrong with a query's name, if something is.

    Examples
    --------
    >>> refused_name("delays") is None
    True
    >>> print(refused_name("d" * 300).message)
    the name has 300 bytes in the path of a folder, and may have 249
    """
    length = len(Folder.encoded(name))
    if length <= LONGEST:
        return None
    return Refusal(
        f"the name has {length} bytes in the path of a folder, and may have {LONGEST}",
        "give the query a shorter name; letters other than a to z take several bytes there",
    )
